"""What is asked: histories of made-up cells, in the forms that the servers read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.inference.shapes import HORIZON, LEVELS, Shape, draw_windows
from benchmarks.serving.http_client import build_request
from kpi.window import KpiWindow
from service.codecs.arrow_requests import METADATA_KEY
from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
from service.timestamps import to_rfc3339

ROUTE = "/v1/forecast"
MISSING_EVERY = 97
"""Every so many samples one is missing: lists of numbers alone would be read in other ways."""

_PATIENT_MS = "60000"


def cells(number: int, steps: int, *, missing: bool = False) -> list[KpiWindow]:
    """Windows of one KPI, the same at every call.

    Args:
        number: Of cells.
        steps: Samples of each.
        missing: Whether some samples are missing.
    """
    windows = draw_windows(Shape(number, 1), steps)
    for window in windows:
        np.round(window.values, 2, out=window.values)
        if missing:
            window.values[:, ::MISSING_EVERY] = np.nan
    return windows


def json_body(windows: Sequence[KpiWindow]) -> bytes:
    """A body of `POST /v1/forecast` as compact JSON."""
    body = {"series": [_series(window) for window in windows], "horizon": HORIZON}
    body["quantiles"] = list(LEVELS)
    return json.dumps(body, separators=(",", ":")).encode()


def arrow_body(windows: Sequence[KpiWindow]) -> bytes:
    """The same as an Arrow IPC stream; what is missing is NaN."""
    rows = [(window, kpi, line) for window in windows for kpi, line in _lines(window)]
    table = pa.table(
        {
            "cell": [window.cell for window, _, _ in rows],
            "kpi": [kpi for _, kpi, _ in rows],
            "start": pa.array([w.start_ms for w, _, _ in rows], pa.timestamp("ms", tz="UTC")),
            "step_seconds": [window.step_ms / 1000 for window, _, _ in rows],
            "values": pa.array([line for _, _, line in rows], pa.list_(pa.float32())),
        }
    )
    options = json.dumps({"horizon": HORIZON, "quantiles": LEVELS})
    table = table.replace_schema_metadata({METADATA_KEY: options})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def forecast_requests(windows: Sequence[KpiWindow], **headers: str) -> tuple[bytes, ...]:
    """A request for each window alone.

    Args:
        windows: Of one cell each.
        headers: Of every request; underscores stand for hyphens.
    """
    return tuple(build_request(ROUTE, json_body([window]), **headers) for window in windows)


def demands(*, budget_ms: str = _PATIENT_MS, rung: str = "full") -> dict[str, str]:
    """Headers that state a budget and the least rung."""
    return {"X_Latency_Budget_Ms": budget_ms, "X_Minimum_Rung": rung}


def bulk_json_request(windows: Sequence[KpiWindow], **headers: str) -> bytes:
    """One request for all windows, as JSON."""
    return build_request(ROUTE, json_body(windows), **headers)


def bulk_arrow_request(windows: Sequence[KpiWindow], **headers: str) -> bytes:
    """One request for all windows, as an Arrow stream both ways."""
    return build_request(
        ROUTE,
        arrow_body(windows),
        content_type=ARROW_MEDIA_TYPE,
        Accept=ARROW_MEDIA_TYPE,
        **headers,
    )


def _series(window: KpiWindow) -> dict[str, Any]:
    return {
        "cell": window.cell,
        "start": to_rfc3339(window.start_ms),
        "step_seconds": window.step_ms / 1000,
        "kpis": {
            kpi: [None if np.isnan(value) else round(float(value), 2) for value in line]
            for kpi, line in _lines(window)
        },
    }


def _lines(window: KpiWindow) -> list[tuple[str, Any]]:
    return list(zip(window.kpis, window.values, strict=True))
