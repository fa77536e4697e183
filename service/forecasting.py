"""From windows to the HTTP answer, shared by every route that forecasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from fastapi import Request
from fastapi.responses import Response

from model.predictor import Forecast
from service.answers import forecast_answer
from service.bodies import JSON_MEDIA_TYPE
from service.budget import BUDGET_HEADER, Deadline
from service.container import Running, Services
from service.errors import ClientGoneError, DeadlineError
from service.metrics import Stage
from service.middleware import timing_of
from service.series import NamedWindow

# Above this many numbers, a few milliseconds' work, the answer is written on another thread.
_OFFLOAD_NUMBERS = 5_000


def deadline_of(
    request: Request, services: Services, stated_ms: float | None, path: str
) -> Deadline:
    """When the answer to this request is due, counted from its arrival.

    Raises:
        InvalidRequestError: The stated budget is outside the profile's bounds.
    """
    timing = timing_of(request)
    deadline = services.policy.deadline(
        timing.arrival_s,
        stated_ms=stated_ms,
        path=path,
        header=request.headers.get(BUDGET_HEADER),
    )
    timing.budget_ms = deadline.budget_ms
    return deadline


async def answer_forecast(
    request: Request,
    services: Services,
    running: Running,
    named: Sequence[NamedWindow],
    horizon: int,
    levels: Sequence[float],
    deadline: Deadline,
    on_forecasts: Callable[[Sequence[Forecast]], None] | None = None,
) -> Response:
    """Forecast the windows and write the answer, before the deadline or not at all.

    `on_forecasts` is told of forecasts that are answered; it returns at once.

    Raises:
        OverloadedError: The queue is full.
        DeadlineError: The answer would be late.
        ClientGoneError: The client left; its windows were taken out of the queue.
        InferenceError: The model failed.
    """
    answer = running.engine.submit([one.window for one in named], horizon, levels, deadline)
    forecasts = await _unless_gone(request, answer)
    with services.metrics.timed(Stage.ENCODE):
        if sum(forecast.values.size for forecast in forecasts) <= _OFFLOAD_NUMBERS:
            body = _encode(services, running, named, forecasts)
        else:
            body = await asyncio.to_thread(_encode, services, running, named, forecasts)
    if deadline.has_passed(services.clock.monotonic_s()):
        raise DeadlineError(Stage.ENCODE, deadline.budget_ms)
    services.metrics.count_forecasts(forecast.rung for forecast in forecasts)
    if on_forecasts is not None:
        on_forecasts(forecasts)
    return Response(body, media_type=JSON_MEDIA_TYPE)


async def _unless_gone(request: Request, answer: asyncio.Future[list[Forecast]]) -> list[Forecast]:
    """The answer, which is cancelled as soon as the client closes its connection."""
    watcher = asyncio.create_task(_until_gone(request))
    watcher.add_done_callback(lambda _: answer.cancel())
    try:
        return await answer
    except asyncio.CancelledError:
        if watcher.done() and not watcher.cancelled():
            raise ClientGoneError("the client left before the answer was ready") from None
        raise
    finally:
        watcher.cancel()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _encode(
    services: Services,
    running: Running,
    named: Sequence[NamedWindow],
    forecasts: Sequence[Forecast],
) -> bytes:
    return forecast_answer(
        running.engine.predictor.identity,
        forecasts,
        [one.spell(forecast.kpis) for one, forecast in zip(named, forecasts, strict=True)],
        now_ms=services.clock.now_ms(),
    )
