"""Timing a model, turn by turn in one run: all sizes of its rungs, shorter contexts, codecs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.predictor import Rung
from service.answers import forecast_answer
from service.codecs.json_requests import decode_histories
from service.engine import BATCH_LIMIT, Step
from service.engine.cost import CostModel, Measured
from service.engine.ladder import extents_of
from service.plan.curves import Curve, Point
from service.plan.measurements import ContextCurve, RungCost, RungCurve
from service.plan.trials import time_in_turns
from service.plan.workload import Workload
from service.schemas import ForecastRequest
from service.series import SeriesLimits, to_windows

CALL_CELLS = (1, 2, 4, 8, 16, BATCH_LIMIT)
REQUEST_CELLS = (1, BATCH_LIMIT, 8 * BATCH_LIMIT)
_MS_PER_S = 1_000
_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations of all calls.

    Attributes:
        seconds: Time that they took in all.
        cpu_ratio: CPU time by that time.
        rungs: The best first.
        around: What is done around the model for a request.
        contexts: In ascending order, the last one that of the best rung.
    """

    seconds: float
    cpu_ratio: float
    rungs: tuple[RungCurve, ...]
    around: Curve
    contexts: tuple[ContextCurve, ...]


@dataclass(frozen=True, slots=True)
class _Key:
    """Which trial it is.

    Attributes:
        what: A rung, the context of another bound, or None for what is around the model.
        cells: Cells in the call.
    """

    what: Rung | int | None
    cells: int


def time_calls(
    steps: Sequence[Step],
    shorter: Mapping[int, Step],
    context_steps: int,
    workload: Workload,
    catalogue: Catalogue,
    *,
    cells: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    cpu_clock: Callable[[], float] = time.process_time,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Timings:
    """Time the rungs of a model, and what is around it.

    Args:
        steps: The rungs, the best first.
        shorter: The best rung with shorter contexts, by their samples.
        context_steps: Samples of context of the best rung.
        workload: What is forecast.
        catalogue: KPI catalogue.
        cells: Cells of a request that is looked at for each context.
        seconds: For all calls together; see `time_in_turns`.
        clock: Monotonic seconds.
        cpu_clock: Seconds for which this process had a processor.
        on_progress: Told what share of the time is spent.
    """
    windows = workload.windows(max(REQUEST_CELLS), catalogue)
    context_cells = sorted({1, min(cells, BATCH_LIMIT), BATCH_LIMIT})
    begun_s, cpu_begun_s = clock(), cpu_clock()
    durations = time_in_turns(
        {
            **_rung_trials(steps, windows, workload),
            **_context_trials(shorter, context_cells, windows, workload),
            **_around_trials(steps[-1], windows, workload, catalogue),
        },
        seconds,
        clock=clock,
        on_progress=on_progress,
    )
    spent_s, cpu_s = clock() - begun_s, cpu_clock() - cpu_begun_s
    rungs = tuple(_rung_curve(step, windows, workload, durations) for step in steps)
    contexts = [
        ContextCurve(samples, _curve(samples, context_cells, durations))
        for samples in sorted(shorter)
    ]
    return Timings(
        seconds=spent_s,
        cpu_ratio=cpu_s / spent_s if spent_s > 0 else 0.0,
        rungs=rungs,
        around=_curve(None, REQUEST_CELLS, durations),
        contexts=(*contexts, ContextCurve(context_steps, rungs[0].curve)),
    )


_Trials = dict[_Key, Callable[[], object]]


def _rung_trials(
    steps: Iterable[Step], windows: Sequence[KpiWindow], workload: Workload
) -> _Trials:
    return {
        _Key(step.rung, cells): _call(step, windows[:cells], workload)
        for step in steps
        for cells in CALL_CELLS
    }


def _context_trials(
    steps: Mapping[int, Step],
    sizes: Iterable[int],
    windows: Sequence[KpiWindow],
    workload: Workload,
) -> _Trials:
    return {
        _Key(context, cells): _call(step, windows[:cells], workload)
        for context, step in steps.items()
        for cells in sizes
    }


def _call(step: Step, windows: Sequence[KpiWindow], workload: Workload) -> Callable[[], object]:
    return partial(step.predictor.predict, windows, workload.horizon, workload.levels)


def _around_trials(
    step: Step,
    windows: Sequence[KpiWindow],
    workload: Workload,
    catalogue: Catalogue,
) -> _Trials:
    """From bytes to windows and from forecasts to bytes, by the service's own codecs."""
    limits = SeriesLimits(len(windows), workload.kpis)
    forecasts = step.predictor.predict(windows, workload.horizon, workload.levels)

    def serve(body: bytes, cells: int) -> bytes:
        request = decode_histories(body, ForecastRequest)
        named = to_windows(request.series, limits, catalogue, _ZONE)
        return forecast_answer(
            forecasts[0].model,
            forecasts[:cells],
            [one.spell(one.window.kpis) for one in named],
            now_ms=windows[0].end_ms,
        )

    return {
        _Key(None, cells): partial(serve, workload.body(windows[:cells]), cells)
        for cells in REQUEST_CELLS
    }


def _curve(
    what: Rung | int | None,
    sizes: Iterable[int],
    durations: Mapping[_Key, Sequence[float]],
) -> Curve:
    return Curve(tuple(Point.of(cells, durations[_Key(what, cells)]) for cells in sizes))


def _rung_curve(
    step: Step,
    windows: Sequence[KpiWindow],
    workload: Workload,
    durations: Mapping[_Key, Sequence[float]],
) -> RungCurve:
    cost = CostModel(
        [
            Measured(step.effort(extents_of(windows[:cells]), workload.horizon), duration_s)
            for cells in CALL_CELLS
            for duration_s in durations[_Key(step.rung, cells)]
        ]
    )
    one_s = cost.estimate_s(step.effort(extents_of(windows[:1]), workload.horizon))
    return RungCurve(
        step.rung,
        step.most_steps,
        _curve(step.rung, CALL_CELLS, durations),
        RungCost(
            _MS_PER_S * cost.call_s, _MS_PER_S * cost.work_s, _MS_PER_S * cost.reserve_s(one_s)
        ),
    )
