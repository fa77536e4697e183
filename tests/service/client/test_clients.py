"""Both clients against a real server, by the same tests."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np
import pytest

from service.client import (
    AsyncRancastClient,
    Connection,
    DeadlineExceededError,
    InvalidCallError,
    NotHeldError,
    OverloadedError,
    RancastClient,
    Series,
    UnavailableError,
    UnreachableError,
)
from service.container import Phase
from service.settings import Settings
from tests.service.fakes import RepeatLast
from tests.service.live import Live, live, unused_address

START = datetime(2026, 11, 1, 10, tzinfo=UTC)
CELL = "ManagedElement=1/a,NRCellDU=32"


def series(**changes: Any) -> Series:
    kpis = {"RRU.PrbTotDl": [12.0, None, 15.5], "pmX": np.array([3.0, np.nan, 4.0])}
    return Series(**{"cell": CELL, "start": START, "step_seconds": 900, "kpis": kpis, **changes})


class Driver:
    """Calls one of the two clients, so that a test need not know which."""

    def __init__(self, *, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.pauses: list[float] = []
        self.on_pause = lambda: None

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.on_pause()

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)

    def call(self, connection: Connection | str, method: str, *values: Any, **named: Any) -> Any:
        if not self.asynchronous:
            with RancastClient(connection, sleep=self.sleep) as client:
                answer = getattr(client, method)(*values, **named)
                return list(answer) if inspect.isgenerator(answer) else answer
        return asyncio.run(self._call(connection, method, *values, **named))

    async def _call(
        self, connection: Connection | str, method: str, *values: Any, **named: Any
    ) -> Any:
        async with AsyncRancastClient(connection, sleep=self.sleep_async) as client:
            answer = getattr(client, method)(*values, **named)
            if inspect.isasyncgen(answer):
                return [each async for each in answer]
            return await answer


@pytest.fixture(params=[False, True], ids=["blocking", "asynchronous"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return Driver(asynchronous=request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live(Settings(profile="non-rt")) as running:
        yield running


@contextmanager
def busy() -> Iterator[tuple[Live, Callable[[], None]]]:
    """A server with room for one request, which is under way until it is let finish."""
    model = RepeatLast()
    with live(Settings(profile="non-rt", queue_limit=1), model) as running:
        model.forget_warm_up()
        model.gate.clear()
        holder = threading.Thread(
            target=httpx.post,
            args=(f"{running.url}/v1/models/fake:predict",),
            kwargs={"json": {"instances": [[1]]}, "timeout": 60},
        )

        def finish() -> None:
            model.gate.set()
            holder.join(60)

        holder.start()
        try:
            assert model.entered.acquire(timeout=30)
            yield running, finish
        finally:
            finish()


def test_a_forecast_comes_back_as_an_array(driver, server):
    answer = driver.call(server.url, "forecast", [series()], 2, quantiles=[0.1, 0.9])
    assert answer.model.name == "fake"
    (forecast,) = answer.forecasts
    assert forecast.cell == CELL
    assert forecast.kpis == ("RRU.PrbTotDl", "pmX")
    assert forecast.levels == (0.1, 0.9)
    assert forecast.values.shape == (2, 2, 2)
    np.testing.assert_allclose(forecast.values[0], [[15.6, 16.4]] * 2)
    np.testing.assert_allclose(forecast.quantile("pmX", 0.9), [4.9, 4.9])
    assert forecast.start == datetime(2026, 11, 1, 10, 45, tzinfo=UTC)
    assert forecast.context.missing_ratio == pytest.approx(1 / 3, abs=1e-6)
    assert forecast.rung == "full"


def test_what_cannot_be_said_is_nan(driver, server):
    answer = driver.call(server.url, "forecast", [series(kpis={"a": [None]})], 1)
    assert np.isnan(answer.forecasts[0].values).all()
    assert answer.forecasts[0].context.age_seconds is None


def test_what_was_kept_is_listed_and_forecast(driver, server):
    kept = driver.call(server.url, "observations", [series()])
    assert kept.rejected == ()
    assert kept.accepted == 6
    (listed,) = driver.call(server.url, "cells")
    assert listed == driver.call(server.url, "cell", CELL)[0]
    assert (listed.cell, listed.step_seconds, listed.first) == (CELL, 900, START)
    answer = driver.call(server.url, "cell_forecast", CELL, 3, kpis=["pmX"], quantiles=[0.5])
    np.testing.assert_allclose(answer.forecasts[0].values, [[[4.5]] * 3])


def test_the_model_says_what_it_can_be_asked(driver, server):
    model = driver.call(server.url, "model")
    assert (model.name, model.max_horizon, model.quantile_range) == ("fake", 48, (0.05, 0.95))
    assert model.card["digest"] == model.digest


def test_a_value_that_cannot_be_used_is_an_error_that_names_its_place(driver, server):
    with pytest.raises(InvalidCallError, match="/horizon: expected a horizon of 1 to 48") as caught:
        driver.call(server.url, "forecast", [series()], 99)
    assert caught.value.problem.faults[0].path == "/horizon"
    assert driver.pauses == []


def test_a_cell_that_is_not_held_is_an_error_of_its_own(driver, server):
    with pytest.raises(NotHeldError, match="unknown"):
        driver.call(server.url, "cell_forecast", "nowhere")


def test_a_busy_server_is_asked_again_when_it_said(driver):
    with busy() as (running, finish):
        driver.on_pause = finish
        answer = driver.call(running.url, "forecast", [series()], 1)
    assert len(answer.forecasts) == 1
    assert driver.pauses == [1.0]


def test_a_server_that_stays_busy_for_longer_than_the_call_may_take_is_an_error_at_once(driver):
    with busy() as (running, _):
        with pytest.raises(OverloadedError) as caught:
            driver.call(Connection(running.url, timeout_s=0.9), "forecast", [series()], 1)
        assert caught.value.problem.retry_after_s == 1
    assert driver.pauses == []


def test_a_call_ends_with_its_timeout(driver):
    model = RepeatLast()
    with live(Settings(profile="non-rt"), model) as running:
        model.gate.clear()
        try:
            with pytest.raises(DeadlineExceededError):
                driver.call(Connection(running.url, timeout_s=0.1), "forecast", [series()], 1)
        finally:
            model.gate.set()


def test_the_servers_own_deadline_is_the_same_error(driver):
    model = RepeatLast()
    with live(Settings(profile="non-rt"), model) as running:
        model.gate.clear()
        try:
            with pytest.raises(DeadlineExceededError, match="budget of 20 ms"):
                driver.call(running.url, "forecast", [series()], 1, budget_ms=20)
        finally:
            model.gate.set()


def test_a_server_that_is_not_there_is_tried_to_the_end(driver):
    address = unused_address()
    connection = Connection(address, most_attempts=3)
    with pytest.raises(UnreachableError, match=address):
        driver.call(connection, "model")
    assert len(driver.pauses) == 2


def test_a_stopping_server_is_asked_again(driver):
    with live() as running:
        services = running.app.state.services
        services.move_to(Phase.DRAINING, "stopping")
        with pytest.raises(UnavailableError, match="stopping"):
            driver.call(Connection(running.url, most_attempts=2), "model")
        assert driver.pauses == [5.0]
        driver.on_pause = lambda: services.move_to(Phase.READY)
        services.move_to(Phase.DRAINING, "stopping")
        assert driver.call(running.url, "model").name == "fake"
