"""KServe's time-series API: bodies of requests and answers, and what they mean here.

The protocol lets every object have further members, so what is not known is let pass. Ours are
`frequency_multiplier`, because the protocol's frequencies cannot say a quarter of an hour, `kpis`,
`cell`, `time_zone` and `country` of an input, and `budget_ms`, `minimum_rung` and `priority` of
the options.

https://kserve.github.io/website/docs/reference/time_series/api

Axis legend: K KPIs, T samples, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag

from model.predictor import Forecast
from service.answers import level_key
from service.errors import InvalidRequestError
from service.faults import MARK
from service.kserve.demands import DemandFields
from service.kserve.provenance import json_bytes, provenance
from service.kserve.rows import Rows
from service.kserve.series import (
    Calendar,
    bare_series,
    check_names,
    check_start,
    check_step,
    feature_names,
)
from service.schemas import MAX_KPIS, MAX_LEVELS, Name, Samples, Series
from service.series import pointer
from service.timestamps import to_ms, to_rfc3339

# Evenly spaced levels from which the mean of a forecast is taken.
_MEAN_LEVELS = 21
OF_SERIES = ("2{[{series",)
"""Where samples stand in a request; see `service.codecs.cutting`."""
_SECONDS: Mapping[str, int] = MappingProxyType(
    {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
)


class Frequency(StrEnum):
    """How long a step is; those longer than a week have no fixed length and are refused."""

    SECOND = "second"
    SECOND_SHORT = "S"
    MINUTE = "minute"
    MINUTE_SHORT = "T"
    HOUR = "hour"
    HOUR_SHORT = "H"
    DAY = "day"
    DAY_SHORT = "D"
    WEEK = "week"
    WEEK_SHORT = "W"
    MONTH = "month"
    MONTH_SHORT = "M"
    QUARTER = "quarter"
    QUARTER_SHORT = "Q"
    YEAR = "year"
    YEAR_SHORT = "Y"

    @property
    def seconds(self) -> int | None:
        """Length in seconds, None where it is not fixed."""
        word = self if len(self) > 1 else Frequency[f"{self.name.removesuffix('_SHORT')}"]
        return _SECONDS.get(word.value)


class SeriesType(StrEnum):
    """Whether a step has one value or several."""

    UNIVARIATE = "univariate_time_series"
    MULTIVARIATE = "multivariate_time_series"


def _form(series: Any) -> str:
    nested = isinstance(series, list) and bool(series) and isinstance(series[0], list)
    return MARK.format("rows" if nested else "numbers")


Values = Annotated[
    Annotated[Rows, Tag(MARK.format("rows"))] | Annotated[Samples, Tag(MARK.format("numbers"))],
    Discriminator(_form),
]


class _Shape(BaseModel):
    model_config = ConfigDict(
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
        frozen=True,
        arbitrary_types_allowed=True,
    )


class TimeseriesInput(_Shape):
    """One time series."""

    type: Annotated[SeriesType, Field(strict=False)]
    name: Name = Field(description="Unique in the request.", examples=["RRU.PrbTotDl"])
    series: Values = Field(
        description="A value a step, or with several variables a list of them a step; null where "
        "nothing is known.",
        examples=[[12.0, None, 15.5]],
    )
    frequency: Annotated[Frequency, Field(strict=False)] = Field(examples=["minute"])
    frequency_multiplier: float = Field(
        1.0,
        gt=0,
        description="A step is so many times the frequency; an extension. 15 and minute are a "
        "quarter of an hour, 0.01 and second are 10 ms.",
        examples=[15],
    )
    start_timestamp: str | None = Field(
        None,
        description="ISO 8601; UTC where it has no offset. Without it the series ends now.",
        examples=["2026-11-01T00:00:00Z"],
    )
    kpis: list[Name] | None = Field(
        None,
        fail_fast=True,
        max_length=MAX_KPIS,
        description="What the variables are; an extension. Without it one variable has the name "
        "of the series, and several are called feature.0 and so on.",
    )
    cell: Name | None = Field(
        None, description="The cell; an extension. The name of the series without it."
    )
    time_zone: Name | None = Field(None, description="IANA zone; an extension.")
    country: Name | None = Field(
        None, description="Country whose public holidays hold; an extension."
    )


class TimeseriesOptions(_Shape, DemandFields):
    """What is asked."""

    horizon: int = Field(description="Steps to forecast.", examples=[24])
    quantiles: list[float] | None = Field(
        None,
        fail_fast=True,
        min_length=1,
        max_length=MAX_LEVELS,
        description="Levels between 0 and 1, ascending; without them the mean alone is answered.",
        examples=[[0.1, 0.5, 0.9]],
    )


class TimeseriesForecastRequest(_Shape):
    """Time series, and what to forecast of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "rancast-small",
                    "inputs": [
                        {
                            "type": "univariate_time_series",
                            "name": "RRU.PrbTotDl",
                            "series": [12.0, None, 15.5],
                            "frequency": "minute",
                            "frequency_multiplier": 15,
                            "start_timestamp": "2026-11-01T00:00:00Z",
                        }
                    ],
                    "options": {"horizon": 2, "quantiles": [0.1, 0.5, 0.9]},
                }
            ]
        }
    )

    model: str = Field(description="Name of the model.", examples=["rancast-small"])
    inputs: Annotated[list[TimeseriesInput], FailFast()] = Field(min_length=1)
    options: TimeseriesOptions


