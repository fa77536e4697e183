"""Forecasts as files: CSV and Parquet for tools, JSON as the service answers it, HTML to look at.

The table has one row a cell, KPI and step, one column a quantile, and says who forecast it.

Axis legend: K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from model.fan_chart import fan_chart, to_html
from model.predictor import Forecast
from service.answers import forecast_answer, level_key
from service.errors import ServiceError
from service.offline.forecast import ForecastResult

MAX_CHARTS = 60

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Forecast</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
padding: 0 1rem; color: #1c2430 }} .note {{ color: #5a6675 }}</style></head><body>
<h1>Forecast of {cells} cells</h1>
<p class="note">{note}</p>
{charts}
</body></html>
"""


class OutputError(ServiceError):
    """An output that cannot be written; the message says what was expected."""


def write_output(result: ForecastResult, path: Path) -> None:
    """Write the forecasts in the format that the suffix of `path` names.

    Raises:
        OutputError: The suffix names no format, or the file cannot be written.
    """
    check_output(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[path.suffix.lower()](result, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def check_output(path: Path) -> None:
    """Refuse a path whose suffix names no format, before any work is done.

    Raises:
        OutputError: The suffix is not one of the four.
    """
    if path.suffix.lower() not in _WRITERS:
        raise OutputError(
            f"expected an output that ends in {', '.join(_WRITERS)}, got {path.name!r}"
        )


def forecast_table(result: ForecastResult) -> pa.Table:
    """One row a cell, KPI and step; `time` is the begin of the step in UTC."""
    parts = [_rows(forecast) for forecast in result.forecasts]
    return pa.concat_tables(parts)


def _rows(forecast: Forecast) -> pa.Table:
    kpis, horizon, _ = forecast.values.shape
    rows = kpis * horizon
    times = forecast.start_ms + forecast.step_ms * np.arange(horizon, dtype=np.int64)
    columns: dict[str, pa.Array] = {
        "cell": pa.array([forecast.cell]).take(pa.array(np.zeros(rows, dtype=np.int64))),
        "kpi": pa.array(forecast.kpis).take(pa.array(np.repeat(np.arange(kpis), horizon))),
        "time": pa.array(np.tile(times, kpis), type=pa.timestamp("ms", tz="UTC")),
        "step_seconds": pa.array(np.full(rows, forecast.step_ms / 1000)),
    }
    for column, level in enumerate(forecast.levels):
        values = forecast.values[:, :, column].reshape(rows)
        columns[f"q{level_key(level)}"] = pa.array(values, from_pandas=True)
    said = {
        "model": forecast.model.name,
        "model_version": forecast.model.version,
        "model_digest": forecast.model.digest,
        "rung": forecast.rung.value,
    }
    for name, text in said.items():
        columns[name] = pa.array([text] * rows)
    columns["missing_ratio"] = pa.array(np.full(rows, forecast.context.missing_ratio))
    return pa.table(columns)


def _write_csv(result: ForecastResult, path: Path) -> None:
    pyarrow.csv.write_csv(forecast_table(result), path)


def _write_parquet(result: ForecastResult, path: Path) -> None:
    pyarrow.parquet.write_table(forecast_table(result), path, compression="zstd")


def _write_json(result: ForecastResult, path: Path) -> None:
    names = [forecast.kpis for forecast in result.forecasts]
    model = result.forecasts[0].model
    now_ms = time.time_ns() // 1_000_000
    path.write_bytes(forecast_answer(model, result.forecasts, names, now_ms=now_ms))


def _write_html(result: ForecastResult, path: Path) -> None:
    pairs = [
        (window, forecast, row)
        for window, forecast in zip(result.windows, result.forecasts, strict=True)
        for row in range(len(forecast.kpis))
    ]
    model = result.forecasts[0].model
    note = " ".join(part for part in (model.name, model.version, model.digest) if part)
    if len(pairs) > MAX_CHARTS:
        note += f"; the first {MAX_CHARTS} of {len(pairs)} charts (all are in CSV, JSON or Parquet)"
    charts = to_html(
        fan_chart(window, forecast, row, unit=result.units.get(forecast.kpis[row], ""))
        for window, forecast, row in pairs[:MAX_CHARTS]
    )
    page = PAGE.format(cells=len(result.windows), note=escape(note), charts=charts)
    path.write_text(page, encoding="utf-8")


_WRITERS: Mapping[str, Callable[[ForecastResult, Path], None]] = {
    ".csv": _write_csv,
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".html": _write_html,
}
