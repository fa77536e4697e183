"""The parts of a path that name a model."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

ModelName = Annotated[
    str,
    Path(description="Name of the model, as GET /v1/models lists it.", examples=["rancast-small"]),
]
ModelVersion = Annotated[str, Path(description="Version of the model.", examples=["1.0.0"])]
