"""`/ric/v1/…`: what the near-RT RIC platform and its application manager ask of an xApp.

The probes in a descriptor name the health paths; the platform's Prometheus scrapes the metrics; and
the application manager reads the configuration of an xApp that registered without sending it. Of
the answer it takes the first entry, prints `config` with Go's `%v` and parses that as JSON again:
only a string survives. It asks again, a few times, after any status but 200.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from service.descriptor import Descriptor, descriptor_path, own_descriptor, read_descriptor
from service.routes import health, metrics
from service.routes.responses import problems
from service.schemas import Health

router = APIRouter(prefix="/ric/v1", tags=["ric"])

_UNAVAILABLE: dict[int | str, dict[str, Any]] = {
    503: {"model": Health, "description": "It is not, and why."}
}
_JSON = "json"


class ConfigMetadata(BaseModel):
    """Whose configuration it is."""

    model_config = ConfigDict(extra="forbid")

    xapp_name: str = Field(
        serialization_alias="xappName", description="The xApp's name.", examples=["rancast"]
    )
    config_type: str = Field(
        serialization_alias="configType", description="Always json.", examples=["json"]
    )


class XappConfig(BaseModel):
    """Configuration of one xApp, as the application manager reads it."""

    model_config = ConfigDict(extra="forbid")

    metadata: ConfigMetadata
    config: str = Field(
        description="The descriptor, a JSON object written as a string: the application manager "
        "can use no other form.",
        examples=['{"name":"rancast","version":"0.1.0","messaging":{"ports":[]}}'],
    )


@router.get(
    "/health/alive",
    summary="Does the xApp live?",
    description="As GET /healthz, for the platform's probes.",
    response_model=Health,
    response_model_exclude_none=True,
    responses=_UNAVAILABLE,
)
async def alive(request: Request, response: Response) -> Health:
    """Liveness."""
    return await health.healthz(request, response)


@router.get(
    "/health/ready",
    summary="Is the xApp ready?",
    description="As GET /readyz, for the platform's probes.",
    response_model=Health,
    response_model_exclude_none=True,
    responses=_UNAVAILABLE,
)
async def ready(request: Request, response: Response) -> Health:
    """Readiness."""
    return await health.readyz(request, response)


@router.get(
    "/config",
    summary="Read the xApp's descriptor",
    description="The file that CONFIG_FILE names (or config-file.json in the folder that "
    "XAPP_DESCRIPTOR_PATH names), read anew at every request. Without one: name, version and no "
    "message types.",
    response_model=list[XappConfig],
    responses=problems(503),
)
async def config(request: Request) -> list[XappConfig]:
    """The descriptor, in a list of one."""
    descriptor = await asyncio.to_thread(_descriptor, request.app.version)
    return [
        XappConfig(
            metadata=ConfigMetadata(xapp_name=descriptor.name, config_type=_JSON),
            config=descriptor.text,
        )
    ]


@router.get(
    "/metrics",
    summary="Read the metrics, as the platform does",
    description="As GET /metrics, under the path that descriptors name.",
    response_class=PlainTextResponse,
)
async def ric_metrics(request: Request) -> Response:
    """One scrape."""
    return await metrics.metrics(request)


def _descriptor(version: str) -> Descriptor:
    path = descriptor_path(os.environ)
    return own_descriptor("rancast", version) if path is None else read_descriptor(path)
