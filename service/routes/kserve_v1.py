"""KServe V1: `/v1/models/{model}` and `POST /v1/models/{model}:predict`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from service.bodies import JSON_MEDIA_TYPE, read_decoded
from service.checks import check_horizon, check_levels, parse_levels
from service.codecs.json_requests import decode_cut
from service.container import services_of
from service.demands import ask_of, check_door
from service.errors import NotReadyError
from service.forecasting import forecast_windows, write_answer
from service.kserve.demands import DemandFields
from service.kserve.series import windows_of
from service.kserve.v1 import (
    OF_INSTANCES,
    ModelReadiness,
    PredictParameters,
    PredictRequest,
    PredictResponse,
    Shape,
    place_of,
    predictions_text,
    to_series,
)
from service.models.reference import ModelReference
from service.routes.model_path import ModelName
from service.routes.responses import demand_headers, json_body, kserve_errors
from service.schemas import MAX_STEP_SECONDS, Name
from service.series import check_count, pointer

router = APIRouter(tags=["KServe V1"])


class PredictQuery(DemandFields):
    """Parameters of a client that cannot put them into its body."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kpi: list[Name] = Field(
        default_factory=list,
        description="What a column of rows, or the numbers, are; repeated for several.",
    )
    step_seconds: float | None = Field(
        None, gt=0, le=MAX_STEP_SECONDS, description="Length of a step of rows or numbers; 900."
    )
    horizon: int | None = Field(
        None, description="Steps to forecast; without it one step, without a list around it."
    )
    quantiles: str | None = Field(
        None, description="Levels, separated by commas.", examples=["0.1,0.5,0.9"]
    )
    time_zone: Name | None = Field(None, description="IANA zone that rows or numbers follow.")
    country: Name | None = Field(
        None, description="Country whose public holidays hold for rows or numbers."
    )

    def stated(self) -> dict[str, Any]:
        """What it says, by the names of `PredictParameters`."""
        said = self.model_dump(exclude_none=True, exclude={"kpi", "quantiles"})
        if self.kpi:
            said["kpis"] = self.kpi
        if self.quantiles is not None:
            said["quantiles"] = parse_levels(self.quantiles, "query:quantiles")
        return said


# Before the route of the model itself, whose path holds for this one as well.
@router.post(
    "/v1/models/{model}:predict",
    summary="Predict from instances",
    description="An instance is a series as in POST /v1/forecast, or a list of rows of numbers as "
    "the RIC's AI/ML framework sends it, or a list of numbers. The body is read as JSON whatever "
    "its content type. Parameters may stand in the body or in the query; the body wins.",
    response_model=PredictResponse,
    responses=kserve_errors(400, 404, 413, 415, 429, 503, 504),
    openapi_extra=json_body("PredictRequest", "Instances, and what they mean.") | demand_headers(),
)
async def predict(
    request: Request,
    model: ModelName,
    query: Annotated[PredictQuery, Query()],
) -> Response:
    """Answer from the instances alone."""
    services = services_of(request)
    running = services.require()
    chosen = running.models.choose(ModelReference(model))
    check_door(request, services, chosen)
    with services.room.visit() as visit:
        body = await read_decoded(
            request,
            services,
            visit,
            partial(decode_cut, model=PredictRequest, places=OF_INSTANCES),
        )
        parameters, where = _merged(body, query)
        predictor = chosen.predictor
        quantiles = None if parameters.quantiles is None else tuple(parameters.quantiles)
        shape = Shape(parameters.horizon, quantiles)
        check_horizon(shape.steps, predictor, where("horizon"))
        check_levels(shape.shown, predictor, where("quantiles"))
        check_levels(shape.levels, predictor, where("quantiles"))
        check_count(len(body.instances), services.limits)
        series = to_series(body, parameters, services.clock.now_ms())
        named = await windows_of(request, services, series, partial(place_of, body, where))
        demands = parameters.demands
        ask = ask_of(request, services, shape.steps, shape.levels, demands, where)
        answer = await forecast_windows(request, running, chosen, named, ask)
        now_ms = services.clock.now_ms()
        encode = partial(predictions_text, body, shape, answer.forecasts, named, now_ms)
        text = await write_answer(request, services, running, answer, ask, encode)
        return Response(text, media_type=JSON_MEDIA_TYPE)


@router.get(
    "/v1/models/{model}",
    summary="Is a model ready?",
    description="200 where it answers, 503 where it does not yet or no more.",
    response_model=ModelReadiness,
    responses=kserve_errors(404, 503),
)
async def model(request: Request, model: ModelName) -> ModelReadiness:
    """Readiness of one model."""
    services = services_of(request)
    found = services.require().models.find(ModelReference(model))
    reason = services.unreadiness()
    if reason is not None:
        raise NotReadyError(reason)
    return ModelReadiness(name=found.identity.name, ready=True)


def _merged(
    body: PredictRequest, query: PredictQuery
) -> tuple[PredictParameters, Callable[[str], str]]:
    """Parameters of both, of which the body's win, and where each of them stands."""
    in_query = {
        name: value
        for name, value in query.stated().items()
        if name not in body.parameters.model_fields_set
    }

    def where(name: str) -> str:
        if name not in in_query:
            return pointer("parameters", name)
        return "query:kpi" if name == "kpis" else f"query:{name}"

    return body.parameters.model_copy(update=in_query), where
