"""What calls take is found again in the curves, whatever rung, context or size they are of."""

from __future__ import annotations

import numpy as np
import pytest

from kpi.catalogue import load_catalogue
from model.predictor import ContextSpan, Forecast, ModelIdentity, Rung
from service.engine import Step
from service.plan.curves import Statistic
from service.plan.measuring import CALL_CELLS, REQUEST_CELLS, time_calls
from service.plan.workload import Workload

WORKLOAD = Workload(kpis=2, history_steps=96, step_ms=900_000, horizon=4, levels=(0.1, 0.9))


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Metered:
    """A predictor that takes so long a call and so much longer a cell, by a made-up clock."""

    identity = ModelIdentity("metered", "1", "sha256:1")
    max_horizon = 8
    level_range = (0.1, 0.9)

    def __init__(self, clock: Clock, call_s: float, cell_s: float, rung: Rung) -> None:
        self.clock, self.call_s, self.cell_s, self.rung = clock, call_s, cell_s, rung

    def predict(self, windows, horizon, levels):
        self.clock.now_s += self.call_s + self.cell_s * len(windows)
        return [
            Forecast(
                cell=window.cell,
                kpis=window.kpis,
                start_ms=window.end_ms,
                step_ms=window.step_ms,
                levels=tuple(levels),
                values=np.zeros((len(window.kpis), horizon, len(levels)), np.float32),
                model=self.identity,
                rung=self.rung,
                context=ContextSpan.of(window, 96),
            )
            for window in windows
        ]


@pytest.fixture(scope="module")
def timings():
    clock = Clock()
    steps = [
        Step(Rung.FULL, Metered(clock, 0.002, 0.004, Rung.FULL), most_steps=64, pass_steps=8),
        Step(Rung.BASELINE, Metered(clock, 0.001, 0.0005, Rung.BASELINE)),
    ]
    shorter = {
        32: Step(Rung.FULL, Metered(clock, 0.002, 0.002, Rung.FULL)),
        16: Step(Rung.FULL, Metered(clock, 0.002, 0.001, Rung.FULL)),
    }
    return time_calls(
        steps,
        shorter,
        64,
        WORKLOAD,
        load_catalogue(),
        cells=5,
        seconds=0.0,
        clock=clock,
        cpu_clock=lambda: clock.now_s / 4,
    )


def test_each_rung_has_its_own_durations_by_size(timings):
    full, baseline = timings.rungs
    assert [point.cells for point in full.curve.points] == list(CALL_CELLS)
    for cells in CALL_CELLS:
        for statistic in Statistic:
            assert full.curve.duration_ms(cells, statistic) == pytest.approx(2 + 4 * cells)
            assert baseline.curve.duration_ms(cells, statistic) == pytest.approx(1 + cells / 2)
    assert all(point.calls >= 5 for point in full.curve.points)


def test_the_fitted_costs_are_those_of_the_calls(timings):
    full, baseline = timings.rungs
    assert full.cost.call_ms == pytest.approx(2.0)
    # Two KPIs of 64 samples and 4 steps: 0.136 thousand samples a cell
    assert full.cost.thousand_ms == pytest.approx(4.0 / 0.136)
    # The baseline takes all 96 samples.
    assert baseline.cost.thousand_ms == pytest.approx(0.5 / 0.2)
    assert (full.context_steps, baseline.context_steps) == (64, None)


def test_contexts_ascend_to_that_of_the_best_rung(timings):
    assert [each.context_steps for each in timings.contexts] == [16, 32, 64]
    for each, cell_ms in zip(timings.contexts, (1, 2, 4), strict=True):
        assert each.curve.duration_ms(5, Statistic.P99) == pytest.approx(2 + 5 * cell_ms)
    assert timings.contexts[-1].curve == timings.rungs[0].curve


def test_codecs_run_on_requests_of_several_sizes(timings):
    # They make no call of the model, so the made-up clock stands still.
    assert [point.cells for point in timings.around.points] == list(REQUEST_CELLS)
    assert timings.around.duration_ms(256, Statistic.P99) == 0


def test_the_time_of_all_calls_is_told(timings):
    every_size = sum(2 + 4 * cells + 1 + cells / 2 for cells in CALL_CELLS)
    assert timings.seconds > 5 * every_size / 1_000
    assert timings.cpu_ratio == pytest.approx(0.25)
