"""The C++ that reads bodies keeps within its buffers, whatever it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import example, given

from tests.service.fuzzing.bodies import FORECAST, OBSERVATIONS, PADDED
from tests.service.fuzzing.effort import effort
from tests.service.fuzzing.mutations import damaged, exchanged
from tests.service.fuzzing.sanitized import NoSanitizerError, SanitizedCutter, sanitized_cutter

GOOD = [json.dumps(FORECAST).encode(), json.dumps(OBSERVATIONS).encode(), PADDED]


@pytest.fixture(scope="module")
def cutter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SanitizedCutter]:
    try:
        with sanitized_cutter(tmp_path_factory.mktemp("sanitized")) as built:
            yield built
    except NoSanitizerError as error:
        pytest.skip(f"no C++ compiler with sanitizers: {error}")


@pytest.mark.parametrize("body", GOOD)
def test_good_bodies_are_cut(cutter: SanitizedCutter, body: bytes) -> None:
    lists, length = cutter.cut(body)
    assert lists >= 2
    assert 0 < length < len(body)


@effort()
@given(body=damaged(GOOD))
@example(body=b"{[{{" + b"[1]" * 80_000)
@example(body=b"{[{{" + b'"":[1],' * 30_000)
@example(body=b'{"series":[{"kpis":{"A":[1,')
@example(body=b'{"series":[{"kpis":{"A":[nul')
@example(body=b'{"series":[{"kpis":{"A":[1.')
@example(body=b'{"series":[{"kpis":{"A":[1e')
@example(body=b'{"\\')
@example(body=b"")
def test_damaged_bodies_stay_within_the_buffers(cutter: SanitizedCutter, body: bytes) -> None:
    cutter.cut(body)


@effort()
@given(body=exchanged([FORECAST, OBSERVATIONS]))
def test_odd_bodies_stay_within_the_buffers(cutter: SanitizedCutter, body: bytes) -> None:
    cutter.cut(body)


def test_an_error_of_memory_is_seen_and_the_next_body_is_read(tmp_path) -> None:
    # A pipe that says less than it states: the driver ends, as it would with a sanitizer's report.
    try:
        with sanitized_cutter(tmp_path) as one:
            process = one._started()
            process.kill()
            process.wait()
            with pytest.raises(AssertionError, match="failed on"):
                one.cut(b"{}")
            assert one.cut(b"{}") == (0, 2)
    except NoSanitizerError as error:
        pytest.skip(f"no C++ compiler with sanitizers: {error}")
