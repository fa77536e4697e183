"""`POST /v1/forecast`: histories in the request, no state."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.checks import check_horizon, check_levels
from service.codecs.answer_forms import answer_form
from service.codecs.requests import read_forecast
from service.container import services_of
from service.demands import Stated, ask_of, choose_model
from service.forecasting import answer_forecast
from service.gate import FORECAST_PATH, seen_of
from service.routes.responses import arrow_answer, demand_headers, histories_body, problems
from service.schemas import ForecastResponse
from service.windowing import build_windows

router = APIRouter(tags=["forecast"])


@router.post(
    FORECAST_PATH,
    summary="Forecast the histories in the request",
    description="Each series is a cell's regular samples; the answer has quantiles of the steps "
    "that follow its last one. All-null, constant or unknown series are answered, with provenance "
    "that says so. KPIs keep the names that the request gave them.",
    response_model=ForecastResponse,
    responses=arrow_answer() | problems(400, 404, 406, 413, 415, 422, 429, 503, 504),
    openapi_extra=histories_body("ForecastRequest", "Histories, and what to forecast from them.")
    | demand_headers(),
)
async def forecast(request: Request) -> Response:
    """Answer from the request alone."""
    services = services_of(request)
    running = services.require()
    form = answer_form(request)
    seen = seen_of(request)
    with services.room.visit() as visit:
        options, histories = await read_forecast(request, services, visit)
        stated = Stated(options.budget_ms, options.minimum_rung, options.priority)
        ask = ask_of(request, services, options.horizon, options.quantiles, stated)
        model = choose_model(running, options.model, "/model")
        check_horizon(options.horizon, model.predictor, "/horizon")
        check_levels(options.quantiles, model.predictor, "/quantiles")
        named = await build_windows(request, services, histories)
        if seen is not None and seen.body_bytes:
            samples = sum(one.window.values.size for one in named)
            services.body_work.observe(seen.body_bytes, samples)
            ask = replace(ask, foretold_samples=seen.samples)
        return await answer_forecast(request, services, running, model, named, ask, form)
