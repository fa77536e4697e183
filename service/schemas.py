"""Bodies of requests and answers, as they look on the wire.

Strict: no number in a string, no field that nobody reads, no infinity. Limits that settings decide
(series, KPIs, horizon, quantiles) are checked in `service.series` and `service.routes`, where the
message can name them. Lists stop at their first fault, so that a body full of faults costs no more
than a good one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import with_info_after_validator_function

from model.predictor import Rung
from service.engine import Priority
from service.timestamps import to_rfc3339

Name = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
_Listed = Annotated[
    list[float | None],
    FailFast(),
    Field(min_length=1, description="One value a step, null where nothing is known."),
]


@dataclass(frozen=True, slots=True)
class CutLists:
    """Validation context of a body whose lists of samples were read before.

    Attributes:
        lists: The samples; in the body `[i]` stands for list i.
        whole: Of each, whether all of it are whole numbers that float64 holds exactly.
    """

    lists: Sequence[NDArray[np.float64]]
    whole: Sequence[bool]


class _AsArray:
    """Turns a list of samples into an array as soon as it is checked.

    An array takes a fifth of the list's memory. And while a large body is decoded, this is where
    other threads get their turn: the decoder itself never lets go of the interpreter.
    """

    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return with_info_after_validator_function(_to_array, handler.generate_schema(_Listed))


def _to_array(
    values: list[float | None], info: ValidationInfo[CutLists | None]
) -> NDArray[np.float64]:
    if info.context is not None and values[0] is not None:
        return info.context.lists[int(values[0])]
    return np.array(values, dtype=np.float64)  # null becomes NaN


Samples = Annotated[NDArray[np.float64], _AsArray()]
MAX_LEVELS = 100
# The most that a deployment may allow; settings may allow fewer.
MAX_KPIS = 1024
MAX_EVENTS = 1000
DEFAULT_LEVELS = (0.1, 0.5, 0.9)
MAX_STEP_SECONDS = 2_678_400  # 31 days

# RFC 3339, section 5.6. The validator of dates takes numbers in strings as well, and guesses their
# unit.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _check_stamp(value: Any) -> str:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise PydanticCustomError("datetime_parsing", "expected an RFC 3339 stamp")
    return value


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_check_stamp)]
"""An instant in a request, as RFC 3339 writes it."""

Stamp = Annotated[str, Field(description="RFC 3339, in UTC.", examples=[to_rfc3339(0)])]


class _In(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class _Out(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _whole(duration_s: float) -> float:
    """Whole seconds without a fraction, as people write them."""
    return int(duration_s) if duration_s.is_integer() else duration_s


Seconds = Annotated[
    float, PlainSerializer(_whole, return_type=int | float), WithJsonSchema({"type": "number"})
]


# Two numbers, in words that readers of every version of JSON Schema understand alike.
Range = Annotated[
    tuple[float, float],
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]


class Event(_In):
    """Something known beforehand: a match, a concert, a maintenance."""

    start: Moment = Field(description="RFC 3339, with offset.")
    end: Moment = Field(description="RFC 3339, with offset; after `start`.")
    kind: Name = Field("planned", description="What it is, in the client's own word.")


class Series(_In):
    """Regular samples of one cell."""

    cell: Name = Field(
        description="The cell's distinguished name; opaque.",
        examples=["ManagedElement=1,NRCellDU=32"],
    )
    start: Moment = Field(
        description="Begin of the first sample, RFC 3339 with offset (a PM file's period end less "
        "its length).",
        examples=["2026-11-01T00:00:00Z"],
    )
    step_seconds: float = Field(
        gt=0, le=MAX_STEP_SECONDS, description="Length of a sample.", examples=[900]
    )
    time_zone: Name | None = Field(
        None,
        description="IANA zone that the cell's daily life follows; the deployment's by default.",
        examples=["Europe/Madrid"],
    )
    country: Name | None = Field(
        None,
        description="Country whose public holidays hold for the cell, as in ES or, with the "
        "subdivision, ES-CT (ISO 3166); the deployment's by default. Holidays are inputs of the "
        "forecast at steps from a minute to a day. POST /v1/observations does not keep it.",
        examples=["ES-CT"],
    )
    events: Annotated[list[Event], FailFast()] = Field(
        default_factory=list,
        max_length=MAX_EVENTS,
        description="Planned events, past and future: inputs of the forecast at steps from a "
        "minute to a day. Past ones show the model what such events do to this cell. "
        "POST /v1/observations does not keep them.",
    )
    kpis: dict[Name, Samples] = Field(
        min_length=1,
        description="Samples by KPI, all of one length. Names are those of TS 28.552 or an alias "
        "from the catalogue; others are allowed.",
        examples=[{"RRU.PrbTotDl": [12.0, None, 15.5], "DRB.MeanActiveUeDl": [3, 4, 4]}],
    )


class ForecastOptions(_In):
    """What to forecast, whatever form the histories have."""

    horizon: int = Field(
        description="Steps to forecast.", json_schema_extra={"minimum": 1}, examples=[24]
    )
    quantiles: Annotated[list[float], FailFast()] = Field(
        default_factory=lambda: list(DEFAULT_LEVELS),
        min_length=1,
        max_length=MAX_LEVELS,
        description="Levels between 0 and 1, ascending.",
    )
    budget_ms: float | None = Field(
        None,
        description="Latency budget from arrival to answer; wins over the header "
        "X-Latency-Budget-Ms. The profile's default holds where neither is given.",
        examples=[200],
    )
    minimum_rung: Rung | None = Field(
        None,
        description="Least rung that is an answer; below it the request is refused with 429. Wins "
        "over the header X-Minimum-Rung; baseline where neither is given.",
        examples=["short"],
    )
    priority: Priority | None = Field(
        None,
        description="A batch request is worked on while no control request waits, and may take the "
        "profile's largest budget where it states none. Wins over the header X-Priority; control "
        "where neither is given.",
        examples=["control"],
    )
    model: str | None = Field(
        None,
        description="Who answers: NAME or NAME@VERSION, as GET /v1/models lists them; the default "
        "model, or the canary, where it is not given.",
        examples=["rancast-small@1.0.0"],
    )


class ForecastRequest(ForecastOptions):
    """Histories, and what to forecast from them."""

    series: Annotated[list[Series], FailFast()] = Field(min_length=1)


class ObservationsRequest(_In):
    """Samples to keep."""

    series: Annotated[list[Series], FailFast()] = Field(min_length=1)


class ModelName(_Out):
    """Who answered."""

    name: str = Field(examples=["rancast-small"])
    version: str = Field(examples=["1.0.0"])
    digest: str = Field(description="Digest of the checkpoint file.", examples=["sha256:…"])


class Context(_Out):
    """What a forecast was made from."""

    start: Stamp
    end: Stamp
    missing_ratio: float = Field(description="Share of samples without a value, 0 to 1.")
    age_seconds: float | None = Field(
        description="Time from the end of the newest sample with a value to the answer; null where "
        "there is none."
    )


class CellForecast(_Out):
    """Quantiles of the coming samples of one cell."""

    cell: str
    start: Stamp = Field(description="Begin of the first forecast sample.")
    step_seconds: Seconds
    kpis: dict[str, dict[str, list[float | None]]] = Field(
        description="Quantiles by KPI (in the request's spelling) and level, one value a step; "
        "null where nothing can be said.",
        examples=[{"RRU.PrbTotDl": {"0.1": [9.8], "0.5": [12.1], "0.9": [16.0]}}],
    )
    rung: str = Field(
        description="How much work went into it: full, short or baseline.", examples=["full"]
    )
    context: Context


class ForecastResponse(_Out):
    """One forecast a series, in the request's order."""

    model: ModelName
    forecasts: list[CellForecast]


