"""The terminal side of `rancast plan`: what is asked, progress, tables and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from service.budget import PROFILE_BOUNDS, Profile
from service.plan.document import write_document
from service.plan.drawing import check_picture, draw
from service.plan.placement import Question
from service.plan.planning import Plan, measure, plan_of
from service.plan.report import report
from service.plan.workload import Workload, WorkloadError
from service.schemas import DEFAULT_LEVELS
from service.settings import Settings

BUDGETS_MS = (10.0, 20.0, 50.0, 100.0, 500.0, 1_000.0, 5_000.0)
PERIODS_S = (60.0, 900.0)
LOAD_RATIO = 0.7
_MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for; None or nothing stands for a default.

    Attributes:
        horizon: Steps to forecast.
        kpis: KPIs of a cell.
        step_seconds: Length of a sample.
        cells: Cells of a request that has to be in time.
        seconds: Time for all calls together.
        history_steps: Samples of each KPI; as many as the store keeps by default.
        context_steps: Bound of the context; the checkpoint's by default.
        near_rt_ms: Budget of the near-RT loop; that of the settings by default.
        budgets_ms: Budgets of interest.
        periods_s: Periods of interest.
        load_ratio: How busy the node may be.
    """

    horizon: int
    kpis: int
    step_seconds: float
    cells: int
    seconds: float
    history_steps: int | None = None
    context_steps: int | None = None
    near_rt_ms: float | None = None
    budgets_ms: Sequence[float] = ()
    periods_s: Sequence[float] = ()
    load_ratio: float = LOAD_RATIO


def question_of(options: Options, settings: Settings) -> Question:
    """What the options ask of a plan.

    Raises:
        WorkloadError: A number is out of its range.
    """
    loop_ms = {profile: PROFILE_BOUNDS[profile].default_ms for profile in Profile}
    loop_ms[settings.profile] = settings.budget_bounds().default_ms
    if options.near_rt_ms is not None:
        loop_ms[Profile.NEAR_RT] = options.near_rt_ms
    budgets_ms, periods_s = options.budgets_ms or BUDGETS_MS, options.periods_s or PERIODS_S
    if not all(value > 0 for value in (*loop_ms.values(), *budgets_ms, *periods_s)):
        raise WorkloadError("expected budgets and periods above 0")
    if not 0 < options.load_ratio <= 1:
        raise WorkloadError(f"expected a load above 0, to 1, got {options.load_ratio:g}")
    if not 1 <= options.cells <= settings.max_series_per_request:
        raise WorkloadError(
            f"expected 1 to {settings.max_series_per_request} cells, as many as a request may "
            f"hold, got {options.cells}"
        )
    return Question(
        budgets_ms=tuple(sorted(set(budgets_ms))),
        periods_s=tuple(sorted(set(periods_s))),
        cells=options.cells,
        most_cells=settings.max_series_per_request,
        load_ratio=options.load_ratio,
        loop_ms=loop_ms,
    )


def workload_of(options: Options, settings: Settings) -> Workload:
    """What each cell looks like.

    Raises:
        WorkloadError: A number is not above 0.
    """
    history = options.history_steps
    return Workload(
        kpis=options.kpis,
        history_steps=settings.history_steps if history is None else history,
        step_ms=round(_MS_PER_S * options.step_seconds),
        horizon=options.horizon,
        levels=DEFAULT_LEVELS,
    )


def plan_with_progress(
    options: Options, settings: Settings, json_file: Path | None, picture: Path | None
) -> Plan:
    """Measure, print, and write what is wanted.

    Raises:
        ServiceError: Something cannot be done as it was asked; the message says what.
        ModelError: The model cannot forecast so many steps.
    """
    question, workload = question_of(options, settings), workload_of(options, settings)
    if picture is not None:
        check_picture(picture)
    told = Console(stderr=True)
    with Progress(console=told, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        measured = measure(
            settings,
            workload,
            cells=options.cells,
            seconds=options.seconds,
            context_steps=options.context_steps,
            on_progress=lambda words, share: bar.update(task, description=words, completed=share),
        )
    plan = plan_of(measured, question)
    Console(highlight=False).print(report(plan))
    if json_file is not None:
        write_document(plan, json_file)
    if picture is not None:
        draw(plan, picture)
    for path in (json_file, picture):
        if path is not None:
            told.print(f"written to {path}", markup=False, highlight=False, soft_wrap=True)
    return plan
