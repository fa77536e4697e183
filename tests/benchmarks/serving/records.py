"""Records as a test would write them."""

from __future__ import annotations

import numpy as np

from benchmarks.serving.generator import NO_RUNG, RUNGS, Record


def record(*rows: tuple[int, float], rung: str | None = "full", lag_s: float = 0.0) -> Record:
    """One of (status, latency in milliseconds) a millisecond."""
    sent_s = np.arange(len(rows)) / 1000 + lag_s
    status = np.array([row[0] for row in rows], dtype=np.int16)
    done_s = np.where(status == 0, np.nan, sent_s + np.array([row[1] for row in rows]) / 1000)
    code = NO_RUNG if rung is None else RUNGS.index(rung)
    return Record(
        planned_s=sent_s - lag_s,
        sent_s=sent_s,
        done_s=done_s,
        status=status,
        rung=np.where(status == 200, code, NO_RUNG).astype(np.int8),
    )
