import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.request_identity import identify, instance_of, keep_identity, parse_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SOUND = f"00-{TRACE}-{PARENT}-01".encode()


def test_a_sound_trace_is_continued_with_a_span_of_ours():
    trace = parse_traceparent(SOUND)
    assert trace is not None
    assert trace.trace_id == TRACE
    assert trace.span_id != PARENT
    assert re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-01", trace.header.decode())


def test_flags_that_we_do_not_know_are_not_handed_on():
    trace = parse_traceparent(f"00-{TRACE}-{PARENT}-fe".encode())
    assert trace is not None
    assert trace.header.endswith(b"-00")


def test_a_later_version_is_read_as_far_as_we_know_it():
    trace = parse_traceparent(f"cc-{TRACE}-{PARENT}-01-what-comes-later".encode())
    assert trace is not None
    assert trace.trace_id == TRACE
    assert trace.header.startswith(b"00-")


@pytest.mark.parametrize(
    "value",
    [
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}",
        "",
    ],
)
def test_a_trace_that_is_not_sound_is_not_taken(value):
    assert parse_traceparent(value.encode()) is None


def test_two_traces_are_none():
    assert identify([(b"traceparent", SOUND), (b"traceparent", SOUND)]).trace is None


@pytest.mark.parametrize("value", [b"a", b"req-1.2_3~4:5@6=7+8", b"x" * 128])
def test_a_sane_id_is_taken(value):
    assert identify([(b"x-request-id", value)]).request_id == value.decode()


@pytest.mark.parametrize("value", [b"", b"a b", b'"', b"a\nb", b"\xff", b"<x>", b"x" * 129])
def test_another_id_is_replaced(value):
    assert re.fullmatch(r"[0-9a-f]{24}", identify([(b"x-request-id", value)]).request_id)


def test_ids_of_ours_are_told_apart():
    assert len({identify([]).request_id for _ in range(100)}) == 100


@given(st.binary(max_size=200))
def test_whatever_comes_the_instance_is_a_urn(value):
    scope: dict[str, object] = {}
    keep_identity(scope, identify([(b"x-request-id", value), (b"traceparent", value)]))
    instance = instance_of(scope)
    assert instance is not None
    assert re.fullmatch(r"urn:rancast:request:[A-Za-z0-9._~:@=+-]+", instance)
