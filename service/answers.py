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
from service.timestamps import age_seconds, to_rfc3339

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
    begin = numbers = 0
    for position, forecast in enumerate(forecasts):
        large = forecast.values.size > _PIECE_NUMBERS
        if begin < position and (large or not _are_alike(forecast, forecasts[begin])):
            yield _run(forecasts[begin:position], names[begin:position], now_ms)
            begin, numbers = position, 0
        numbers += forecast.values.size
        if large:
            yield _large(forecast, names[position], now_ms)
        elif numbers >= _PIECE_NUMBERS:
            yield _run(forecasts[begin : position + 1], names[begin : position + 1], now_ms)
        else:
            continue
        begin, numbers = position + 1, 0
    if begin < len(forecasts):
        yield _run(forecasts[begin:], names[begin:], now_ms)


def _are_alike(one: Forecast, other: Forecast) -> bool:
    """Whether both have as many steps and the same levels."""
    return one.levels == other.levels and one.values.shape[1] == other.values.shape[1]


def _run(forecasts: Sequence[Forecast], names: Sequence[Sequence[str]], now_ms: int) -> bytes:
    """The JSON texts of forecasts that are alike, without the brackets around them.

    All numbers are written in one go, and their text is cut into rows: a thousand small arrays
    take longer to be looked at than to be written.
    """
    rows = _rows([forecast.values for forecast in forecasts])
    template = _levels_template(forecasts[0].levels)
    levels = len(forecasts[0].levels)
    keys: dict[str, bytes] = {}
    parts: list[dict[str, Any]] = []
    begin = 0
    for forecast, spelt in zip(forecasts, names, strict=True):
        texts = []
        for name in spelt:
            key = keys.get(name)
            if key is None:
                key = keys[name] = _json(name)
            end = begin + levels
            texts.append(b"%b:%b" % (key, template % tuple(rows[begin:end])))
            begin = end
        kpis = orjson.Fragment(b"{%b}" % b",".join(texts))
        parts.append(_forecast(forecast, kpis, now_ms))
    return _json(parts)[1:-1]


def _large(forecast: Forecast, names: Sequence[str], now_ms: int) -> bytes:
    """The JSON text of a forecast with many numbers, written KPI by KPI."""
    template = _levels_template(forecast.levels)
    texts = (
        b"%b:%b" % (_json(name), template % tuple(_rows([values[np.newaxis]])))
        for name, values in zip(names, forecast.values, strict=True)
    )
    kpis = orjson.Fragment(b"{%b}" % b",".join(texts))
    return _json(_forecast(forecast, kpis, now_ms))


def _rows(values: Sequence[NDArray[np.float32]]) -> list[bytes]:
    """The JSON text of each row of H quantiles, without its brackets.

    Args:
        values: Arrays (K, H, Q) of one H and one Q; their rows follow one another by K and Q.
    """
    joined = np.concatenate(values)  # (n, H, Q)
    by_level = np.ascontiguousarray(joined.transpose(0, 2, 1), dtype=np.float32)  # (n, Q, H)
    text = _json(by_level.reshape(-1, joined.shape[1]))
    return text[2:-2].split(b"],[")


@lru_cache(maxsize=256)
def _levels_template(levels: tuple[float, ...]) -> bytes:
    """The JSON text of a KPI's quantiles, with `%b` where the row of each level belongs."""
    return b"{%b}" % b",".join(b'"%b":[%%b]' % level_key(level).encode() for level in levels)


def _forecast(forecast: Forecast, kpis: Any, now_ms: int) -> dict[str, Any]:
    context = forecast.context
    return {
        "cell": forecast.cell,
        "start": to_rfc3339(forecast.start_ms),
        "step_seconds": seconds(forecast.step_ms),
        "kpis": kpis,
        "rung": str(forecast.rung),
        "context": {
            "start": to_rfc3339(context.start_ms),
            "end": to_rfc3339(context.end_ms),
            "missing_ratio": round(context.missing_ratio, 6),
            "age_seconds": None
            if context.newest_ms is None
            else age_seconds(context.newest_ms, now_ms),
        },
    }


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def seconds(duration_ms: int) -> int | float:
    """Seconds of a duration in milliseconds; whole ones without a fraction."""
    return duration_ms // 1000 if duration_ms % 1000 == 0 else duration_ms / 1000
