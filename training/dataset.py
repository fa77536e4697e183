"""Recorded windows as training data: their split in time, and their identity."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kpi.history import Selection
from kpi.window import KpiWindow
from training.storage import Place


def cut_in_time(window: KpiWindow, last_ratio: float) -> int:
    """Position of the first sample of a window's last part, which no training sees."""
    return round(window.steps * (1 - last_ratio))


def earlier_parts(windows: Sequence[KpiWindow], last_ratio: float) -> list[KpiWindow]:
    """Each window up to its cut."""
    return [known_at(window, cut_in_time(window, last_ratio)) for window in windows]


def known_at(window: KpiWindow, origin: int, history_steps: int | None = None) -> KpiWindow:
    """The samples before a position; what is planned after it is known too.

    Args:
        window: Recorded cell.
        origin: Position of the first sample that is not known yet.
        history_steps: Most samples that are kept, all by default.
    """
    first = 0 if history_steps is None else max(0, origin - history_steps)
    return replace(
        window,
        start_ms=window.start_ms + first * window.step_ms,
        values=window.values[:, first:origin],
    )


def data_card(
    paths: Sequence[Place],
    selection: Selection,
    windows: Sequence[KpiWindow],
    taught: Sequence[KpiWindow] | None = None,
) -> dict[str, Any]:
    """What a checkpoint's card says of its recordings, in plain values.

    Args:
        paths: Files and directories, or URLs of such.
        selection: What was taken from them.
        windows: What that gave, at least one.
        taught: The parts of it that taught or calibrated, all by default.
    """
    return {
        "data": [path.name for path in paths],
        "data_digest": windows_digest(windows),
        "data_until": latest_end(taught or windows),
        "cells": len({window.cell for window in windows}),
        "kpis": sorted({name for window in windows for name in window.kpis}),
        "selected_kpis": list(selection.kpis),
        "selected_cells": list(selection.cells),
        "excluded_cells": list(selection.exclude),
        "step_seconds": sorted({window.step_seconds for window in windows}),
        "time_zone": selection.reading.time_zone,
        "country": selection.country,
        "keep_suspect": selection.reading.keep_suspect,
    }


def latest_end(windows: Sequence[KpiWindow]) -> str:
    """When the last sample of all windows ends, as an ISO date in UTC, for a checkpoint's card.

    A backtest compares it with its origins (`training/backtest/seen.py`).
    """
    end_ms = max(window.end_ms for window in windows)
    return datetime.fromtimestamp(end_ms / 1000, UTC).isoformat()


def windows_digest(windows: Sequence[KpiWindow]) -> str:
    """A digest of all samples, clocks and plans, so that a run only goes on with the same data."""
    digest = hashlib.sha256()
    for window in sorted(windows, key=lambda w: (w.cell, w.step_ms)):
        grid = window.start_ms, window.step_ms, window.time_zone
        digest.update(repr((window.cell, window.kpis, grid)).encode())
        if window.country is not None or window.events:
            digest.update(repr((window.country, window.events)).encode())
        digest.update(window.values.tobytes())
    return f"sha256:{digest.hexdigest()}"
