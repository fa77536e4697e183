"""KServe V1: instances in, predictions out.

The protocol leaves open what an instance is. Here it is one of three things:

* an object: a series as in `POST /v1/forecast`, with everything that it can say;
* a list of rows, T of them with a number for each of K KPIs: what the RIC's AI/ML framework sends;
* a list of T numbers: one KPI.

Rows and numbers are told what they mean by `parameters`, or by the query of the URL, which lets a
client that knows neither be configured by its address alone.

Axis legend: K KPIs, T samples, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Tag,
)

from model.predictor import Forecast
from service.answers import level_key, seconds
from service.codecs.cutting import OF_SERIES
from service.faults import MARK
from service.kserve.demands import DemandFields
from service.kserve.provenance import json_bytes, provenance
from service.kserve.rows import Rows
from service.kserve.series import (
    DEFAULT_STEP_SECONDS,
    Calendar,
    bare_series,
    check_names,
    feature_names,
)
from service.schemas import (
    DEFAULT_LEVELS,
    MAX_KPIS,
    MAX_LEVELS,
    MAX_STEP_SECONDS,
    Moment,
    Name,
    Samples,
    Series,
)
from service.series import NamedWindow, pointer
from service.timestamps import to_ms, to_rfc3339

MEDIAN = 0.5
OF_INSTANCES = (OF_SERIES, "2{[")
"""Where samples stand in a request: in the KPIs of series, and as rows or numbers."""


def _form(instance: Any) -> str:
    """Which of the three things an instance is."""
    if not isinstance(instance, list):
        return MARK.format("series")
    return MARK.format("rows" if instance and isinstance(instance[0], list) else "numbers")


Instance = Annotated[
    Annotated[Series, Tag(MARK.format("series"))]
    | Annotated[Rows, Tag(MARK.format("rows"))]
    | Annotated[Samples, Tag(MARK.format("numbers"))],
    Discriminator(_form),
]


class _Shape(BaseModel):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        frozen=True,
        arbitrary_types_allowed=True,
    )


class PredictParameters(_Shape, DemandFields):
    """What the instances mean and what is asked of them; our extension of the protocol."""

    horizon: int | None = Field(
        None, description="Steps to forecast; without it one step, without a list around it."
    )
    quantiles: list[float] | None = Field(
        None,
        fail_fast=True,
        min_length=1,
        max_length=MAX_LEVELS,
        description="Levels between 0 and 1, ascending. Rows and numbers are answered with "
        "medians alone where they are not given, series with 0.1, 0.5 and 0.9.",
    )
    kpis: list[Name] | None = Field(
        None,
        fail_fast=True,
        max_length=MAX_KPIS,
        description="What the columns of rows, or the numbers, are; feature.0 and so on without.",
        examples=[["DRB.UEThpDl", "DRB.UEThpUl"]],
    )
    step_seconds: float | None = Field(
        None, gt=0, le=MAX_STEP_SECONDS, description="Length of a step of rows or numbers; 900."
    )
    start: Moment | None = Field(
        None,
        description="Begin of the first step of rows or numbers; without it the last one ends now.",
    )
    time_zone: Name | None = Field(None, description="IANA zone that rows or numbers follow.")
    country: Name | None = Field(
        None, description="Country whose public holidays hold for rows or numbers."
    )


class PredictRequest(_Shape):
    """Histories, and what to forecast from them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "instances": [[[2.56, 2.56], [2.61, None], [2.70, 2.44]]],
                    "parameters": {"horizon": 2, "kpis": ["DRB.UEThpDl", "DRB.UEThpUl"]},
                }
            ]
        }
    )

    signature_name: str | None = Field(
        None, description="Of clients that talk to TensorFlow Serving; says nothing here."
    )
    instances: Annotated[list[Instance], FailFast()] = Field(
        min_length=1,
        description="Series, or lists of rows, or lists of numbers.",
        examples=[[[[2.56, 2.56], [2.61, None]]]],
    )
    parameters: PredictParameters = Field(
        default_factory=PredictParameters, description="What the instances mean; an extension."
    )


class PredictResponse(BaseModel):
    """One prediction an instance, in order."""

    predictions: list[Any] = Field(
        description="Of a series an object with median and quantiles by KPI. Of rows or numbers "
        "the median of the next step, a list of them where a horizon is given, and an object with "
        "median and quantiles of that shape where quantiles are.",
        examples=[[[2.5, 2.6]]],
    )


class ModelNames(BaseModel):
    """The models that are served."""

    models: list[str]


