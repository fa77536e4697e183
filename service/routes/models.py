"""Which models are in service, and who answers requests that name none.

`GET /v1/models` has the one member that KServe V1 knows, and what an operator asks besides.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from service.bodies import JSON_MEDIA_TYPE, body_type, read_decoded
from service.codecs.json_requests import decode_json
from service.container import services_of
from service.errors import InvalidRequestError
from service.logs import log_event
from service.models.reference import ModelReference, parse_reference
from service.models.registry import Models, Role
from service.models.repository import FileState, ModelFile
from service.models.routing import Routing
from service.models.served import ServedModel
from service.routes.responses import json_body, problems
from service.schemas import Stamp
from service.timestamps import to_rfc3339

router = APIRouter(tags=["model"])

_LOGGER = logging.getLogger(__name__)
_REFERENCE = "NAME (its highest version) or NAME@VERSION."


class RoutingBody(BaseModel):
    """Who answers requests that name no model."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    default: str | None = Field(
        None,
        description=f"Who does: {_REFERENCE} Null: the checkpoint of RANCAST_MODEL_PATH.",
        examples=["rancast-small@1.0.0"],
    )
    canary: str | None = Field(
        None,
        description=f"Who does for a share of them: {_REFERENCE} Null: nobody.",
        examples=["rancast-small@1.1.0"],
    )
    canary_share: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="That share, 0 to 1.", examples=[0.1]
    )


class ModelInService(BaseModel):
    """One model that answers."""

    model_config = ConfigDict(extra="forbid")

    name: str
    version: str
    digest: str = Field(description="Digest of the checkpoint file.")
    role: Role = Field(
        description="default or canary for requests that name no model; named where only those "
        "that name it are answered by it."
    )
    path: str | None = Field(
        description="How it is run: eager or compiled; null where that is not known.",
        examples=["compiled"],
    )
    file: str | None = Field(description="Where its checkpoint lies; null where that is no file.")
    loaded: Stamp | None = Field(description="When it was loaded.")


class NotServedFile(BaseModel):
    """A checkpoint file that is not served."""

    model_config = ConfigDict(extra="forbid")

    file: str
    state: FileState
    name: str | None = Field(description="What it holds; null where it could not be read.")
    version: str | None
    reason: str = Field(description="Why it is refused; empty where it was unloaded on request.")


class ModelsResponse(BaseModel):
    """The models in service."""

    model_config = ConfigDict(extra="forbid")

    models: list[str] = Field(description="Names of the models.", examples=[["rancast-small"]])
    routing: RoutingBody
    served: list[ModelInService] = Field(description="By name and version.")
    not_served: list[NotServedFile] = Field(
        description="Checkpoint files that were refused or unloaded; what a file held before is "
        "served meanwhile."
    )


@router.get(
    "/v1/models",
    summary="List the models",
    description="Names of the models that are served, none while the service starts; each version "
    "with its digest, its file and its role; and the files that are not served, with the reason.",
    response_model=ModelsResponse,
)
async def models(request: Request) -> ModelsResponse:
    """What is in service."""
    running = services_of(request).running
    if running is None:
        return ModelsResponse(models=[], routing=RoutingBody(), served=[], not_served=[])
    return ModelsResponse(
        models=running.models.names,
        routing=_shown(running.models.routing),
        served=[_served(running.models, model) for model in running.models.served],
        not_served=[
            _not_served(file)
            for file in running.repository.files
            if file.state is not FileState.SERVED
        ],
    )


@router.get(
    "/v1/routing",
    summary="Read who answers",
    description="Who answers requests that name no model.",
    response_model=RoutingBody,
    responses=problems(503),
)
async def routing(request: Request) -> RoutingBody:
    """The routing in force."""
    return _shown(services_of(request).require().models.routing)


@router.put(
    "/v1/routing",
    summary="Change who answers",
    description="Lets another model answer requests that name none, and a canary a share of them, "
    "from the next request on. It holds in this process until it ends: the settings decide again "
    "at the next start, and every replica has its own.",
    response_model=RoutingBody,
    responses=problems(400, 404, 413, 415, 422, 429, 503),
    openapi_extra=json_body("RoutingBody", "Who answers."),
)
async def change_routing(request: Request) -> RoutingBody:
    """Another routing, in force from now on."""
    services = services_of(request)
    models = services.require().models
    body_type(request, (JSON_MEDIA_TYPE,))
    with services.room.visit() as visit:
        body = await read_decoded(request, services, visit, partial(decode_json, model=RoutingBody))
    if body.canary_share > 0 and body.canary is None:
        raise InvalidRequestError(
            "/canary", f"expected a model that answers {body.canary_share:g} of the requests"
        )
    routing = Routing(
        default=_reference(body.default, "/default"),
        canary=_reference(body.canary, "/canary"),
        canary_share=body.canary_share,
    )
    models.route(routing)
    log_event(_LOGGER, logging.INFO, "routing_changed", **body.model_dump())
    return _shown(routing)


def _reference(text: str | None, path: str) -> ModelReference | None:
    if text is None:
        return None
    try:
        return parse_reference(text)
    except ValueError as error:
        raise InvalidRequestError(path, str(error)) from None


def _shown(routing: Routing) -> RoutingBody:
    return RoutingBody(
        default=None if routing.default is None else str(routing.default),
        canary=None if routing.canary is None else str(routing.canary),
        canary_share=routing.canary_share,
    )


def _served(models: Models, model: ServedModel) -> ModelInService:
    identity = model.identity
    return ModelInService(
        name=identity.name,
        version=identity.version,
        digest=identity.digest,
        role=models.role(model),
        path=None if model.path is None else model.path.kind.value,
        file=None if model.file is None else str(model.file),
        loaded=None if model.loaded_ms is None else to_rfc3339(model.loaded_ms),
    )


def _not_served(file: ModelFile) -> NotServedFile:
    name, version = file.key or (None, None)
    return NotServedFile(
        file=str(file.path), state=file.state, name=name, version=version, reason=file.reason
    )
