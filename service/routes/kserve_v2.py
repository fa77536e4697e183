"""The Open Inference Protocol (KServe V2) over HTTP: `/v2…`."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response

from service.bodies import JSON_MEDIA_TYPE, read_decoded
from service.container import services_of
from service.demands import ask_of, check_door
from service.errors import NotReadyError
from service.forecasting import forecast_windows, write_answer
from service.kserve.errors import ErrorText
from service.kserve.messages import (
    InferResponse,
    Liveness,
    ModelMetadata,
    Readiness,
    ServerMetadata,
)
from service.kserve.series import windows_of
from service.kserve.tensors import BINARY_MEDIA_TYPE, EXTENSION, LENGTH_HEADER, decode, encode
from service.kserve.v1 import ModelNames, ModelReadiness
from service.kserve.v2 import INPUTS, OUTPUTS, batch_of, place_of, to_outputs, to_plan
from service.models.reference import ModelReference
from service.routes.health import is_alive
from service.routes.model_path import ModelName, ModelVersion
from service.routes.responses import demand_headers, kserve_errors
from service.series import check_count

router = APIRouter(tags=["KServe V2"])

_PLATFORM = "pytorch"
_INFER_ERRORS = kserve_errors(400, 404, 413, 415, 429, 503, 504)
_INFER_BODY = {
    "requestBody": {
        "required": True,
        "description": "Tensors; with the binary extension, JSON and then the bytes of tensors.",
        "content": {
            JSON_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/InferRequest"}},
            BINARY_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_INFER_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            BINARY_MEDIA_TYPE: {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "JSON as without the binary extension, and then the bytes of "
                    "those tensors that were asked for as such.",
                }
            }
        },
        "headers": {
            LENGTH_HEADER: {
                "description": "Bytes of the JSON, where the bytes of tensors follow it.",
                "schema": {"type": "integer", "minimum": 0},
            }
        },
    }
}
_INFER_TEXT = (
    "One series a row of values (B, K, T). GET /v2/models/{model} lists the tensors, and the page "
    "on the API says what they mean. How the body is read depends on its header "
    "Inference-Header-Content-Length, not on its content type."
)

LengthHeader = Annotated[
    str | None,
    Header(
        alias=LENGTH_HEADER,
        description="Bytes of the JSON, where the bytes of tensors follow it.",
    ),
]


@router.get(
    "/v2",
    summary="Describe the server",
    description="Name, version and the extensions of the protocol that are spoken.",
    response_model=ServerMetadata,
)
async def server(request: Request) -> ServerMetadata:
    """The server's metadata."""
    return ServerMetadata(name="rancast", version=request.app.version, extensions=[EXTENSION])


@router.get(
    "/v2/health/live",
    summary="Does the server live?",
    description="503 where only a restart helps.",
    response_model=Liveness,
    responses=kserve_errors(503),
)
async def live(request: Request) -> Liveness | JSONResponse:
    """Liveness."""
    services = services_of(request)
    return Liveness(live=True) if is_alive(services) else _unavailable(services.unreadiness())


@router.get(
    "/v2/health/ready",
    summary="Are all models ready?",
    description="503 while the model is loaded, and while the service stops.",
    response_model=Readiness,
    responses=kserve_errors(503),
)
async def ready(request: Request) -> Readiness | JSONResponse:
    """Readiness."""
    reason = services_of(request).unreadiness()
    return Readiness(ready=True, live=True) if reason is None else _unavailable(reason)


def _unavailable(reason: str | None) -> JSONResponse:
    # A probe that fails is no request that was refused, so it is not counted as one.
    body = ErrorText(error=reason or "the service is not ready").model_dump()
    return JSONResponse(body, HTTPStatus.SERVICE_UNAVAILABLE)


@router.get(
    "/v2/models",
    summary="List the models",
    description="Names of the models that are served; KServe's extension of the protocol.",
    response_model=ModelNames,
)
async def models(request: Request) -> ModelNames:
    """The names."""
    return ModelNames(models=services_of(request).model_names)


@router.get(
    "/v2/models/{model}",
    summary="Describe a model",
    description="Its versions and tensors. All inputs but values may be left out.",
    response_model=ModelMetadata,
    responses=kserve_errors(404, 503),
)
async def metadata(request: Request, model: ModelName) -> ModelMetadata:
    """A model's metadata."""
    return _metadata(request, model, None)


