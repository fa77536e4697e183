"""Recorded windows as training data: their split in time, and their identity."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from kpi.window import KpiWindow


def split_in_time(
    windows: Sequence[KpiWindow], last_ratio: float
) -> tuple[list[KpiWindow], list[KpiWindow]]:
    """The earlier part of each window, and its last part, which no training sees."""
    earlier, later = [], []
    for window in windows:
        cut = round(window.steps * (1 - last_ratio))
        earlier.append(replace(window, values=window.values[:, :cut]))
        later.append(
            replace(
                window,
                start_ms=window.start_ms + cut * window.step_ms,
                values=window.values[:, cut:],
            )
        )
    return earlier, later


def windows_digest(windows: Sequence[KpiWindow]) -> str:
    """A digest of all samples, so that a run is only gone on with on the same data."""
    digest = hashlib.sha256()
    for window in sorted(windows, key=lambda w: (w.cell, w.step_ms)):
        digest.update(repr((window.cell, window.kpis, window.start_ms, window.step_ms)).encode())
        digest.update(window.values.tobytes())
    return f"sha256:{digest.hexdigest()}"
