"""The client for programs with an event loop (asyncio)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

import httpx

from service.client.answers import (
    ForecastAnswer,
    Model,
    StoredCell,
    StoredCount,
    read_answer,
)
from service.client.attempts import Attempts
from service.client.calls import (
    Call,
    Demands,
    cell_call,
    cell_forecast_call,
    cells_call,
    forecast_call,
    model_call,
    observations_call,
)
from service.client.connection import Connection
from service.client.errors import (
    ClientError,
    DeadlineExceededError,
    UnreachableError,
    error_of,
)
from service.client.series import Series

Answer = TypeVar("Answer")


class AsyncRancastClient:
    """A client of one service; any number of calls may be under way.

    Each method takes `timeout_s`, the seconds that all tries of the call have together, and raises
    the errors of `service.client.errors`.

    Args:
        connection: Where the server is, or its address alone.
        transport: Used instead of the network, by tests.
        monotonic_s: The clock.
        sleep: Waits for so many seconds between two tries.
    """

    def __init__(
        self,
        connection: Connection | str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._connection = Connection(connection) if isinstance(connection, str) else connection
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        tls = self._connection.tls
        self._http = httpx.AsyncClient(
            base_url=self._connection.base_url,
            transport=transport,
            verify=True if tls is None else tls,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection!r})"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def forecast(
        self,
        series: Sequence[Series],
        horizon: int,
        *,
        quantiles: Sequence[float] | None = None,
        budget_ms: float | None = None,
        minimum_rung: str | None = None,
        priority: str | None = None,
        model: str | None = None,
        timeout_s: float | None = None,
    ) -> ForecastAnswer:
        """Forecast histories.

        Args:
            series: One a cell.
            horizon: Steps to forecast.
            quantiles: Levels in ascending order; None: 0.1, 0.5 and 0.9.
            budget_ms: Latency budget that the server is told; None: the time that is left, if a
                timeout was stated, or else the server's default.
            minimum_rung: Least rung that is an answer: full, short or baseline.
            priority: control or batch.
            model: Who answers: NAME or NAME@VERSION.
            timeout_s: Seconds that the call may take.
        """
        demands = Demands(minimum_rung, priority, model)
        call = forecast_call(series, horizon, quantiles, demands)
        return await self._run(call, timeout_s, budget_ms)

    async def cell_forecast(
        self,
        cell: str,
        horizon: int | None = None,
        *,
        quantiles: Sequence[float] | None = None,
        kpis: Sequence[str] | None = None,
        step_seconds: float | None = None,
        time_zone: str | None = None,
        country: str | None = None,
        budget_ms: float | None = None,
        minimum_rung: str | None = None,
        priority: str | None = None,
        model: str | None = None,
        timeout_s: float | None = None,
    ) -> ForecastAnswer:
        """Forecast a cell from what the store holds of it.

        Args:
            cell: Its name.
            horizon: Steps to forecast; None: the server's default.
            quantiles: Levels in ascending order; None: 0.1, 0.5 and 0.9.
            kpis: Which of its KPIs; None: all.
            step_seconds: Which of its period lengths; None: the finest.
            time_zone: IANA zone that the cell's daily life follows.
            country: Country whose public holidays hold.
            budget_ms: Latency budget that the server is told; None: the time that is left, if a
                timeout was stated, or else the server's default.
            minimum_rung: Least rung that is an answer: full, short or baseline.
            priority: control or batch.
            model: Who answers: NAME or NAME@VERSION.
            timeout_s: Seconds that the call may take.
        """
        demands = Demands(minimum_rung, priority, model)
        call = cell_forecast_call(
            cell, horizon, quantiles, kpis, step_seconds, time_zone, country, demands
        )
        return await self._run(call, timeout_s, budget_ms)

    async def observations(
        self,
        series: Sequence[Series],
        *,
        may_resend: bool = False,
        timeout_s: float | None = None,
    ) -> StoredCount:
        """Have samples kept.

        Args:
            series: One a cell.
            may_resend: Whether they may be sent again where the connection broke and they may have
                arrived: it could undo a correction that came in between.
            timeout_s: Seconds that the call may take.
        """
        return await self._run(observations_call(series, may_resend=may_resend), timeout_s)

    async def cells(self, *, timeout_s: float | None = None) -> AsyncIterator[StoredCell]:
        """All stored cells in order of their names; the timeout is that of one page."""
        after: str | None = None
        while True:
            page = await self._run(cells_call(after), timeout_s)
            for cell in page.cells:
                yield cell
            after = page.after
            if after is None:
                return

    async def cell(self, cell: str, *, timeout_s: float | None = None) -> tuple[StoredCell, ...]:
        """One stored cell, once for each period length."""
        return await self._run(cell_call(cell), timeout_s)

    async def model(self, *, timeout_s: float | None = None) -> Model:
        """The model that answers."""
        return await self._run(model_call(), timeout_s)

    async def _run(
        self, call: Call[Answer], timeout_s: float | None, budget_ms: float | None = None
    ) -> Answer:
        attempts = Attempts(
            self._connection,
            timeout_s,
            budget_ms,
            self._monotonic_s,
            may_resend=call.may_resend,
        )
        while True:
            try:
                return await self._try(call, attempts)
            except ClientError as error:
                pause_s = attempts.pause_s(error)
            await self._sleep(pause_s)

    async def _try(self, call: Call[Answer], attempts: Attempts) -> Answer:
        headers = self._connection.authorization()
        if call.has_budget:
            headers |= attempts.budget_header()
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        request = self._http.build_request(
            call.method,
            call.path,
            params=call.query or None,
            content=call.body,
            headers=headers,
            timeout=None,
        )
        try:
            # One bound for all waits together; httpx would bound each of them.
            async with asyncio.timeout(attempts.remaining_s()):
                answer = await self._http.send(request)
        except TimeoutError:
            raise DeadlineExceededError("no answer in time") from None
        except httpx.RequestError as error:
            raise UnreachableError(
                f"{self._connection.base_url}: {error or type(error).__name__}",
                is_sent=not isinstance(error, httpx.ConnectError),
            ) from None
        if not answer.is_success:
            said = answer.headers
            raise error_of(
                answer.status_code, said.get("retry-after"), answer.content, said.get("date")
            )
        return read_answer(answer.content, call.reader)
