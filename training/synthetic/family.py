"""Families of activity and how often each is drawn at each density of sampling.

Axes: N series, L samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from training.synthetic.bursts import on_off_bursts
from training.synthetic.degenerate import degenerate
from training.synthetic.filters import chance
from training.synthetic.planned import Planned
from training.synthetic.polling import chunks, polls
from training.synthetic.seasonal import seasonal_cells
from training.synthetic.sessions import sessions
from training.synthetic.spectral import spectral
from training.synthetic.timing import DAY_MS, Clock, Regime
from training.synthetic.walks import walks


class Family(StrEnum):
    """How the activity of a cell comes about."""

    SEASONAL = "seasonal"
    WALKS = "walks"
    SPECTRAL = "spectral"
    BURSTS = "bursts"
    SESSIONS = "sessions"
    CHUNKS = "chunks"
    POLLS = "polls"
    DEGENERATE = "degenerate"


MIXTURE: Mapping[Regime, Mapping[Family, float]] = {
    Regime.HOUR: {
        Family.SEASONAL: 0.78,
        Family.WALKS: 0.09,
        Family.SPECTRAL: 0.06,
        Family.BURSTS: 0.04,
        Family.DEGENERATE: 0.03,
    },
    Regime.MINUTE: {
        Family.SEASONAL: 0.68,
        Family.WALKS: 0.12,
        Family.SPECTRAL: 0.05,
        Family.BURSTS: 0.07,
        Family.SESSIONS: 0.02,
        Family.POLLS: 0.03,
        Family.DEGENERATE: 0.03,
    },
    Regime.SECOND: {
        Family.WALKS: 0.10,
        Family.SPECTRAL: 0.04,
        Family.BURSTS: 0.36,
        Family.SESSIONS: 0.24,
        Family.CHUNKS: 0.12,
        Family.POLLS: 0.10,
        Family.DEGENERATE: 0.04,
    },
    Regime.DAY: {
        Family.SEASONAL: 0.5,
        Family.WALKS: 0.35,
        Family.SPECTRAL: 0.07,
        Family.DEGENERATE: 0.08,
    },
}
# A weekly sample holds every weekday, so nothing of a day's or a week's season is left in it.
WEEKLY_MIXTURE: Mapping[Family, float] = {
    Family.WALKS: 0.80,
    Family.SPECTRAL: 0.12,
    Family.DEGENERATE: 0.08,
}

_MIX_SHARE = 0.08

_GENERATORS: Mapping[Family, Callable[[np.random.Generator, Clock, bool], NDArray[np.float32]]] = {
    Family.WALKS: walks,
    Family.SPECTRAL: spectral,
    Family.BURSTS: on_off_bursts,
    Family.SESSIONS: sessions,
    Family.CHUNKS: chunks,
    Family.POLLS: polls,
    Family.DEGENERATE: degenerate,
}


def draw_families(
    rng: np.random.Generator, rows: int, regime: Regime, step_ms: int
) -> NDArray[np.str_]:
    """(N,) names of families in the proportions of the regime."""
    mixture = WEEKLY_MIXTURE if step_ms > DAY_MS else MIXTURE[regime]
    return rng.choice([f.value for f in mixture], rows, p=list(mixture.values()))


def draw_activity(
    rng: np.random.Generator,
    clock: Clock,
    planned: Planned,
    families: NDArray[np.str_],
    held_out: bool,
) -> NDArray[np.float32]:
    """(N, L) non-negative activity of level about 1, each series of its own family.

    Only seasonal cells follow what is planned.

    A few series are convex mixes of two. At most one part of a mix has seasons, because the parts
    have clocks of their own.
    """
    activity = np.empty((clock.rows, clock.length), dtype=np.float32)
    for family, generate in _GENERATORS.items():
        chosen = np.flatnonzero(families == family.value)
        if len(chosen):
            activity[chosen] = generate(rng, clock.take(chosen), held_out)
    seasonal = np.flatnonzero(families == Family.SEASONAL.value)
    if len(seasonal):
        activity[seasonal] = seasonal_cells(
            rng, clock.take(seasonal), planned.take(seasonal), held_out
        )
    mixed = np.flatnonzero(chance(rng, _MIX_SHARE, clock.rows))
    partners = np.flatnonzero(families != Family.SEASONAL.value)
    if len(mixed) and len(partners):
        partner = rng.choice(partners, len(mixed))
        weight = rng.uniform(0.1, 0.9, (len(mixed), 1)).astype(np.float32)
        activity[mixed] = weight * activity[mixed] + (1.0 - weight) * activity[partner]
    return activity
