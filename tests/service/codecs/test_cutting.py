"""What is cut out of a text, and that nothing is written outside the room there is for it."""

import ctypes
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codecs.cutting import OF_SERIES, cut_samples

GUARD = 0xA5
EVERYWHERE = (OF_SERIES, "2{[", "8{[{data")


def cut_guarded(library: Any, text: bytes, room: int, places: tuple[str, ...] = EVERYWHERE) -> int:
    """Cut with `room` elements for skeleton, values and notes; fails where more is written."""
    sizes = {"skeleton": room, "values": 8 * room, "notes": 8 * room}
    memory = {name: np.full(size + 4096, GUARD, np.uint8) for name, size in sizes.items()}
    length = ctypes.c_int64()
    found = library.at_once(
        text,
        len(text),
        "".join(f"{place} " for place in places).encode(),
        memory["skeleton"].ctypes.data,
        room,
        ctypes.byref(length),
        memory["values"].ctypes.data,
        room,
        memory["notes"].ctypes.data,
        room,
    )
    for name, size in sizes.items():
        assert (memory[name][size:] == GUARD).all(), name
    return int(found)


@pytest.mark.parametrize("count", [3, 1000, 20_000])
@pytest.mark.parametrize("between", ["", ":", ","])
def test_lists_without_names_write_nothing_outside_their_room(built_reader, count, between):
    text = b'{"":[{"":{' + f"{between}[1]".encode() * count
    assert cut_guarded(built_reader, text, 2 * len(text)) >= -1
    if between != ":":
        assert cut_guarded(built_reader, text, 2 * len(text)) == -1


def test_marks_that_are_longer_than_their_lists_are_bounded(built_reader):
    text = b'{"":[{"":{' + b":[1]" * 150_000  # of six digits, in twice the room of three letters
    assert cut_guarded(built_reader, text, 2 * len(text)) == -1
    assert cut_guarded(built_reader, text, 3 * len(text)) == 150_000


@given(
    st.lists(st.sampled_from(['{"":', "[", "]", "}", ",", ":", "[1]", "null", '""', '"data"', " "]))
    .map("".join)
    .map(str.encode),
    st.integers(0, 60),
)
def test_any_text_stays_within_any_room(built_reader, text, room):
    cut_guarded(built_reader, text, room)
    cut_guarded(built_reader, b'{"":[{"":{' + text, room)
    cut_guarded(built_reader, b'{"":[{"data":' + text, room)


def test_a_text_that_needs_more_than_its_room_is_not_cut(built_reader):
    text = json.dumps({"series": [{"kpis": {"A": [1, 2, 3], "B": [4, 5, 6]}}]}).encode()
    needed = next(room for room in range(100) if cut_guarded(built_reader, text, room) == 2)
    cut = cut_samples(text)
    assert cut is not None
    assert needed == len(cut.skeleton)
    assert all(cut_guarded(built_reader, text, room) == -1 for room in range(needed))


@pytest.mark.usefixtures("built_reader")
def test_a_skeleton_may_be_longer_than_its_text():
    kpis = ",".join(f'"{i % 10}":[{i % 10}]' for i in range(9000))
    text = '{"series":[{"kpis":{' + kpis + "}}]}"
    cut = cut_samples(text.encode())
    assert cut is not None
    assert len(cut.skeleton) > len(text)
    assert len(cut.lists) == 9000
    assert json.loads(cut.skeleton)["series"][0]["kpis"]["9"] == [8999]


FLAT = st.lists(st.integers(-99, 99) | st.none(), min_size=1, max_size=3)
NESTED = FLAT | st.lists(FLAT | st.lists(FLAT, min_size=1, max_size=2), min_size=1, max_size=3)


def as_array(nested: Any) -> Any:
    """The list as an array, None where its parts are of several shapes."""
    try:
        return np.array(nested, dtype=np.float64)
    except (ValueError, TypeError):
        return None


@pytest.mark.usefixtures("built_reader")
@given(NESTED, st.sampled_from([None, 1]))
def test_nested_lists_are_arrays_where_they_have_a_shape(nested, indent):
    text = json.dumps({"inputs": [{"shape": [7], "data": nested}]}, indent=indent).encode()
    cut = cut_samples(text, ("8{[{data",))
    expected = as_array(nested)
    if expected is None:
        assert cut is None
        return
    assert cut is not None
    assert json.loads(cut.skeleton) == {"inputs": [{"shape": [7], "data": [0]}]}
    np.testing.assert_array_equal(cut.lists[0], expected)
    assert cut.whole == [not np.isnan(expected).any()]


@pytest.mark.usefixtures("built_reader")
@pytest.mark.parametrize(
    ("numbers", "whole"),
    [
        ("1, -7, 999999999999999", True),
        ("1.0", False),
        ("1e3", False),
        ("null", False),
        ("9007199254740993", False),
    ],
)
def test_it_is_said_of_a_list_whether_its_numbers_are_whole(numbers, whole):
    cut = cut_samples(f'{{"series":[{{"kpis":{{"A":[{numbers}]}}}}]}}'.encode())
    assert cut is not None
    assert cut.whole == [whole]


@pytest.mark.usefixtures("built_reader")
def test_texts_under_the_name_of_samples_are_left():
    inputs = [{"data": [["a"]]}, {"data": ["b", 5]}, {"data": [[1, 2]]}]
    cut = cut_samples(json.dumps({"inputs": inputs}).encode(), ("8{[{data",))
    assert cut is not None
    assert json.loads(cut.skeleton) == {"inputs": [*inputs[:2], {"data": [0]}]}


@pytest.mark.usefixtures("built_reader")
@pytest.mark.parametrize(
    "text",
    [
        '{"inputs":[{"d\\u0061ta":[5]}]}',  # the same name in another spelling
        '{"inputs":[{"data":[[1],[2,3]]}]}',
        '{"inputs":[{"data":[[1],2]}]}',
        '{"inputs":[{"data":[]}]}',
        '{"inputs":[{"data":[[[[[[[[[1]]]]]]]]]}]}',
        '{"inputs":[{"data"[1]}]}',
    ],
)
def test_what_is_in_doubt_is_not_cut(text):
    assert cut_samples(text.encode(), ("8{[{data",)) is None


@pytest.mark.usefixtures("built_reader")
def test_lists_of_a_series_are_not_nested():
    assert cut_samples(b'{"series":[{"kpis":{"A":[[1]]}}]}') is None


def test_places_that_are_written_wrongly_cut_nothing(built_reader):
    for place in ("{[", "0{[", "9{[", "1", "1data"):
        assert cut_guarded(built_reader, b'{"a":[[1]]}', 100, (place,)) == -1
    assert cut_guarded(built_reader, b'{"a":[[1]]}', 100, ("1{[",) * 5) == -1