class ModelReadiness(BaseModel):
    """Whether a model answers."""

    name: str
    ready: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """What the parameters ask for, once for all instances.

    Attributes:
        horizon: Steps, None for the next one alone.
        quantiles: Levels that were stated, None where none were.
    """

    horizon: int | None
    quantiles: tuple[float, ...] | None

    @property
    def steps(self) -> int:
        """Steps to forecast."""
        return 1 if self.horizon is None else self.horizon

    @property
    def shown(self) -> tuple[float, ...]:
        """Levels of the quantiles in an answer that has any."""
        return DEFAULT_LEVELS if self.quantiles is None else self.quantiles

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels to ask the model for: the median is always among them."""
        return tuple(sorted({*self.shown, MEDIAN}))


def to_series(body: PredictRequest, parameters: PredictParameters, now_ms: int) -> list[Series]:
    """One series an instance, in order.

    Args:
        body: The request.
        parameters: Its parameters, where the query has added to them.
        now_ms: The time of the request.

    Raises:
        InvalidRequestError: The names do not fit the columns.
    """
    return [
        one if isinstance(one, Series) else _bare(position, one, parameters, now_ms)
        for position, one in enumerate(body.instances)
    ]


def _bare(
    position: int, values: NDArray[np.float64], parameters: PredictParameters, now_ms: int
) -> Series:
    columns = np.atleast_2d(values.T)  # (K, T), of rows (T, K) and of numbers (T,)
    kpis = parameters.kpis
    if kpis is None:
        kpis = feature_names(len(columns))
    check_names(kpis, pointer("parameters", "kpis"), count=len(columns))
    return bare_series(
        str(position),
        kpis,
        columns,
        step_seconds=parameters.step_seconds or DEFAULT_STEP_SECONDS,
        start_ms=None if parameters.start is None else to_ms(parameters.start),
        now_ms=now_ms,
        calendar=Calendar(parameters.time_zone, parameters.country),
    )


def place_of(body: PredictRequest, where: Callable[[str], str], position: int, rest: str) -> str:
    """Where a fault of an instance's series lies in the request.

    Args:
        body: The request.
        where: Gives the place of a parameter.
        position: Of the instance.
        rest: The rest of a pointer into its series.
    """
    if isinstance(body.instances[position], Series):
        return pointer("instances", position) + rest
    field, *inside = rest.removeprefix("/").split("/")
    # The name of a KPI is a parameter; its samples, and how many there are, are the instance's.
    if field not in PredictParameters.model_fields or (field == "kpis" and len(inside) != 1):
        return pointer("instances", position)
    return where(field)


def predictions_text(
    body: PredictRequest,
    shape: Shape,
    forecasts: Sequence[Forecast],
    named: Sequence[NamedWindow],
    now_ms: int,
) -> bytes:
    """The JSON text of a `PredictResponse`.

    Args:
        body: The request, whose instances decide the form of their predictions.
        shape: What was asked.
        forecasts: One an instance.
        named: What the client calls the KPIs.
        now_ms: The time of the answer.
    """
    texts = (
        json_bytes(
            _of_series(forecast, window.spell(forecast.kpis), shape, now_ms)
            if isinstance(instance, Series)
            else _of_array(forecast, shape, flat=instance.ndim == 1)
        )
        for instance, forecast, window in zip(body.instances, forecasts, named, strict=True)
    )
    return b'{"predictions":[%b]}' % b",".join(texts)


def _of_series(
    forecast: Forecast, names: Sequence[str], shape: Shape, now_ms: int
) -> dict[str, Any]:
    def at(level: float) -> dict[str, Any]:
        return dict(zip(names, _quantile(forecast, level), strict=True))

    by_level = {level: at(level) for level in shape.levels}
    return {
        "cell": forecast.cell,
        "start": to_rfc3339(forecast.start_ms),
        "step_seconds": seconds(forecast.step_ms),
        "median": by_level[MEDIAN],
        "quantiles": {
            name: {level_key(level): by_level[level][name] for level in shape.shown}
            for name in names
        },
        **provenance(forecast, now_ms),
    }


def _of_array(forecast: Forecast, shape: Shape, *, flat: bool) -> Any:
    def at(level: float) -> Any:
        values = _quantile(forecast, level)  # (K, H)
        steps = values[0] if flat else np.ascontiguousarray(values.T)  # (H) or (H, K)
        return steps[0] if shape.horizon is None else steps

    if shape.quantiles is None:
        return at(MEDIAN)
    return {
        "median": at(MEDIAN),
        "quantiles": {level_key(level): at(level) for level in shape.quantiles},
    }


def _quantile(forecast: Forecast, level: float) -> NDArray[np.float32]:
    values = forecast.values[:, :, forecast.levels.index(level)]  # (K, H)
    return np.ascontiguousarray(values, dtype=np.float32)
