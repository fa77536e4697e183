"""From windows to the HTTP answer, shared by every route that forecasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from fastapi import Request
from fastapi.responses import Response

from model.predictor import Forecast
from service.codecs.answer_forms import JSON_FORM, AnswerForm
from service.container import Running, Services
from service.engine import Answer, Ask
from service.errors import ClientGoneError, DeadlineError
from service.metrics import Stage
from service.models.served import ServedModel
from service.series import NamedWindow
from service.timing import timing_of

# Above this many numbers, a few milliseconds' work, the answer is written on another thread.
_OFFLOAD_NUMBERS = 8_192


async def answer_forecast(
    request: Request,
    services: Services,
    running: Running,
    model: ServedModel,
    named: Sequence[NamedWindow],
    ask: Ask,
    form: AnswerForm = JSON_FORM,
    on_forecasts: Callable[[Sequence[Forecast]], None] | None = None,
) -> Response:
    """Forecast the windows and write the answer, before the deadline or not at all.

    `on_forecasts` is told of forecasts that are answered; it returns at once.

    Raises:
        OverloadedError: The queue is full, or no rung would be in time.
        DeadlineError: The answer would be late.
        ClientGoneError: The client left; its windows were taken out of the queue.
        InferenceError: The model failed.
    """
    answer = await forecast_windows(request, running, model, named, ask)
    encode = partial(_encode, services, named, answer.forecasts, form)
    body = await write_answer(request, services, running, answer, ask, encode)
    if on_forecasts is not None:
        on_forecasts(answer.forecasts)
    return Response(body, media_type=form.media_type)


async def write_answer(
    request: Request,
    services: Services,
    running: Running,
    answer: Answer,
    ask: Ask,
    encode: Callable[[], bytes],
) -> bytes:
    """The bytes of an answer, in time; counts its forecasts.

    Args:
        request: Who asked.
        services: Clock and metrics.
        running: Whose engine answered.
        answer: What is written; much of it is written on another thread.
        ask: When it is due.
        encode: Writes it.

    Raises:
        DeadlineError: It is ready too late.
    """
    begun_s = services.clock.monotonic_s()
    with timing_of(request).stage(Stage.ENCODE):
        if sum(forecast.values.size for forecast in answer.forecasts) <= _OFFLOAD_NUMBERS:
            body = encode()
        else:
            body = await asyncio.to_thread(encode)
    running.engine.observe_answer(answer, services.clock.monotonic_s() - begun_s)
    if ask.deadline.has_passed(services.clock.monotonic_s()):
        raise DeadlineError(Stage.ENCODE, ask.deadline.budget_ms)
    services.metrics.count_forecasts(
        answer.forecasts[0].model, (forecast.rung for forecast in answer.forecasts)
    )
    return body


async def forecast_windows(
    request: Request,
    running: Running,
    model: ServedModel,
    named: Sequence[NamedWindow],
    ask: Ask,
) -> Answer:
    """What a model makes of the windows, unless the client leaves.

    Raises:
        OverloadedError: The queue is full, or no rung would be in time.
        DeadlineError: The budget ran out.
        ClientGoneError: The client left; its windows were taken out of the queue.
        InferenceError: The model failed.
    """
    timing = timing_of(request)
    windows = [one.window for one in named]
    answer = await _unless_gone(request, running.engine.submit(windows, ask, model.ladder))
    timing.note(Stage.QUEUE, answer.queued_s)
    timing.note(Stage.INFER, answer.inferring_s)
    return answer


async def _unless_gone(request: Request, answer: asyncio.Future[Answer]) -> Answer:
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
    named: Sequence[NamedWindow],
    forecasts: Sequence[Forecast],
    form: AnswerForm,
) -> bytes:
    return form.encode(
        forecasts[0].model,
        forecasts,
        [one.spell(forecast.kpis) for one, forecast in zip(named, forecasts, strict=True)],
        now_ms=services.clock.now_ms(),
    )
