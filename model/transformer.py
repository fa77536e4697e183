"""The Transformer as a Predictor: windows in, forecasts out, whatever their length, step and KPIs.

Windows are grouped by step and number of KPIs; within a group shorter histories are padded in front
with samples that the model cannot see, so a forecast does not depend on its neighbours in the
batch. A KPI with fewer than two samples in the context has no spread to be scaled by; the seasonal
baseline answers for it, from the whole window.

Axis legend: B windows, K KPIs, T samples of history, N patches, H steps, L levels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model import scaling, tokens
from model.baseline import SeasonalBaseline
from model.calendar import calendar_of_windows
from model.checkpoint import Checkpoint
from model.config import ForecasterConfig
from model.conformity import conformity, limits_in_model_space
from model.errors import HorizonError
from model.forecaster import Network
from model.lags import MAX_HISTORY_STEPS, WEEK_MS
from model.native_tokens import build_tokens
from model.planned import planned_inputs
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from model.quantiles import as_float32, at_levels, check_levels, within_limits

MAX_BATCH_WINDOWS = 32
MAX_BATCH_SERIES = 512
"""Bounds memory where cells report hundreds of counters; one window is never divided."""

LAG_WEEKS = 4
FEWEST_SAMPLES = 2


class TransformerPredictor:
    """Forecasts of a trained checkpoint."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        catalogue: Catalogue,
        *,
        calibrated: bool = True,
        network: Network | None = None,
        rung: Rung = Rung.FULL,
    ) -> None:
        """Make the forecaster ready.

        Args:
            checkpoint: Weights, and their calibration where there is one.
            catalogue: KPI catalogue.
            calibrated: Whether the calibration is used; without it quantiles are as trained.
            network: What computes in the place of the checkpoint's own forecaster, such as
                `model.compiled.CompiledNetwork`.
            rung: What its forecasts say of the work that went into them.
        """
        self._rung = rung
        self._checkpoint = checkpoint
        self._catalogue = catalogue
        self._calibration = checkpoint.calibration if calibrated else None
        self._network: Network = network or checkpoint.build()
        self._baseline = SeasonalBaseline(
            catalogue, level_range=self.level_range, identity=self.identity
        )

    @property
    def identity(self) -> ModelIdentity:
        """Who answers."""
        return self._checkpoint.identity

    @property
    def config(self) -> ForecasterConfig:
        """Shape of the forecaster."""
        return self._checkpoint.config

    @property
    def max_horizon(self) -> int:
        """Longest horizon in steps."""
        return self.config.max_horizon

    @property
    def level_range(self) -> tuple[float, float]:
        """Lowest and highest trained quantile level."""
        return self.config.levels[0], self.config.levels[-1]

    def predict(
        self, windows: Sequence[KpiWindow], horizon: int, levels: Sequence[float]
    ) -> list[Forecast]:
        """Forecast each window; see `Predictor.predict`."""
        self._check_horizon(horizon)
        check_levels(levels, *self.level_range)
        informed = [self._informed(window) for window in windows]
        blank = [index for index, rows in enumerate(informed) if not rows.any()]
        by_baseline = self._baseline.predict([windows[index] for index in blank], horizon, levels)
        forecasts = dict(zip(blank, by_baseline, strict=True))
        for chunk in self._batches(windows, informed):
            answered = self._predict_alike(
                [windows[i] for i in chunk], [informed[i] for i in chunk], horizon, levels
            )
            forecasts.update(zip(chunk, answered, strict=True))
        return [forecasts[index] for index in range(len(windows))]

    def conformity(
        self, windows: Sequence[KpiWindow], targets: Sequence[NDArray[np.float32]]
    ) -> list[NDArray[np.float32]]:
        """How the uncalibrated quantiles stand to what came, see `model.calibration.scores`.

        Args:
            windows: What was known at each origin.
            targets: (K, H) a window, all of one H, NaN where missing.

        Returns:
            (K, H, Q) a window for the trained levels, NaN where the target is missing or the
            seasonal baseline answers for the KPI.

        Raises:
            HorizonError: H is not in 1..max_horizon.
        """
        horizons = {target.shape[-1] for target in targets}
        if len(horizons) > 1:
            raise HorizonError(f"expected targets of one horizon, got {sorted(horizons)}")
        scores = [
            np.full((*target.shape, len(self.config.levels)), np.nan, dtype=np.float32)
            for target in targets
        ]
        informed = [self._informed(window) for window in windows]
        for horizon in horizons:
            self._check_horizon(horizon)
            future_patches = math.ceil(horizon / self.config.patch)
            for chunk in self._batches(windows, informed):
                series = self._series(
                    [windows[i] for i in chunk], [informed[i] for i in chunk], future_patches
                )
                coming = torch.from_numpy(np.stack([targets[i] for i in chunk]))
                found = conformity(self._network, self.config, series, coming)
                for index, score in zip(chunk, found.numpy(), strict=True):
                    scores[index] = score
        return scores

    def _check_horizon(self, horizon: int) -> None:
        if not 1 <= horizon <= self.max_horizon:
            raise HorizonError(
                f"expected a horizon of 1 to {self.max_horizon} steps, got {horizon}"
            )

    def _batches(
        self, windows: Sequence[KpiWindow], informed: Sequence[NDArray[np.bool_]]
    ) -> Iterator[list[int]]:
        """Positions of windows that share a step, a number of KPIs and a context length.

        A window of which nothing is known is in none.
        """
        groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for index, window in enumerate(windows):
            if informed[index].any():
                patches = tokens.context_patches(self.config, window.steps)
                groups[window.step_ms, len(window.kpis), patches].append(index)
        for (_, kpis, _), members in groups.items():
            size = max(1, min(MAX_BATCH_WINDOWS, MAX_BATCH_SERIES // kpis))
            for begin in range(0, len(members), size):
                yield members[begin : begin + size]

    def _predict_alike(
        self,
        windows: Sequence[KpiWindow],
        informed: Sequence[NDArray[np.bool_]],
        horizon: int,
        levels: Sequence[float],
    ) -> list[Forecast]:
        """Forecast windows of one step and number of KPIs; `informed` (K,) have enough samples."""
        future_patches = math.ceil(horizon / self.config.patch)
        series = self._series(windows, informed, future_patches)
        with torch.inference_mode():
            built = build_tokens(series, self.config, future_patches)
            scaled = self._network(built)[:, :, :horizon]  # (B, K, H, Q)
            if self._calibration is not None:
                lower, upper = limits_in_model_space(series, built.stats)
                scaled = self._calibration.apply(scaled, series.kinds, lower, upper)
            wanted = at_levels(scaled, self.config.levels, levels)  # (B, K, H, L)
            values = scaling.unscale(wanted, built.stats)
            values = within_limits(values, series.lower.double(), series.upper.double())
        return [
            self._forecast(window, informed[index], values[index].numpy(), levels)
            for index, window in enumerate(windows)
        ]

    def _informed(self, window: KpiWindow) -> NDArray[np.bool_]:
        """Which KPIs (K,) have samples enough in the context."""
        context = window.values[:, -self.config.context_steps :]
        informed: NDArray[np.bool_] = (~np.isnan(context)).sum(axis=1) >= FEWEST_SAMPLES
        return informed

    def _series(
        self,
        windows: Sequence[KpiWindow],
        informed: Sequence[NDArray[np.bool_]],
        future_patches: int,
    ) -> tokens.Series:
        """Right-aligned tensors of windows that share a step and a number of KPIs."""
        step_ms, kpis = windows[0].step_ms, len(windows[0].kpis)
        config = self.config
        kept = config.context_steps + LAG_WEEKS * WEEK_MS // step_ms
        kept = max(config.context_steps, min(kept, MAX_HISTORY_STEPS))
        steps = min(kept, max(window.steps for window in windows))
        values = np.full((len(windows), kpis, steps), np.nan, dtype=np.float32)
        for row, window in zip(values, windows, strict=True):
            recent = window.values[:, -steps:] if steps else window.values[:, :0]
            row[:, steps - recent.shape[1] :] = recent
        patch_ms = config.patch * step_ms
        patches = tokens.context_patches(config, steps)
        entries = [[self._catalogue.resolve(name) for name in w.kpis] for w in windows]
        return tokens.Series(
            values=torch.from_numpy(values),
            step_ms=step_ms,
            calendar=torch.from_numpy(
                calendar_of_windows(
                    [(window.end_ms, window.time_zone) for window in windows],
                    (-patches, future_patches),
                    patch_ms,
                    step_ms,
                )
            ),
            planned=torch.from_numpy(
                np.stack(
                    [
                        planned_inputs(
                            window.end_ms - patches * patch_ms,
                            patches + future_patches,
                            config.patch,
                            step_ms,
                            time_zone=window.time_zone,
                            country=window.country,
                            events=window.events,
                        )
                        for window in windows
                    ]
                )
            ),
            kinds=torch.tensor([[kpi.kind.number for kpi in row] for row in entries]),
            lower=torch.tensor(
                [[-math.inf if k.lower is None else k.lower for k in row] for row in entries]
            ),
            upper=torch.tensor(
                [[math.inf if k.upper is None else k.upper for k in row] for row in entries]
            ),
            present=torch.from_numpy(np.stack(informed)),
        )

    def _forecast(
        self,
        window: KpiWindow,
        informed: NDArray[np.bool_],
        values: NDArray[np.float64],
        levels: Sequence[float],
    ) -> Forecast:
        """Put values (K, H, L) and their provenance together."""
        answers = as_float32(values)
        if not informed.all():
            (baseline,) = self._baseline.predict([window], values.shape[1], levels)
            answers[~informed] = baseline.values[~informed]
        return Forecast(
            cell=window.cell,
            kpis=window.kpis,
            start_ms=window.end_ms,
            step_ms=window.step_ms,
            levels=tuple(levels),
            values=answers,
            model=self.identity,
            rung=self._rung,
            context=ContextSpan.of(window, self.config.context_steps),
        )
