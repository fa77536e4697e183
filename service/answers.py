"""From forecasts to the bytes of an answer.

Written straight from arrays, without one model object a forecast: a bulk answer holds millions of
numbers. It is written KPI by KPI, because the JSON encoder lets no other thread run before it is
through, the event loop's included. Its shape is `service.schemas.ForecastResponse`, which a test
holds it to.

Axis legend: K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.predictor import Forecast, ModelIdentity
from service.timestamps import to_rfc3339

# float32 holds a little over seven digits; more would only print its rounding error.
_DIGITS = 7


def forecast_answer(
    model: ModelIdentity,
    forecasts: Sequence[Forecast],
    names: Sequence[Sequence[str]],
    *,
    now_ms: int,
) -> bytes:
    """The JSON text of a `ForecastResponse`.

    Args:
        model: Who answered.
        forecasts: One a series.
        names: For each forecast, what the client calls its KPIs, in the forecast's order.
        now_ms: The time of the answer, from which ages count.
    """
    identity = {"name": model.name, "version": model.version, "digest": model.digest}
    written = (
        _forecast(forecast, spelt, now_ms) for forecast, spelt in zip(forecasts, names, strict=True)
    )
    return f'{{"model":{_json(identity)},"forecasts":[{",".join(written)}]}}'.encode()


def samples_answer(
    cell: str, start_ms: int, step_ms: int, names: Sequence[str], values: NDArray[np.float32]
) -> bytes:
    """The JSON text of a `SamplesResponse`.

    Args:
        cell: Its name.
        start_ms: Begin of the first sample.
        step_ms: Length of a sample.
        names: What the client calls the KPIs (K).
        values: Samples (K, T), NaN where there is none.
    """
    return _object(
        {
            "cell": _json(cell),
            "start": _json(to_rfc3339(start_ms)),
            "step_seconds": _json(seconds(step_ms)),
            "kpis": _by_name(names, (_json(to_numbers(row)) for row in values)),
        }
    ).encode()


def level_key(level: float) -> str:
    """A quantile level as the shortest decimal that means it: `0.1`, `0.975`."""
    return np.format_float_positional(level, trim="-")


def to_numbers(values: NDArray[np.float32]) -> list[Any]:
    """Nested lists of the array's shape: short decimals, None where a value is not finite."""
    wide = values.astype(np.float64)
    finite = np.isfinite(wide)
    size = np.where(finite & (wide != 0), np.abs(wide), 1.0)
    # Rounding to a number of digits does not reorder values, so quantiles stay in order.
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    short = np.where(finite, np.round(wide * scale) / scale, 0.0)
    if finite.all():
        return _as_list(short)
    boxed = short.astype(object)
    boxed[~finite] = None
    return _as_list(boxed)


def _as_list(values: NDArray[Any]) -> list[Any]:
    numbers = values.tolist()
    return numbers if isinstance(numbers, list) else [numbers]


def _forecast(forecast: Forecast, names: Sequence[str], now_ms: int) -> str:
    keys = [level_key(level) for level in forecast.levels]
    by_level = forecast.values.transpose(0, 2, 1)  # (K, Q, H)
    context = forecast.context
    age_s = None if context.newest_ms is None else (now_ms - context.newest_ms) / 1000
    return _object(
        {
            "cell": _json(forecast.cell),
            "start": _json(to_rfc3339(forecast.start_ms)),
            "step_seconds": _json(seconds(forecast.step_ms)),
            "kpis": _by_name(names, (_json_of(keys, values) for values in by_level)),
            "rung": _json(forecast.rung.value),
            "context": _json(
                {
                    "start": to_rfc3339(context.start_ms),
                    "end": to_rfc3339(context.end_ms),
                    "missing_ratio": round(context.missing_ratio, 6),
                    "age_seconds": age_s,
                }
            ),
        }
    )


def _json_of(keys: Sequence[str], values: NDArray[np.float32]) -> str:
    """A JSON object of one row of `values` by key."""
    return _json(dict(zip(keys, to_numbers(values), strict=True)))


def _by_name(names: Sequence[str], texts: Iterable[str]) -> str:
    return _object(dict(zip(names, texts, strict=True)))


def _object(members: Mapping[str, str]) -> str:
    """A JSON object whose values are JSON texts already."""
    return "{" + ",".join(f"{_json(name)}:{text}" for name, text in members.items()) + "}"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def seconds(duration_ms: int) -> int | float:
    """Seconds of a duration in milliseconds; whole ones without a fraction."""
    return duration_ms // 1000 if duration_ms % 1000 == 0 else duration_ms / 1000
