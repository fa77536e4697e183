from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.kubelet_logs import log_chunks


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "main.0.log"
    file.write_text("".join(f"2026-01-01T00:00:0{n}.5Z line {n}\n" for n in range(4)))
    return file


def said(log: Path, answers: Iterator[bool] | None = None, **query: str) -> str:
    goes_on = answers or iter([False])
    return b"".join(log_chunks(log, query, lambda: next(goes_on))).decode()


def test_lines_are_given_without_their_times(log: Path) -> None:
    assert said(log) == "line 0\nline 1\nline 2\nline 3\n"


def test_times_are_given_where_they_are_asked_for(log: Path) -> None:
    assert said(log, timestamps="true").splitlines()[0] == "2026-01-01T00:00:00.5Z line 0"


def test_only_the_last_lines_are_given(log: Path) -> None:
    assert said(log, tailLines="1") == "line 3\n"


def test_only_lines_since_a_time_are_given(log: Path) -> None:
    assert said(log, sinceTime="2026-01-01T00:00:02Z") == "line 2\nline 3\n"


def test_bytes_are_counted_over_all_lines(log: Path) -> None:
    assert said(log, limitBytes="10") == "line 0\nlin"


def test_what_comes_just_before_the_end_is_not_lost(log: Path) -> None:
    def end_after_writing() -> Iterator[bool]:
        yield True
        with log.open("a") as file:
            file.write("2026-01-01T00:00:09.5Z last\n")
        yield False

    assert said(log, end_after_writing(), follow="true").endswith("line 3\nlast\n")


def test_line_that_is_being_written_is_given_once_it_is_whole(log: Path) -> None:
    with log.open("a") as file:
        file.write("2026-01-01T00:00:09.5Z half")

    def end_the_line() -> Iterator[bool]:
        yield True
        with log.open("a") as file:
            file.write(" and whole\n")
        yield False

    assert said(log, end_the_line(), follow="true").endswith("line 3\nhalf and whole\n")
