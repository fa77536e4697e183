import asyncio
import time

import pytest

from service.clock import SystemClock

pytestmark = pytest.mark.anyio


async def test_a_call_is_made_once_its_instant_is_reached():
    clock = SystemClock()
    called = asyncio.Event()
    clock.call_at(clock.monotonic_s() + 0.001, called.set)
    await asyncio.wait_for(called.wait(), 30)


async def test_a_call_whose_instant_has_passed_is_made_at_once():
    clock = SystemClock()
    called = asyncio.Event()
    clock.call_at(clock.monotonic_s() - 5, called.set)
    await asyncio.wait_for(called.wait(), 30)


async def test_a_cancelled_call_is_not_made():
    clock = SystemClock()
    calls: list[str] = []
    last = asyncio.Event()
    clock.call_at(clock.monotonic_s(), lambda: calls.append("cancelled")).cancel()
    clock.call_at(clock.monotonic_s(), last.set)
    await asyncio.wait_for(last.wait(), 30)
    assert calls == []


def test_the_wall_clock_counts_milliseconds_since_1970():
    before_s = time.time()
    assert before_s - 1 <= SystemClock().now_ms() / 1000 <= time.time() + 1
