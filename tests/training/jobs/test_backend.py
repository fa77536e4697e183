"""Whoever waits for a job outlives what its backend goes through meanwhile."""

from __future__ import annotations

from typing import Any, cast

import pytest

from training.jobs.backend import PATIENCE_SECONDS, REFUSED_LOOKS, TrainingBackend, wait_for
from training.jobs.errors import BackendError, NotAllowedError

AWAY = BackendError("no answer")
REFUSED = NotAllowedError("not allowed")
POLL_SECONDS = 2.0


class Answering:
    """Answers in turn: a word, or that it cannot be asked."""

    def __init__(self, *answers: str | BackendError) -> None:
        self.answers = list(answers)

    def status(self, _run_id: str) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, BackendError):
            raise answer
        return answer


def looked_at(*answers: str | BackendError) -> list[Any]:
    backend = cast("TrainingBackend", Answering(*answers))
    done = cast("Any", lambda status: status == "done")
    passed: list[float] = []
    return list(
        wait_for(
            backend,
            "one",
            done,
            poll_seconds=POLL_SECONDS,
            sleep=passed.append,
            clock=lambda: sum(passed),
        )
    )


def test_a_server_may_be_away_for_minutes() -> None:
    gap = [AWAY] * round(PATIENCE_SECONDS / POLL_SECONDS)
    assert looked_at("runs", *gap, "runs", *gap, "done") == ["runs", "runs", "done"]


def test_one_that_never_answered_is_told_of_at_once() -> None:
    with pytest.raises(BackendError):
        looked_at(AWAY, "done")


def test_one_that_answers_no_more_is_given_up() -> None:
    gap = [AWAY] * round(PATIENCE_SECONDS / POLL_SECONDS + 2)
    with pytest.raises(BackendError):
        looked_at("runs", *gap, "done")


def test_one_that_refuses_is_given_up_sooner() -> None:
    assert looked_at("runs", *[REFUSED] * REFUSED_LOOKS, "done") == ["runs", "done"]
    with pytest.raises(NotAllowedError):
        looked_at("runs", *[REFUSED] * (REFUSED_LOOKS + 1), "done")
