"""What a calibration does to forecasts: coverage and accuracy without and with it.

Axis legend: K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.accuracy import Accuracy, measure
from model.calibration import Calibration
from model.checkpoint import Checkpoint
from model.transformer import TransformerPredictor
from training.calibrate import CalibrateConfig, Origins, fit_calibration
from training.dataset import earlier_parts
from training.errors import DataError
from training.scores import FEWEST_FORECASTS

CHECK_SHARE = 1 / 3
"""Of the part that calibrates, how much first judges what the rest would have given."""

INNER_LEVELS = (0.1, 0.9)


@dataclass(frozen=True)
class CalibrationCheck:
    """What a calibration did to forecasts.

    Attributes:
        in_sample: Whether it was learnt from the very targets that judge here.
        levels: The Q trained levels.
        covered_before: (Q,) share of targets at or below each quantile without calibration. Targets
            that equal the quantile count as far as the level needs them: zeros at a limit of zero.
        covered_after: (Q,) the same with it.
        before: Scores by KPI without calibration, over the levels from 0.1 to 0.9.
        after: The same with it.
    """

    in_sample: bool
    levels: tuple[float, ...]
    covered_before: NDArray[np.float64]
    covered_after: NDArray[np.float64]
    before: Mapping[str, Accuracy]
    after: Mapping[str, Accuracy]


def check_ahead(
    checkpoint: Checkpoint,
    windows: Sequence[KpiWindow],
    catalogue: Catalogue,
    config: CalibrateConfig,
    calibration: Calibration,
    on_progress: Callable[[int, int], None] | None = None,
) -> CalibrationCheck:
    """What calibrating does for the future, as far as the data can tell.

    The last third of the part that calibrates judges shifts that were learnt from the rest alone.
    Where the data are too short for that, `calibration` is judged on the targets it was learnt
    from, and the answer says so.

    Raises:
        DataError: The data are too short for `calibration` in the first place.
    """
    ratio = config.calibration_ratio
    late = ratio * CHECK_SHARE
    early = replace(config, calibration_ratio=(ratio - late) / (1 - late))
    last = replace(config, calibration_ratio=late)
    try:
        learnt = fit_calibration(
            checkpoint, earlier_parts(windows, late), catalogue, early, on_progress
        )
        check = check_calibration(checkpoint, learnt, windows, catalogue, last, on_progress)
        targets = sum(scores.targets for scores in check.before.values())
        if targets >= FEWEST_FORECASTS:
            return check
    except DataError:
        pass
    check = check_calibration(checkpoint, calibration, windows, catalogue, config, on_progress)
    return replace(check, in_sample=True)


def check_calibration(
    checkpoint: Checkpoint,
    calibration: Calibration,
    windows: Sequence[KpiWindow],
    catalogue: Catalogue,
    config: CalibrateConfig,
    on_progress: Callable[[int, int], None] | None = None,
) -> CalibrationCheck:
    """Forecast from the last part of each history, without and with a calibration.

    Raises:
        DataError: The histories are too short.
    """
    plain = TransformerPredictor(checkpoint, catalogue, calibrated=False)
    moved = TransformerPredictor(replace(checkpoint, calibration=calibration), catalogue)
    origins = Origins(windows, config, plain.max_horizon)
    levels = plain.config.levels
    tallies = _Tally(levels), _Tally(levels)
    for done, chunk in origins.chunks():
        pasts = [origin.past for origin in chunk]
        for predictor, tally in zip((plain, moved), tallies, strict=True):
            forecasts = predictor.predict(pasts, origins.horizon, levels)
            for origin, forecast in zip(chunk, forecasts, strict=True):
                tally.add(forecast.kpis, forecast.values, origin.future)
        if on_progress:
            on_progress(done, len(origins))
    before, after = tallies
    return CalibrationCheck(
        in_sample=False,
        levels=levels,
        covered_before=before.covered,
        covered_after=after.covered,
        before=before.by_kpi,
        after=after.by_kpi,
    )


class _Tally:
    """Sums over forecasts: by KPI what accuracy is made of, by level what was covered."""

    def __init__(self, levels: Sequence[float]) -> None:
        self._levels = np.asarray(levels)
        low, high = INNER_LEVELS
        self._inner = (self._levels >= low) & (self._levels <= high)
        self._targets = 0
        self._above = np.zeros(len(levels))
        self._at_or_above = np.zeros(len(levels))
        self.by_kpi: dict[str, Accuracy] = {}

    def add(
        self,
        kpis: Sequence[str],
        quantiles: NDArray[np.float32],
        target: NDArray[np.float32],
    ) -> None:
        """Take quantiles (K, H, Q) and targets (K, H), NaN where missing."""
        known = ~np.isnan(target) & ~np.isnan(quantiles).any(-1)
        y, q = target[known][:, None], quantiles[known]
        self._targets += len(y)
        self._above += (y > q).sum(0)
        self._at_or_above += (y >= q).sum(0)
        inner = self._levels[self._inner].tolist()
        for row, kpi in enumerate(kpis):
            part = measure(quantiles[row : row + 1, :, self._inner], target[row : row + 1], inner)
            self.by_kpi[kpi] = self.by_kpi[kpi] + part if kpi in self.by_kpi else part

    @property
    def covered(self) -> NDArray[np.float64]:
        """(Q,) share of targets at or below each quantile, see `CalibrationCheck`."""
        targets = max(1, self._targets)
        fewest, most = 1 - self._at_or_above / targets, 1 - self._above / targets
        covered: NDArray[np.float64] = np.clip(self._levels, fewest, most)
        return covered
