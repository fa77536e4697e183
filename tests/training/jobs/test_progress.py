"""What a job says of itself is read with tolerance, and never trusted to be well-formed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.jobs.progress import Event, Progress, last_words, parse_event, progress_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)
FIELDS = st.sampled_from(["event", "epoch", "of", "loss", "seconds", "reason", "checkpoint"])


def line(**fields: object) -> str:
    return json.dumps(fields)


def test_steps_and_the_checkpoint_are_told() -> None:
    told = progress_of(
        [
            line(event="start", of=20),
            "a warning of a library",
            line(event="step", step=3, of=20, loss=0.5, validation=0.4, seconds=12.5),
            line(event="warning", reason="some files could not be read"),
            line(event="done", checkpoint="mine.safetensors"),
        ]
    )
    assert told == Progress(
        *(3, 20, "step", 0.5, 0.4, 12.5, "mine.safetensors", "some files could not be read")
    )


def test_a_run_may_count_epochs() -> None:
    told = progress_of([line(event="epoch", epoch=3, of=20)])
    assert told == Progress(3, 20, "epoch")


def test_fields_that_are_missing_stay_as_they_were() -> None:
    told = progress_of([line(event="step", step=3, of=20, loss=0.5), line(event="step")])
    assert told == Progress(3, 20, loss=0.5)


def test_trouble_lasts_until_it_is_said_to_be_over() -> None:
    lines = [line(event="step", step=3, trouble="no store"), line(event="step", step=4)]
    told = progress_of(lines)
    assert told is not None
    assert told.trouble == "no store"
    assert told.after(Event("step", {"step": 5, "trouble": None})).trouble is None


def test_lines_without_an_event_say_nothing() -> None:
    assert progress_of(["a line", "{", "[]", '{"epoch": 3}', '{"event": 3}']) is None


def test_an_attempt_that_starts_over_has_no_error_yet() -> None:
    lines = [line(event="error", reason="lost peer"), line(event="start")]
    told = progress_of(lines)
    assert told is not None
    assert told.error is None


@pytest.mark.parametrize("value", [True, "3", None, float("nan"), float("inf"), [], 10**400])
def test_a_value_of_the_wrong_kind_is_passed_over(value: object) -> None:
    told = progress_of([line(event="epoch", epoch=value, of=value, loss=value)])
    assert told == Progress()


@given(st.dictionaries(FIELDS, JSON, max_size=4), st.sampled_from(["epoch", "done", "error", ""]))
def test_nothing_that_a_job_prints_is_an_error(fields: dict, kind: str) -> None:
    progress_of([json.dumps({**fields, "event": kind}), json.dumps(fields)])
    last_words([json.dumps({**fields, "event": "error"}), kind])


def test_a_line_of_many_brackets_is_no_event() -> None:
    assert parse_event('{"event": ' + "[" * 60_000) is None


def test_the_last_error_says_more_than_the_last_line() -> None:
    lines = [line(event="error", reason="cells.csv: no samples"), "Traceback", "rancast: other"]
    assert last_words(lines) == "cells.csv: no samples"
    assert last_words(lines[1:]) == "other"
    assert last_words(["", " "]) is None


TORCHRUN = (
    "W1130 15:00:29.020000 4581 torch/distributed/elastic/multiprocessing/api.py:1028] Sending "
    "process 4667 closing signal SIGTERM",
    "E1130 15:00:29.040000 4581 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
    "(exitcode: 1) local_rank: 1 (pid: 4668) of binary: python3",
)


def test_what_the_launcher_says_last_is_not_the_reason() -> None:
    lines = ["Traceback (most recent call last):", "RuntimeError: no room", *TORCHRUN]
    assert last_words(lines) == "RuntimeError: no room"
    assert last_words(TORCHRUN) == TORCHRUN[-1]
