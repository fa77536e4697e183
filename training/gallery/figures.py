"""Figures of synthetic cells with those of real ones marked on them: a table and two curves.

Axes: N series, P points of a curve.
"""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from training.gallery.cells import RealCells
from training.gallery.drawing import Band, chart, rank_strip
from training.gallery.statistics import Series, autocorrelation, describe

QUANTILES = (0.05, 0.5, 0.95)
REAL_QUANTILES = (0.1, 0.5, 0.9)
_LARGELY_OUTSIDE = 0.25
_PROBABILITIES = np.linspace(0.01, 0.99, 50)
_LEAST_SHOWN = 1e-3
_MOST_LAGS = 32


def ranks(synthetic: NDArray[np.float64], real: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M,) where real figures (M,) lie among synthetic ones (N,): 0 below all, 1 above all.

    Ties count half, so a figure that all share lies in the middle. NaN on either side is left out.
    """
    known = np.sort(synthetic[~np.isnan(synthetic)])
    marked = real[~np.isnan(real)]
    if not len(known):
        return np.empty(0)
    below = np.searchsorted(known, marked, "left")
    return np.asarray((below + np.searchsorted(known, marked, "right")) / (2 * len(known)))


def outside_ratio(synthetic: NDArray[np.float64], real: NDArray[np.float64]) -> float:
    """Share of real figures beyond the synthetic 5 % and 95 % quantiles; NaN without figures."""
    known, marked = synthetic[~np.isnan(synthetic)], real[~np.isnan(real)]
    if not len(known) or not len(marked):
        return float("nan")
    low, high = np.quantile(known, (QUANTILES[0], QUANTILES[-1]))
    return float(np.mean((marked < low) | (marked > high)))


def figure_table(synthetic: Series, real: RealCells) -> str:
    """One row a figure: synthetic quantiles, then ranks and quantiles of the real cells."""
    ours, theirs = describe(synthetic), describe(real.series)
    names = np.array(real.kpis)
    head = "<tr><th>figure</th><th>synthetic: 5%</th><th>50%</th><th>95%</th>"
    if len(names):
        head += "<th>rank of the real ones</th><th>real: 10%</th><th>50%</th><th>90%</th>"
        head += "<th>outside</th>"
    rows = []
    for name, values in ours.items():
        known = values[~np.isnan(values)]
        if not len(known):
            continue
        cells = [f"<td>{escape(name)}</td>", *_numbers(known, QUANTILES)]
        marked = theirs[name][~np.isnan(theirs[name])] if len(names) else np.empty(0)
        emphasis = ""
        if len(marked):
            by_kpi = [(kpi, ranks(values, theirs[name][names == kpi])) for kpi in real.names]
            outside = outside_ratio(values, marked)
            cells += [
                f"<td>{rank_strip(by_kpi)}</td>",
                *_numbers(marked, REAL_QUANTILES),
                f"<td>{outside:.0%}</td>",
            ]
            emphasis = ' class="outside"' if outside > _LARGELY_OUTSIDE else ""
        elif len(names):
            cells.append('<td colspan="5"></td>')
        rows.append(f"<tr{emphasis}>{''.join(cells)}</tr>")
    return f"<table>{head}</tr>{''.join(rows)}</table>"


def curves(synthetic: Series, real: RealCells) -> list[str]:
    """The distribution of values over the mean, and the autocorrelation over the lag."""
    lags = np.unique(
        np.geomspace(1, max(synthetic.values.shape[1] // 3, 2), _MOST_LAGS).astype(int)
    )
    names = np.array(real.kpis)
    ours, theirs = synthetic.relative(), real.series.relative()
    spread = _levels(ours)
    memory = _correlations(ours, lags)
    real_spread = _medians(_levels(theirs), names, real.names)
    real_memory = _medians(_correlations(theirs, lags), names, real.names)
    first, last = float(np.log10(lags[0])), float(np.log10(lags[-1]))
    shown = "synthetic 5 to 95 %" + (", real medians" if real.names else "")
    decades = [10**power for power in range(int(last) + 1)]
    return [
        chart(
            _PROBABILITIES.tolist(),
            _band(spread),
            real_spread,
            title=f"Values over the mean, by their rank: {shown}",
            ticks=[(share, f"{share:.0%}") for share in (0.1, 0.5, 0.9)],
            limits=(float(np.log10(_LEAST_SHOWN)), 1.5),
            marks=[(-3, "≤0.001"), (-2, "0.01"), (-1, "0.1"), (0, "1"), (1, "10")],
        ),
        chart(
            np.log10(lags).tolist(),
            _band(memory),
            real_memory,
            title=f"Autocorrelation over the lag in steps: {shown}",
            ticks=[(float(np.log10(lag)), f"{lag:,}") for lag in decades if first <= np.log10(lag)],
            limits=(-1.0, 1.0),
            marks=[(-1, "-1"), (0, "0"), (1, "1")],
        ),
    ]


def _numbers(known: NDArray[np.float64], levels: tuple[float, ...]) -> list[str]:
    return [f"<td>{_shown(value)}</td>" for value in np.quantile(known, levels)]


def _shown(value: float) -> str:
    """Three digits, and all of those before the point: no powers of ten in a table for people."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _levels(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, P) logarithms of the quantiles of each series; zeros lie at the lower edge."""
    some = relative[~np.isnan(relative).all(axis=1)]
    if not len(some):
        return np.full((len(relative), len(_PROBABILITIES)), np.nan)
    levels = np.full((len(relative), len(_PROBABILITIES)), np.nan)
    levels[~np.isnan(relative).all(axis=1)] = np.nanquantile(some, _PROBABILITIES, axis=1).T
    return np.asarray(np.log10(np.maximum(levels, _LEAST_SHOWN)), dtype=np.float64)


def _correlations(relative: NDArray[np.float64], lags: NDArray[np.int_]) -> NDArray[np.float64]:
    """(N, P) autocorrelation at each lag."""
    return np.stack([autocorrelation(relative, int(lag)) for lag in lags], axis=1)


def _band(points: NDArray[np.float64]) -> Band:
    """Quantiles over the series, at every point that enough of them have."""
    edges = np.full((len(QUANTILES), points.shape[1]), np.nan)
    for column in range(points.shape[1]):
        known = points[~np.isnan(points[:, column]), column]
        if len(known):
            edges[:, column] = np.quantile(known, QUANTILES)
    return Band(edges[0], edges[1], edges[2])


def _medians(
    points: NDArray[np.float64], kpis: NDArray[np.str_], names: list[str]
) -> list[tuple[str, NDArray[np.float64]]]:
    """One curve a KPI."""
    return [(name, _band(points[kpis == name]).middle) for name in names]