class TimeseriesForecast(BaseModel):
    """The forecast of one time series."""

    type: SeriesType
    name: str
    mean_forecast: list[Any] = Field(
        description="The mean of the forecast's quantiles, a value a step or a list of them."
    )
    frequency: Frequency
    frequency_multiplier: float
    start_timestamp: str
    quantiles: dict[str, list[Any]] | None
    rung: str = Field(description="How much work went into it.")
    context: dict[str, Any] = Field(description="What it rests on, as in POST /v1/forecast.")


class TimeseriesOutput(BaseModel):
    """What became of one input."""

    type: str = Field(examples=["time_series_forecast"])
    id: str
    status: str = Field(examples=["completed"])
    content: list[TimeseriesForecast]
    error: None = None


class TimeseriesForecastResponse(BaseModel):
    """One output an input, in order."""

    id: str
    created_at: int = Field(description="Seconds since 1970.")
    status: str = Field(examples=["completed"])
    error: None = None
    model: str
    outputs: list[TimeseriesOutput]
    usage: None = None


def mean_levels(level_range: tuple[float, float], quantiles: Sequence[float]) -> tuple[float, ...]:
    """Levels to ask the model for: those that were asked and those that the mean is taken from."""
    even = np.linspace(*level_range, _MEAN_LEVELS).tolist()
    return tuple(sorted({*even, *quantiles}))


