"""MSTL of statsforecast: seasons of a day and a week taken off, the rest by exponential smoothing.

Bandara, Hyndman and Bergmeir, MSTL (2021). Where the window holds no season twice, the smoothing
answers alone, as it does for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.opponents.statistical import MAX_CONTEXT_STEPS, Method, StatisticalOpponent

REST = "ZZN"
"""Error and trend chosen automatically, no season."""


class MstlOpponent(StatisticalOpponent):
    """Multiple seasonal-trend decomposition."""

    name = "MSTL"
    note = (
        "of statsforecast, daily and weekly seasons, fitted anew at every origin to at most "
        f"{MAX_CONTEXT_STEPS:,} samples"
    )

    def _method(self, periods: Sequence[int]) -> Method:
        from statsforecast.models import MSTL, AutoETS

        rest = AutoETS(model=REST)
        method: Method = (
            MSTL(season_length=list(periods), trend_forecaster=rest) if periods else rest
        )
        return method