class RejectedObservation(_Out):
    """Samples that were not kept, and why; one entry a reason."""

    path: str = Field(description="JSON Pointer to the first series concerned.")
    reason: str


class ObservationsResponse(_Out):
    """What became of the samples; the journal holds what was accepted."""

    accepted: int = Field(description="Samples that were stored.")
    merged: int = Field(description="Of these, samples that replaced a value.")
    late: int = Field(description="Samples older than the newest one of their KPI.")
    rejected: list[RejectedObservation]


class CellEntry(_Out):
    """A cell at one period length."""

    cell: str
    kpis: list[str]
    step_seconds: Seconds
    first: Stamp = Field(description="Begin of the oldest sample kept.")
    last: Stamp = Field(description="End of the newest sample.")


class CellsResponse(_Out):
    """A page of the store's cells, in order of their names."""

    cells: list[CellEntry]
    next: str | None = Field(description="Value of `after` for the next page; null at the end.")


class CellResponse(_Out):
    """One cell, once for each period length it is reported at; the finest comes first."""

    cells: list[CellEntry]


class SamplesResponse(_Out):
    """Stored samples, in the shape of one of a forecast request's series."""

    cell: str
    start: Stamp
    step_seconds: Seconds
    kpis: dict[str, list[float | None]]


class ModelCard(_Out):
    """What answers here, where it comes from and how good it is."""

    name: str
    version: str
    digest: str
    max_horizon: int = Field(description="Longest horizon in steps.")
    quantile_range: Range = Field(description="Lowest and highest level to ask for.")
    catalogue_version: str | None = None
    training: dict[str, Any] = Field(default_factory=dict, description="Provenance.")
    evaluation: dict[str, Any] = Field(default_factory=dict, description="Measured accuracy.")
    calibration: dict[str, Any] | None = None


class Health(_Out):
    """Whether the process lives, or is ready."""

    status: str = Field(examples=["ready"])
    reason: str | None = Field(None, description="Why it is not ready.")


class ProblemFault(_Out):
    """One of several things that are wrong with a request."""

    path: str
    reason: str


class Problem(_Out):
    """An error, after RFC 9457."""

    type: str = Field(examples=["urn:rancast:problem:invalid"])
    title: str
    status: int
    detail: str
    instance: str | None = Field(
        None,
        description="This very answer: `urn:rancast:request:` and the request's id.",
        examples=["urn:rancast:request:4bf92f3577b34da6a3ce929d"],
    )
    path: str | None = Field(
        None,
        description="What is wrong: a JSON Pointer into the body, `query:NAME` or `header:NAME`.",
    )
    errors: list[ProblemFault] | None = Field(None, description="Where several things are wrong.")