def mean_of(levels: Sequence[float], values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of a distribution that is known by its quantiles.

    The quantile function is integrated by trapezia; beyond its ends it stays what it is there, so
    the mean leans on no tail that the model was not trained for.

    Args:
        levels: Q levels in ascending order.
        values: Quantiles (..., Q).

    Returns:
        Means (...).
    """
    edges = np.array([0.0, *levels, 1.0])
    gaps = np.diff(edges)
    weights = np.convolve(gaps, [0.5, 0.5], mode="valid")  # (Q,)
    weights[0] += gaps[0] / 2
    weights[-1] += gaps[-1] / 2
    means: NDArray[np.float32] = (values @ weights).astype(np.float32)
    return means


def to_series(inputs: Sequence[TimeseriesInput], now_ms: int) -> list[Series]:
    """One series an input, in order.

    Raises:
        InvalidRequestError: Names, type, frequency or start cannot be used.
    """
    check_names([one.name for one in inputs], "/inputs")
    return [_series(position, one, now_ms) for position, one in enumerate(inputs)]


def place_of(inputs: Sequence[TimeseriesInput], position: int, rest: str) -> str:
    """Where a fault of an input's series lies in the request."""
    field = rest.removeprefix("/").partition("/")[0]
    names = {"start": "start_timestamp", "step_seconds": "frequency_multiplier", "kpis": "series"}
    if field == "kpis" and inputs[position].kpis is not None and rest.count("/") < 3:
        return pointer("inputs", position, "kpis")
    return pointer("inputs", position, names.get(field, field))


def _series(position: int, one: TimeseriesInput, now_ms: int) -> Series:
    several = one.type is SeriesType.MULTIVARIATE
    if several != (one.series.ndim == 2):
        raise InvalidRequestError(
            pointer("inputs", position, "series"),
            f"expected a list of {'lists' if several else 'numbers'}, as the type says",
        )
    values = np.atleast_2d(one.series.T)  # (K, T)
    kpis = one.kpis or (feature_names(len(values)) if several else [one.name])
    check_names(kpis, pointer("inputs", position, "kpis"), count=len(values))
    step_seconds = _step_seconds(position, one)
    return bare_series(
        one.cell or one.name,
        kpis,
        values,
        step_seconds=step_seconds,
        start_ms=_start_ms(position, one.start_timestamp),
        now_ms=now_ms,
        calendar=Calendar(one.time_zone, one.country),
    )


def _step_seconds(position: int, one: TimeseriesInput) -> float:
    unit = one.frequency.seconds
    if unit is None:
        raise InvalidRequestError(
            pointer("inputs", position, "frequency"),
            f"expected a frequency of fixed length, up to a week, got {one.frequency.value}",
        )
    step_seconds = one.frequency_multiplier * unit
    check_step(step_seconds, pointer("inputs", position, "frequency_multiplier"))
    return step_seconds


def _start_ms(position: int, text: str | None) -> int | None:
    if text is None:
        return None
    place = pointer("inputs", position, "start_timestamp")
    try:
        moment = datetime.fromisoformat(text)
        start_ms = to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise InvalidRequestError(
            place, f"expected a time in ISO 8601, such as 2026-11-01T00:00:00Z, got {text!r}"
        ) from None
    check_start(start_ms, place)
    return start_ms


def response_text(
    model: str,
    body: TimeseriesForecastRequest,
    forecasts: Sequence[Forecast],
    *,
    now_ms: int,
    new_id: Callable[[], str],
) -> bytes:
    """The JSON text of a `TimeseriesForecastResponse`.

    Args:
        model: Who answered.
        body: The request.
        forecasts: One an input, at the levels of `mean_levels`.
        now_ms: The time of the answer.
        new_id: Gives an identifier that no other has.
    """
    quantiles = body.options.quantiles
    outputs = (
        json_bytes(
            {
                "type": "time_series_forecast",
                "id": f"ts_{new_id()}",
                "status": "completed",
                "content": [_content(one, forecast, quantiles, now_ms)],
                "error": None,
            }
        )
        for one, forecast in zip(body.inputs, forecasts, strict=True)
    )
    head = json_bytes(
        {
            "id": f"resp_{new_id()}",
            "created_at": now_ms // 1000,
            "status": "completed",
            "error": None,
            "model": model,
            "usage": None,
        }
    )
    return b'%b,"outputs":[%b]}' % (head[:-1], b",".join(outputs))


def _content(
    one: TimeseriesInput, forecast: Forecast, quantiles: Sequence[float] | None, now_ms: int
) -> dict[str, Any]:
    def listed(values: NDArray[np.float32]) -> NDArray[np.float32]:  # (K, H) to (H) or (H, K)
        by_step = values.T if one.type is SeriesType.MULTIVARIATE else values[0]
        return np.ascontiguousarray(by_step, dtype=np.float32)

    return {
        "type": one.type.value,
        "name": one.name,
        "mean_forecast": listed(mean_of(forecast.levels, forecast.values)),
        "frequency": one.frequency.value,
        "frequency_multiplier": one.frequency_multiplier,
        "start_timestamp": to_rfc3339(forecast.start_ms),
        "quantiles": None
        if quantiles is None
        else {
            level_key(level): listed(forecast.values[:, :, forecast.levels.index(level)])
            for level in quantiles
        },
        **provenance(forecast, now_ms),
    }
