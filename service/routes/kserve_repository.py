"""The Open Inference Protocol's extension for model repositories: `/v2/repository…`.

As Triton and KServe's server speak it, with one route more for a single version. What can be loaded
is what the files hold that the service watches; no path comes from a client.
"""

from __future__ import annotations

from enum import StrEnum

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from service.container import services_of
from service.models.reference import ModelReference
from service.models.repository import FileState
from service.routes.model_path import ModelName, ModelVersion
from service.routes.responses import kserve_errors

router = APIRouter(tags=["KServe V2"])

_ERRORS = kserve_errors(404, 409, 503)


class IndexState(StrEnum):
    """Whether a model answers."""

    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"


class IndexEntry(BaseModel):
    """One model of the repository."""

    model_config = ConfigDict(extra="forbid")

    name: str
    version: str
    state: IndexState
    reason: str = Field(description="Why it does not answer; empty where it does.")


class LoadResponse(BaseModel):
    """A model is served."""

    model_config = ConfigDict(extra="forbid")

    name: str
    load: bool


class UnloadResponse(BaseModel):
    """A model is served no more."""

    model_config = ConfigDict(extra="forbid")

    name: str
    unload: bool


@router.post(
    "/v2/repository/index",
    summary="List what could be served",
    description="Each model that a checkpoint file holds, served or not; GET /v1/models says more.",
    response_model=list[IndexEntry],
    responses=kserve_errors(503),
)
async def index(request: Request) -> list[IndexEntry]:
    """The index."""
    running = services_of(request).require()
    ready = [
        IndexEntry(name=name, version=version, state=IndexState.READY, reason="")
        for name, version in (model.key for model in running.models.served)
    ]
    known = {(entry.name, entry.version) for entry in ready}
    missing = [
        IndexEntry(
            name=file.key[0],
            version=file.key[1],
            state=IndexState.UNAVAILABLE,
            reason=file.reason or "unloaded on request",
        )
        for file in running.repository.files
        if file.key is not None and file.state is not FileState.SERVED and file.key not in known
    ]
    return ready + missing


@router.post(
    "/v2/repository/models/{model}/load",
    summary="Load a model",
    description="Serves every version of it that the files hold; it returns once they answer.",
    response_model=LoadResponse,
    responses=_ERRORS,
)
async def load(request: Request, model: ModelName) -> LoadResponse:
    """Load all versions."""
    return await _load(request, ModelReference(model))


@router.post(
    "/v2/repository/models/{model}/versions/{version}/load",
    summary="Load a version of a model",
    description="Serves it, if a file holds it; it returns once it answers.",
    response_model=LoadResponse,
    responses=_ERRORS,
)
async def load_version(request: Request, model: ModelName, version: ModelVersion) -> LoadResponse:
    """Load one version."""
    return await _load(request, ModelReference(model, version))


@router.post(
    "/v2/repository/models/{model}/unload",
    summary="Unload a model",
    description="Serves no version of it any more, until it is loaded again or its file changes. "
    "What was accepted is answered. The model that answers requests which name none cannot be "
    "unloaded.",
    response_model=UnloadResponse,
    responses=_ERRORS,
)
async def unload(request: Request, model: ModelName) -> UnloadResponse:
    """Unload all versions."""
    return await _unload(request, ModelReference(model))


@router.post(
    "/v2/repository/models/{model}/versions/{version}/unload",
    summary="Unload a version of a model",
    description="As for all versions, but one.",
    response_model=UnloadResponse,
    responses=_ERRORS,
)
async def unload_version(
    request: Request, model: ModelName, version: ModelVersion
) -> UnloadResponse:
    """Unload one version."""
    return await _unload(request, ModelReference(model, version))


async def _load(request: Request, reference: ModelReference) -> LoadResponse:
    await services_of(request).require().repository.load(reference)
    return LoadResponse(name=reference.name, load=True)


async def _unload(request: Request, reference: ModelReference) -> UnloadResponse:
    await services_of(request).require().repository.unload(reference)
    return UnloadResponse(name=reference.name, unload=True)
