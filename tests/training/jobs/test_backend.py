"""Whoever waits for a job outlives what its backend goes through meanwhile."""

from __future__ import annotations

from typing import Any, cast

import pytest

from training.jobs.backend import FAILED_LOOKS, TrainingBackend, wait_for
from training.jobs.errors import BackendError


class Answering:
    """Answers in turn: a word, or that it cannot be asked."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)

    def status(self, _run_id: str) -> Any:
        if (answer := self.answers.pop(0)) is None:
            raise BackendError("no answer")
        return answer


def looked_at(*answers: str | None) -> list[Any]:
    backend = cast("TrainingBackend", Answering(*answers))
    done = cast("Any", lambda status: status == "done")
    return list(wait_for(backend, "one", done, sleep=lambda _: None))


def test_a_few_looks_in_a_row_may_fail() -> None:
    gap = [None] * FAILED_LOOKS
    assert looked_at("runs", *gap, "runs", *gap, "done") == ["runs", "runs", "done"]


def test_one_that_never_answered_is_told_of_at_once() -> None:
    with pytest.raises(BackendError):
        looked_at(None, "done")


def test_one_that_answers_no_more_is_given_up() -> None:
    with pytest.raises(BackendError):
        looked_at("runs", *[None] * (FAILED_LOOKS + 1), "done")
