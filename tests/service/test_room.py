from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import OverloadedError
from service.room import SMALL_BYTES, TINY_BYTES, BodyRoom

LARGE = SMALL_BYTES + 1


def test_a_body_that_does_not_fit_beside_the_others_is_refused_and_a_retry_succeeds():
    room = BodyRoom(2 * LARGE)
    with room.visit() as first, room.visit() as second, room.visit() as third:
        first.grow(LARGE)
        second.grow(LARGE)
        with pytest.raises(OverloadedError, match=f"{2 * LARGE} bytes are in work"):
            third.grow(LARGE)
    with room.visit() as again:
        again.grow(LARGE)


def test_tiny_bodies_pass_without_asking_for_room():
    room = BodyRoom(LARGE, 0)
    with room.visit() as large, room.visit() as tiny:
        large.grow(LARGE)
        tiny.grow(TINY_BYTES)
    assert room.taken_bytes == 0


def test_small_bodies_have_room_of_their_own_that_ends_as_well():
    room = BodyRoom(LARGE, 2 * SMALL_BYTES)
    with ExitStack() as stack:
        large, *small = (stack.enter_context(room.visit()) for _ in range(4))
        large.grow(LARGE)
        for visit in small[:2]:
            visit.grow(SMALL_BYTES)
        with pytest.raises(OverloadedError, match="small bodies"):
            small[2].grow(TINY_BYTES + 1)
    assert room.taken_bytes == 0


def test_a_body_that_becomes_large_leaves_the_room_of_the_small_ones():
    room = BodyRoom(2 * LARGE, SMALL_BYTES)
    with room.visit() as visit, room.visit() as other:
        visit.grow(SMALL_BYTES)
        visit.grow(LARGE)
        assert room.taken_bytes == LARGE
        other.grow(SMALL_BYTES)


def test_small_bodies_have_half_the_room_of_large_ones_unless_it_is_said():
    room = BodyRoom(4 * SMALL_BYTES)
    with room.visit() as first, room.visit() as second, room.visit() as third:
        first.grow(SMALL_BYTES)
        second.grow(SMALL_BYTES)
        with pytest.raises(OverloadedError):
            third.grow(SMALL_BYTES)


def test_a_body_that_grows_needs_room_for_its_size_once():
    room = BodyRoom(2 * LARGE)
    with room.visit() as visit:
        for size in (1, LARGE, LARGE, LARGE + 5):
            visit.grow(size)
        assert room.taken_bytes == LARGE + 5


@given(st.lists(st.integers(0, 3 * SMALL_BYTES), max_size=8))
def test_all_room_is_free_again_after_the_visits_however_they_end(sizes):
    room = BodyRoom(4 * SMALL_BYTES)
    for size in sizes:
        try:
            with room.visit() as visit:
                visit.grow(size)
                raise KeyError
        except (KeyError, OverloadedError):
            pass
    assert room.taken_bytes == 0
