"""Seasonal opponents: last value, one day or week back, means over several of them.

All are rules of `model.baseline`, with quantiles of their own past errors. A window too short for
a rule (less than two of its periods) is answered by its last value, as the baseline does.
"""

from __future__ import annotations

from kpi.catalogue import Catalogue
from model.baseline import SeasonalBaseline


def last_value(catalogue: Catalogue) -> SeasonalBaseline:
    """The last value held."""
    return SeasonalBaseline(catalogue, ("last value",))


def daily_naive(catalogue: Catalogue) -> SeasonalBaseline:
    """The value one day earlier."""
    return SeasonalBaseline(catalogue, ("daily naive",))


def weekly_naive(catalogue: Catalogue) -> SeasonalBaseline:
    """The value one week earlier."""
    return SeasonalBaseline(catalogue, ("weekly naive",))


def daily_mean(catalogue: Catalogue) -> SeasonalBaseline:
    """The mean of the values one to seven days earlier."""
    return SeasonalBaseline(catalogue, ("daily mean",))


def weekly_mean(catalogue: Catalogue) -> SeasonalBaseline:
    """The mean of the values one to four weeks earlier."""
    return SeasonalBaseline(catalogue, ("weekly mean",))


def seasonal_baseline(catalogue: Catalogue) -> SeasonalBaseline:
    """The best of last value, daily mean and weekly mean on the window itself."""
    return SeasonalBaseline(catalogue)
