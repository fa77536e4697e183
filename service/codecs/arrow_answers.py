"""From forecasts to an Arrow IPC stream: one row a cell and KPI, one column a quantile level.

Axis legend: n rows, K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from model.predictor import Forecast, ModelIdentity
from service.answers import level_key
from service.timestamps import age_seconds

METADATA_KEY = "rancast"
_INSTANT = pa.timestamp("ms", tz="UTC")


def forecast_stream(
    model: ModelIdentity,
    forecasts: Sequence[Forecast],
    names: Sequence[Sequence[str]],
    *,
    now_ms: int,
) -> bytes:
    """An Arrow IPC stream with what a `ForecastResponse` says.

    Columns `cell`, `kpi`, `start`, `step_seconds`; `q0.1` and so on, lists of H float32, NaN where
    nothing can be said; `rung`, `context_start`, `context_end`, `missing_ratio`, `age_seconds`. The
    model is JSON in the schema's metadata, under the key `rancast`.

    Args:
        model: Who answered.
        forecasts: One a series, all of one horizon and the same levels.
        names: For each forecast, what the client calls its KPIs, in the forecast's order.
        now_ms: The time of the answer, from which ages count.
    """
    levels = forecasts[0].levels
    horizon = forecasts[0].values.shape[1]
    counts = np.array([len(spelt) for spelt in names])
    # (n, H, Q) to (Q, n * H): each level is a column, in one piece.
    values = np.concatenate([forecast.values for forecast in forecasts])
    by_level = np.ascontiguousarray(values.transpose(2, 0, 1), dtype=np.float32)
    by_level = by_level.reshape(len(levels), -1)
    contexts = [forecast.context for forecast in forecasts]
    newest = [context.newest_ms for context in contexts]
    per_series: dict[str, pa.Array] = {
        "cell": pa.array([forecast.cell for forecast in forecasts], pa.string()),
        "start": pa.array([forecast.start_ms for forecast in forecasts], _INSTANT),
        "step_seconds": pa.array([forecast.step_ms / 1000 for forecast in forecasts]),
        "rung": pa.array([str(forecast.rung) for forecast in forecasts], pa.string()),
        "context_start": pa.array([context.start_ms for context in contexts], _INSTANT),
        "context_end": pa.array([context.end_ms for context in contexts], _INSTANT),
        "missing_ratio": pa.array([context.missing_ratio for context in contexts], pa.float64()),
        "age_seconds": pa.array(
            [None if ms is None else age_seconds(ms, now_ms) for ms in newest], pa.float64()
        ),
    }
    if (counts > 1).any():
        series = pa.array(np.repeat(np.arange(len(forecasts)), counts))
        per_series = {name: column.take(series) for name, column in per_series.items()}
    columns = {
        "cell": per_series.pop("cell"),
        "kpi": pa.array([name for spelt in names for name in spelt], pa.string()),
        "start": per_series.pop("start"),
        "step_seconds": per_series.pop("step_seconds"),
        **{
            f"q{level_key(level)}": pa.FixedSizeListArray.from_arrays(pa.array(flat), horizon)
            for level, flat in zip(levels, by_level, strict=True)
        },
        **per_series,
    }
    identity = {"name": model.name, "version": model.version, "digest": model.digest}
    batch = pa.record_batch(columns)
    batch = batch.replace_schema_metadata({METADATA_KEY: json.dumps({"model": identity})})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
