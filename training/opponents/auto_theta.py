"""AutoTheta of statsforecast: the best of four theta models, with its own intervals.

Fiorucci et al., Models for optimising the theta method (2016). The season is a day where the window
holds two of them, else a week, else none.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.opponents.statistical import MAX_CONTEXT_STEPS, Method, StatisticalOpponent


class AutoThetaOpponent(StatisticalOpponent):
    """The automatic theta method."""

    name = "AutoTheta"
    note = f"of statsforecast, fitted anew at every origin to at most {MAX_CONTEXT_STEPS:,} samples"

    def _method(self, periods: Sequence[int]) -> Method:
        from statsforecast.models import AutoTheta

        method: Method = AutoTheta(season_length=periods[0] if periods else 1)
        return method
