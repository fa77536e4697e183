"""The KPIs of one cell: different views of one activity, with lags, own noise and saturation.

A fifth of the secondary KPIs have nothing to do with the cell's activity, so that attention over
KPIs learns to ignore as well as to look.

Axes: B cells, K KPIs, L samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.synthetic.filters import chance, delayed, log_uniform, unit_mean

_UNRELATED_SHARE = 0.2
_LONGEST_DELAY_STEPS = 8


def correlate(rng: np.random.Generator, activity: NDArray[np.float32]) -> NDArray[np.float32]:
    """(B, K, L) activity in which KPIs 1.. mostly follow KPI 0 of their cell.

    Args:
        rng: Source of randomness.
        activity: (B, K, L) non-negative, every KPI drawn for itself.

    Returns:
        KPI 0 unchanged; the others bent, delayed and noisy copies of it, mixed with what they were.
    """
    cells, kpis, length = activity.shape
    out = activity.copy()
    for kpi in range(1, kpis):
        related = np.flatnonzero(~chance(rng, _UNRELATED_SHARE, cells))
        rows = len(related)
        view = activity[related, 0]
        lag = rng.integers(-_LONGEST_DELAY_STEPS, _LONGEST_DELAY_STEPS + 1, rows)
        # Some KPIs lead the driver and some follow it; most move with it.
        lag[~chance(rng, 0.3, rows)] = 0
        ahead = np.flatnonzero(lag < 0)
        behind = np.flatnonzero(lag > 0)
        view[behind] = delayed(view[behind], lag[behind])
        view[ahead] = delayed(view[ahead, ::-1], -lag[ahead])[:, ::-1]
        elasticity = rng.uniform(0.5, 1.4, (rows, 1)).astype(np.float32)
        view = unit_mean(view**elasticity)
        saturating = np.flatnonzero(chance(rng, 0.2, rows))
        limit = log_uniform(rng, 0.7, 3.0, (len(saturating), 1))
        view[saturating] /= 1.0 + view[saturating] / limit
        noise = log_uniform(rng, 0.01, 0.35, (rows, 1))
        view *= np.exp(noise * rng.standard_normal((rows, length), dtype=np.float32))
        own = rng.beta(1.0, 4.0, (rows, 1)).astype(np.float32)
        out[related, kpi] = unit_mean((1.0 - own) * unit_mean(view) + own * activity[related, kpi])
    return out


def congestion(rng: np.random.Generator, driver: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, L) how full a cell of activity `driver` (N, L) is; 1 and above is more than it can carry.

    Some cells never come near their limit, others spend their busy hours over it.
    """
    busy = driver.mean(axis=1, keepdims=True) + 2.0 * driver.std(axis=1, keepdims=True)
    use = rng.uniform(0.1, 1.2, (len(driver), 1)).astype(np.float32)
    return np.asarray(
        np.minimum(use * driver / np.maximum(busy, np.float32(1e-6)), np.float32(1.5)),
        dtype=np.float32,
    )
