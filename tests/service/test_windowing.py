import threading

import pytest
from fastapi import Request
from prometheus_client import CollectorRegistry

from service.metrics import Metrics, Stage
from service.timing import SCOPE_KEY, RequestTiming
from service.windowing import build_windows
from tests.service.fakes import FakeClock, serving

pytestmark = pytest.mark.anyio


class Counted:
    """Histories that only note who asks for their windows, and with what."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.thread: int | None = None
        self.arguments: tuple[object, ...] | None = None

    def __len__(self):
        return self.count

    def windows(self, *arguments):
        self.thread = threading.get_ident()
        self.arguments = arguments
        return [None] * self.count

    def observations(self, *_, **__):
        raise NotImplementedError


@pytest.mark.parametrize(("count", "is_here"), [(1, True), (64, True), (65, False)])
async def test_many_windows_are_built_on_another_thread(count, is_here):
    clock = FakeClock()
    timing = RequestTiming(0.0, clock, Metrics(CollectorRegistry(), clock, "near-rt"))
    histories = Counted(count)
    async with serving() as client:
        request = Request({"type": "http", SCOPE_KEY: timing})
        built = await build_windows(request, client.services, histories)
        settings = client.services.settings
        assert histories.arguments is not None
        assert histories.arguments[2:] == (settings.time_zone, settings.holiday_country)
    assert len(built) == count
    assert (histories.thread == threading.get_ident()) is is_here
    assert Stage.WINDOW in timing.stages_s
