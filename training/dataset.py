"""Recorded windows as training data: their split in time, and their identity."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kpi.window import KpiWindow


def cut_in_time(window: KpiWindow, last_ratio: float) -> int:
    """Position of the first sample of a window's last part, which no training sees."""
    return round(window.steps * (1 - last_ratio))


def earlier_parts(windows: Sequence[KpiWindow], last_ratio: float) -> list[KpiWindow]:
    """Each window up to its cut."""
    return [
        replace(window, values=window.values[:, : cut_in_time(window, last_ratio)])
        for window in windows
    ]


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
