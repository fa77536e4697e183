"""KServe's time-series API: `/v1/timeseries/…`."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.bodies import JSON_MEDIA_TYPE, read_decoded
from service.checks import check_horizon, check_levels
from service.codecs.json_requests import decode_cut
from service.container import services_of
from service.demands import ask_of
from service.forecasting import forecast_windows, write_answer
from service.kserve.series import windows_of
from service.kserve.timeseries import (
    OF_SERIES,
    TimeseriesForecastRequest,
    TimeseriesForecastResponse,
    mean_levels,
    place_of,
    response_text,
    to_series,
)
from service.models.reference import ModelReference
from service.routes.responses import demand_headers, json_body, kserve_errors
from service.series import check_count

router = APIRouter(tags=["KServe time series"])


@router.get(
    "/v1/timeseries/models",
    summary="List the models",
    description="Names of the models that forecast; none while the service starts.",
    response_model=list[str],
)
async def timeseries_models(request: Request) -> list[str]:
    """The names."""
    return services_of(request).model_names


@router.post(
    "/v1/timeseries/forecast",
    summary="Forecast time series",
    description="As POST /v1/forecast, in the shape of KServe's time-series API. A null stands "
    "where nothing is known; frequency_multiplier makes a step of several minutes. The mean is "
    "taken from quantiles within the range that the model was trained for.",
    response_model=TimeseriesForecastResponse,
    responses=kserve_errors(400, 404, 413, 415, 429, 503, 504, model="TimeseriesErrorResponse"),
    openapi_extra=json_body("TimeseriesForecastRequest", "Time series, and what is asked.")
    | demand_headers(),
)
async def timeseries_forecast(request: Request) -> Response:
    """Answer from the time series alone."""
    services = services_of(request)
    running = services.require()
    with services.room.visit() as visit:
        body = await read_decoded(
            request,
            services,
            visit,
            partial(decode_cut, model=TimeseriesForecastRequest, places=OF_SERIES),
        )
        chosen = running.models.choose(ModelReference(body.model))
        predictor = chosen.predictor
        options = body.options
        check_horizon(options.horizon, predictor, "/options/horizon")
        check_levels(options.quantiles or (), predictor, "/options/quantiles")
        check_count(len(body.inputs), services.limits)
        series = to_series(body.inputs, services.clock.now_ms())
        named = await windows_of(request, services, series, partial(place_of, body.inputs))
        levels = mean_levels(predictor.level_range, options.quantiles or ())
        ask = ask_of(
            request,
            services,
            options.horizon,
            levels,
            options.demands,
            lambda name: f"/options/{name}",
        )
        answer = await forecast_windows(request, running, chosen, named, ask)
        encode = partial(
            response_text,
            chosen.identity.name,
            body,
            answer.forecasts,
            now_ms=services.clock.now_ms(),
            new_id=lambda: uuid4().hex,
        )
        text = await write_answer(request, services, running, answer, ask, encode)
        return Response(text, media_type=JSON_MEDIA_TYPE)