@router.get(
    "/v2/models/{model}/versions/{version}",
    summary="Describe a version of a model",
    description="Its tensors. All inputs but values may be left out.",
    response_model=ModelMetadata,
    responses=kserve_errors(404, 503),
)
async def version_metadata(
    request: Request, model: ModelName, version: ModelVersion
) -> ModelMetadata:
    """A version's metadata."""
    return _metadata(request, model, version)


def _metadata(request: Request, model: str, version: str | None) -> ModelMetadata:
    services = services_of(request)
    models = services.require().models
    found = models.find(ModelReference(model, version))
    return ModelMetadata(
        name=found.identity.name,
        versions=models.versions(model),
        platform=_PLATFORM,
        inputs=list(INPUTS),
        outputs=list(OUTPUTS),
    )


@router.get(
    "/v2/models/{model}/ready",
    summary="Is a model ready?",
    description="200 where it answers, 503 where it does not yet or no more.",
    response_model=ModelReadiness,
    responses=kserve_errors(404, 503),
)
async def model_ready(request: Request, model: ModelName) -> ModelReadiness:
    """Readiness of a model."""
    return _readiness(request, model, None)


@router.get(
    "/v2/models/{model}/versions/{version}/ready",
    summary="Is a version of a model ready?",
    description="200 where it answers, 503 where it does not yet or no more.",
    response_model=ModelReadiness,
    responses=kserve_errors(404, 503),
)
async def version_ready(
    request: Request, model: ModelName, version: ModelVersion
) -> ModelReadiness:
    """Readiness of a version."""
    return _readiness(request, model, version)


def _readiness(request: Request, model: str, version: str | None) -> ModelReadiness:
    services = services_of(request)
    found = services.require().models.find(ModelReference(model, version))
    reason = services.unreadiness()
    if reason is not None:
        raise NotReadyError(reason)
    return ModelReadiness(name=found.identity.name, ready=True)


@router.post(
    "/v2/models/{model}/infer",
    summary="Forecast tensors",
    description=_INFER_TEXT,
    response_model=InferResponse,
    responses=_INFER_ANSWERS | _INFER_ERRORS,
    openapi_extra=_INFER_BODY | demand_headers(),
)
async def infer(
    request: Request,
    model: ModelName,
    length: LengthHeader = None,
) -> Response:
    """Answer from the tensors alone."""
    return await _infer(request, model, None, length)


@router.post(
    "/v2/models/{model}/versions/{version}/infer",
    summary="Forecast tensors with a version of a model",
    description=_INFER_TEXT,
    response_model=InferResponse,
    responses=_INFER_ANSWERS | _INFER_ERRORS,
    openapi_extra=_INFER_BODY | demand_headers(),
)
async def version_infer(
    request: Request,
    model: ModelName,
    version: ModelVersion,
    length: LengthHeader = None,
) -> Response:
    """Answer from the tensors alone, by one version."""
    return await _infer(request, model, version, length)


async def _infer(request: Request, model: str, version: str | None, length: str | None) -> Response:
    services = services_of(request)
    running = services.require()
    chosen = running.models.choose(ModelReference(model, version))
    check_door(request, services, chosen)
    with services.room.visit() as visit:
        sent = await read_decoded(request, services, visit, partial(decode, length_header=length))
        check_count(batch_of(sent), services.limits)
        plan = to_plan(sent, chosen.predictor, services.clock.now_ms())
        named = await windows_of(
            request, services, plan.series, lambda _position, rest: place_of(plan, rest)
        )
        ask = ask_of(
            request,
            services,
            plan.horizon,
            plan.levels,
            plan.demands,
            lambda name: f"/parameters/{name}",
        )
        answer = await forecast_windows(request, running, chosen, named, ask)
        identity = chosen.identity
        head = {
            "model_name": identity.name,
            "model_version": identity.version,
            "id": str(uuid4()) if sent.request.id is None else sent.request.id,
        }
        json_length: int | None = None

        def write() -> bytes:
            nonlocal json_length
            outputs = to_outputs(plan, answer.forecasts, services.clock.now_ms())
            text, json_length = encode(head, outputs, plan.binary)
            return text

        body = await write_answer(request, services, running, answer, ask, write)
        if json_length is None:
            return Response(body, media_type=JSON_MEDIA_TYPE)
        return Response(
            body, media_type=BINARY_MEDIA_TYPE, headers={LENGTH_HEADER: str(json_length)}
        )
