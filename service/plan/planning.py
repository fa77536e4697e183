"""A plan: what was measured here, what was asked, what fits, and the verdict in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import torch

from kpi.limits import StoreLimits
from service.engine import BATCH_LIMIT
from service.plan.measurements import Measurements
from service.plan.measuring import time_calls
from service.plan.memory import count_memory
from service.plan.node import describe_node
from service.plan.placement import Placement, Question, place
from service.plan.subject import context_grid, load_subject
from service.plan.verdict import verdicts
from service.plan.workload import Workload
from service.settings import Settings

SCHEMA = "rancast-plan/1"

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that `rancast plan` says; its JSON has these names.

    Attributes:
        schema: Which version of these names it is.
        verdicts: In words, a sentence or two for each control loop.
        placement: What fits.
        question: What was asked.
        measurements: What it was worked out from.
    """

    schema: str
    verdicts: tuple[str, ...]
    placement: Placement
    question: Question
    measurements: Measurements


def plan_of(measured: Measurements, question: Question) -> Plan:
    """The plan that follows from measurements."""
    placement = place(measured, question)
    return Plan(SCHEMA, verdicts(placement, question), placement, question, measured)


def measure(
    settings: Settings,
    workload: Workload,
    *,
    cells: int,
    seconds: float,
    context_steps: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
    on_progress: Progress = lambda *_: None,
) -> Measurements:
    """Load the model as a service would and measure it; memory comes first, in its own process.

    Args:
        settings: As a service would have them; code is taken from the cache and never compiled.
        workload: What its cells look like.
        cells: Cells of a request that is looked at for each context.
        seconds: For all calls together; loading and memory come on top.
        context_steps: Bound of the context of the best rung, None for the checkpoint's own.
        clock: Monotonic seconds.
        on_progress: Told what is done, and which share of it.

    Raises:
        ServiceError: The model cannot be loaded, or the workload does not fit it.
        ModelError: The model cannot forecast so many steps.
    """
    on_progress("loading the model", 0.0)
    node, threads = describe_node(settings.threads), torch.get_num_threads()
    try:
        subject = load_subject(settings, context_steps)
        ladder, path = subject.rungs()
        # What is impossible is refused before minutes of measuring.
        ladder.predictor.predict([], workload.horizon, workload.levels)
        *shorter, longest = context_grid(subject)
        steps = {samples: subject.rungs(samples)[0].steps[0] for samples in shorter}
        on_progress("counting memory", 0.0)
        memory = count_memory(settings, workload, BATCH_LIMIT, context_steps)
        timings = time_calls(
            ladder.steps,
            steps,
            longest,
            workload,
            subject.catalogue,
            cells=cells,
            seconds=seconds,
            clock=clock,
            on_progress=partial(on_progress, "timing calls"),
        )
    finally:
        torch.set_num_threads(threads)
    return Measurements(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=timings.seconds,
        cpu_ratio=timings.cpu_ratio,
        node=node,
        model=ladder.identity,
        path=path,
        workload=workload,
        rungs=timings.rungs,
        around=timings.around,
        contexts=timings.contexts,
        stored_cell_bytes=_stored_bytes(settings, workload),
        memory=memory,
    )


def _stored_bytes(settings: Settings, workload: Workload) -> int:
    """What a store with these settings states of a cell with the workload's history and KPIs."""
    limits = StoreLimits(
        history_steps=workload.history_steps,
        max_kpis_per_cell=max(settings.max_kpis, workload.kpis),
    )
    return limits.stated_bytes_per_cell(workload.kpis)
