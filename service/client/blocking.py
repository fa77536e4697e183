"""The client that waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
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
from service.client.deadline_transport import DeadlineTransport
from service.client.errors import (
    ClientError,
    DeadlineExceededError,
    UnreachableError,
    error_of,
)
from service.client.series import Series

Answer = TypeVar("Answer")


class RancastClient:
    """A client of one service; safe to use from several threads.

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
        transport: httpx.BaseTransport | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = Connection(connection) if isinstance(connection, str) else connection
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        tls = self._connection.tls or httpx.create_ssl_context()
        self._bounded = DeadlineTransport(tls) if transport is None else None
        self._http = httpx.Client(
            base_url=self._connection.base_url, transport=transport or self._bounded
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection!r})"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def forecast(
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
        return self._run(call, timeout_s, budget_ms)

    def cell_forecast(
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
        return self._run(call, timeout_s, budget_ms)

    def observations(
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
        return self._run(observations_call(series, may_resend=may_resend), timeout_s)

    def cells(self, *, timeout_s: float | None = None) -> Iterator[StoredCell]:
        """All stored cells in order of their names; the timeout is that of one page."""
        after: str | None = None
        while True:
            page = self._run(cells_call(after), timeout_s)
            yield from page.cells
            after = page.after
            if after is None:
                return

    def cell(self, cell: str, *, timeout_s: float | None = None) -> tuple[StoredCell, ...]:
        """One stored cell, once for each period length."""
        return self._run(cell_call(cell), timeout_s)

    def model(self, *, timeout_s: float | None = None) -> Model:
        """The model that answers."""
        return self._run(model_call(), timeout_s)

    def _run(
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
                return self._try(call, attempts)
            except ClientError as error:
                pause_s = attempts.pause_s(error)
            self._sleep(pause_s)

    def _try(self, call: Call[Answer], attempts: Attempts) -> Answer:
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
            timeout=attempts.remaining_s(),
        )
        chunks: list[bytes] = []
        bound = self._bounded.within(attempts.remaining_s()) if self._bounded else nullcontext()
        try:
            with bound, closing(self._http.send(request, stream=True)) as answer:
                for chunk in answer.iter_bytes():
                    chunks.append(chunk)
                    attempts.remaining_s()
        except httpx.TimeoutException as error:
            raise DeadlineExceededError(f"no answer in time ({type(error).__name__})") from None
        except httpx.RequestError as error:
            raise UnreachableError(
                f"{self._connection.base_url}: {error or type(error).__name__}",
                is_sent=not isinstance(error, httpx.ConnectError),
            ) from None
        body = b"".join(chunks)
        if not answer.is_success:
            said = answer.headers
            raise error_of(answer.status_code, said.get("retry-after"), body, said.get("date"))
        return read_answer(body, call.reader)
