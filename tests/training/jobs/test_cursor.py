"""A log that is read again from before gives every line once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from training.jobs.cluster.cursor import Cursor

SECOND = "2026-11-30T12:00:00"


def stamped(nanoseconds: int, text: str) -> str:
    fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    return f"{SECOND}{fraction}Z {text}"


@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 10, 100_000_000]), min_size=1, max_size=9),
    connections=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6),
)
def test_whatever_breaks_each_line_is_taken_once_and_in_order(
    gaps: list[int], connections: list[tuple[int, int]]
) -> None:
    # Several lines may bear the same moment, and stamps are printed without zeros at the end.
    stamps = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    lines = [stamped(stamp, f"line {index}") for index, stamp in enumerate(stamps)]
    cursor, taken, read = Cursor(), [], 0
    for earliest, count in [*connections, (0, len(lines))]:
        # A server brings all lines since some moment, and that is not after the last one read.
        moment = stamps[min(earliest, read - 1)] if read else stamps[0]
        first = stamps.index(moment)
        cursor.restart()
        for line in lines[first : first + count]:
            if (text := cursor.take(line)) is not None:
                taken.append(text)
        read = max(read, min(first + count, len(lines)))
    assert taken == [f"line {index}" for index in range(len(lines))]


def test_a_stamp_with_fewer_digits_is_not_taken_for_a_later_one() -> None:
    cursor = Cursor()
    assert cursor.take(f"{SECOND}.12Z first") == "first"
    cursor.restart()
    assert cursor.take(f"{SECOND}.123Z second") == "second"


def test_zones_are_compared_as_moments() -> None:
    cursor = Cursor()
    assert cursor.take("2026-11-30T12:00:00Z first") == "first"
    cursor.restart()
    assert cursor.take("2026-11-30T13:00:00+01:00 first") is None
    assert cursor.take("2026-11-30T13:00:00.5+01:00 second") == "second"


def test_lines_that_are_out_of_order_within_a_connection_are_kept() -> None:
    cursor = Cursor()
    assert cursor.take(stamped(5, "a")) == "a"
    assert cursor.take(stamped(4, "b")) == "b"


def test_a_line_without_a_stamp_is_passed_on() -> None:
    assert Cursor().take("plain text") == "plain text"


def test_an_empty_line_stays_an_empty_line() -> None:
    assert Cursor().take(f"{SECOND}Z ") == ""
    assert Cursor().take(f"{SECOND}Z") == ""
