"""Bodies of the Open Inference Protocol's requests and answers, as they look on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import with_info_after_validator_function

from service.schemas import CutLists

OF_INPUTS = "8{[{data"
"""Where the numbers of tensors stand in a request; see `service.codecs.cutting`."""

_MOST_DIMENSIONS = 8
_LONGEST = 2**31 - 1
_MOST_OUTPUTS = 64


class _Shape(BaseModel):
    # Clients send members of their own, such as the model's name, that the protocol does not know.
    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, arbitrary_types_allowed=True
    )


@dataclass(frozen=True, slots=True)
class Numbers:
    """The data of a tensor that were cut out of the text.

    Attributes:
        values: Numbers in the shape that their lists have; NaN for null.
        is_whole: Whether all of them are whole numbers that float64 holds exactly.
    """

    values: NDArray[np.float64]
    is_whole: bool


class _AsNumbers:
    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return with_info_after_validator_function(_to_numbers, handler.generate_schema(list[Any]))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema)


def _to_numbers(data: list[Any], info: ValidationInfo[CutLists | None]) -> list[Any] | Numbers:
    # What was left where it stood begins with a text.
    if info.context is None or not data or type(data[0]) is not int:
        return data
    return Numbers(info.context.lists[data[0]], info.context.whole[data[0]])


class InferInput(_Shape):
    """One tensor of a request."""

    name: str = Field(examples=["values"])
    shape: list[Annotated[int, Field(ge=0, le=_LONGEST)]] = Field(
        max_length=_MOST_DIMENSIONS, examples=[[1, 2, 3]]
    )
    datatype: str = Field(examples=["FP32"])
    parameters: dict[str, Any] | None = Field(
        None, description="binary_data_size: bytes of the data that follow the JSON."
    )
    data: Annotated[list[Any] | Numbers, _AsNumbers()] | None = Field(
        None,
        description="Flat or nested as the shape says; null where nothing is known.",
        examples=[[12.0, None, 15.5, 3.0, 4.0, 4.0]],
    )


class InferRequestedOutput(_Shape):
    """One tensor that the client wants."""

    name: str = Field(examples=["forecast"])
    parameters: dict[str, Any] | None = Field(
        None, description="binary_data: whether its data follow the JSON as bytes."
    )


class InferRequest(_Shape):
    """Tensors, and what to make of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "inputs": [
                        {
                            "name": "values",
                            "datatype": "FP32",
                            "shape": [1, 2, 3],
                            "data": [[[12.0, None, 15.5], [3.0, 4.0, 4.0]]],
                        },
                        {
                            "name": "kpi",
                            "datatype": "BYTES",
                            "shape": [2],
                            "data": ["RRU.PrbTotDl", "DRB.MeanActiveUeDl"],
                        },
                    ],
                    "parameters": {"horizon": 2, "quantiles": "0.1,0.5,0.9"},
                }
            ]
        }
    )

    id: str | None = Field(None, description="Comes back in the answer.")
    parameters: dict[str, Any] | None = Field(
        None,
        description="horizon, quantiles (a text such as 0.1,0.5,0.9), budget_ms, minimum_rung, "
        "priority, step_seconds, "
        "time_zone, country; binary_data_output: whether all outputs follow the JSON as bytes.",
        examples=[{"horizon": 2, "quantiles": "0.1,0.5,0.9"}],
    )
    inputs: Annotated[list[InferInput], FailFast()] = Field(min_length=1)
    outputs: list[InferRequestedOutput] | None = Field(
        None, max_length=_MOST_OUTPUTS, description="All where it is not given."
    )


class InferOutput(BaseModel):
    """One tensor of an answer."""

    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] | None = None
    data: list[Any] | None = Field(None, description="Flat; absent where they follow as bytes.")


class InferResponse(BaseModel):
    """The forecasts as tensors."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
    model_version: str
    id: str
    outputs: list[InferOutput]


class TensorMetadata(BaseModel):
    """Name, type and shape of a tensor; -1 is a length that may vary."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """What a model takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata] = Field(description="All but values may be left out.")
    outputs: list[TensorMetadata]


class ServerMetadata(BaseModel):
    """What the server is and which extensions of the protocol it speaks."""

    name: str
    version: str
    extensions: list[str]


class Liveness(BaseModel):
    """Whether the server lives."""

    live: bool


class Readiness(BaseModel):
    """Whether the server takes requests."""

    # KServe's servers and client say `ready`, the text of the specification says `live`.
    ready: bool
    live: bool
