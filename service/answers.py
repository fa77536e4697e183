"""From forecasts to the JSON text of an answer.

Written straight from arrays by a compiled encoder: no number becomes a Python object. It is written
by pieces, because the encoder lets no other thread run before it is through, the event loop's
included. The shape is `service.schemas.ForecastResponse`, which a test holds it to.

Axis legend: K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from model.predictor import Forecast, ModelIdentity
from service.timestamps import to_rfc3339

# Numbers that are written in one go: a millisecond's work.
_PIECE_NUMBERS = 16_384


def forecast_answer(
    model: ModelIdentity,
    forecasts: Sequence[Forecast],
    names: Sequence[Sequence[str]],
    *,
    now_ms: int,
) -> bytes:
    """The JSON text of a `ForecastResponse`.

    Numbers are the shortest decimals that mean the float32, null where it is not finite.

    Args:
        model: Who answered.
        forecasts: One a series.
        names: For each forecast, what the client calls its KPIs, in the forecast's order.
        now_ms: The time of the answer, from which ages count.
    """
    identity = {"name": model.name, "version": model.version, "digest": model.digest}
    written = b",".join(_pieces(forecasts, names, now_ms))
    return b'{"model":%b,"forecasts":[%b]}' % (_json(identity), written)


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
    return _json(
        {
            "cell": cell,
            "start": to_rfc3339(start_ms),
            "step_seconds": seconds(step_ms),
            "kpis": dict(zip(names, np.ascontiguousarray(values, dtype=np.float32), strict=True)),
        }
    )


@lru_cache(maxsize=1024)
def level_key(level: float) -> str:
    """A quantile level as the shortest decimal that means it: `0.1`, `0.975`."""
    return np.format_float_positional(level, trim="-")


def _pieces(
    forecasts: Sequence[Forecast], names: Sequence[Sequence[str]], now_ms: int
) -> Iterator[bytes]:
    """JSON texts of runs of forecasts, without the brackets around them."""
    run: list[dict[str, Any]] = []
    numbers = 0
    for forecast, spelt in zip(forecasts, names, strict=True):
        if forecast.values.size > _PIECE_NUMBERS:
            if run:
                yield _json(run)[1:-1]
            yield _large(forecast, spelt, now_ms)
            run, numbers = [], 0
            continue
        run.append(_forecast(forecast, _quantiles(forecast, spelt), now_ms))
        numbers += forecast.values.size
        if numbers >= _PIECE_NUMBERS:
            yield _json(run)[1:-1]
            run, numbers = [], 0
    if run:
        yield _json(run)[1:-1]


def _large(forecast: Forecast, names: Sequence[str], now_ms: int) -> bytes:
    """The JSON text of a forecast with many numbers, written KPI by KPI."""
    quantiles = _quantiles(forecast, names)
    texts = (_json({name: by_level})[1:-1] for name, by_level in quantiles.items())
    kpis = orjson.Fragment(b"{%b}" % b",".join(texts))
    return _json(_forecast(forecast, kpis, now_ms))


def _quantiles(forecast: Forecast, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Rows of H quantiles by KPI and level."""
    keys = [level_key(level) for level in forecast.levels]
    by_level = np.ascontiguousarray(
        forecast.values.transpose(0, 2, 1), dtype=np.float32
    )  # (K, Q, H)
    return {
        name: dict(zip(keys, rows, strict=True)) for name, rows in zip(names, by_level, strict=True)
    }


def _forecast(forecast: Forecast, kpis: Any, now_ms: int) -> dict[str, Any]:
    context = forecast.context
    return {
        "cell": forecast.cell,
        "start": to_rfc3339(forecast.start_ms),
        "step_seconds": seconds(forecast.step_ms),
        "kpis": kpis,
        "rung": forecast.rung.value,
        "context": {
            "start": to_rfc3339(context.start_ms),
            "end": to_rfc3339(context.end_ms),
            "missing_ratio": round(context.missing_ratio, 6),
            "age_seconds": None
            if context.newest_ms is None
            else (now_ms - context.newest_ms) / 1000,
        },
    }


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def seconds(duration_ms: int) -> int | float:
    """Seconds of a duration in milliseconds; whole ones without a fraction."""
    return duration_ms // 1000 if duration_ms % 1000 == 0 else duration_ms / 1000
