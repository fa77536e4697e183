"""From measured curves to what fits: pure arithmetic, the same answer for the same measurements.

Promises are made with the 99th percentile, rates with the mean. Two ways to use a node are told
apart. A request that finds it idle takes what is around the model and its own calls. Under full
load a request may arrive when a call has just begun: it waits for that one before its own, so the
calls have to be smaller for the same budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model.predictor import Rung
from service.budget import Profile
from service.plan.curves import Curve, Statistic
from service.plan.measurements import ContextCurve, Measurements

_MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """What a plan is to answer.

    Attributes:
        budgets_ms: Latency budgets of interest.
        periods_s: How often each cell is forecast: once in so many seconds.
        cells: Cells of one request that has to be in time.
        most_cells: Cells that one request may hold.
        load_ratio: How busy the node may be on average, 0 to 1: what arrives by chance finds a node
            that is always busy late.
        loop_ms: Budget of each profile.
    """

    budgets_ms: tuple[float, ...]
    periods_s: tuple[float, ...]
    cells: int
    most_cells: int
    load_ratio: float
    loop_ms: dict[Profile, float]


@dataclass(frozen=True, slots=True)
class PeriodCells:
    """How many cells can be forecast once in a period.

    Attributes:
        period_s: Its length.
        cells: At the load that was asked for.
    """

    period_s: float
    cells: int


@dataclass(frozen=True, slots=True)
class Fit:
    """What a rung can do within a budget.

    Attributes:
        budget_ms: From arrival to answer.
        rung: Its name.
        request_cells: Cells in the largest request that is in time on an idle node.
        call_cells: Cells in a call at which most are served, of those that are in time under full
            load; 0 where even one cell that has to wait for another is late.
        cells_per_s: Cells a second in such calls, one after the other.
        periods: How many cells that serves.
    """

    budget_ms: float
    rung: Rung
    request_cells: int
    call_cells: int
    cells_per_s: float
    periods: tuple[PeriodCells, ...]


@dataclass(frozen=True, slots=True)
class ContextFit:
    """What one bound of the context costs.

    Attributes:
        context_steps: Samples of each KPI that enter the model at most.
        one_cell_ms: From arrival to answer of one cell, at the 99th percentile.
        cells_ms: The same of as many cells as were asked for.
        request_cells: Cells in the largest request within the near-RT budget.
    """

    context_steps: int
    one_cell_ms: float
    cells_ms: float
    request_cells: int


@dataclass(frozen=True, slots=True)
class RungTime:
    """From arrival to answer at one rung, at the 99th percentile, and what is left of a budget.

    Attributes:
        rung: Its name.
        answer_ms: Time that it takes.
        spare_ms: Budget less that; below 0 it is late by so much.
    """

    rung: Rung
    answer_ms: float
    spare_ms: float


@dataclass(frozen=True, slots=True)
class ProfileFit:
    """Whether a node can stand in a control loop.

    Attributes:
        profile: Which loop.
        budget_ms: Its budget.
        one_cell: Each rung with a request of one cell.
        cells: Each rung with a request of as many cells as were asked for.
        longest_context_one: Samples of context at which one cell is in time; None for none.
        longest_context_cells: The same for as many cells as were asked for.
    """

    profile: Profile
    budget_ms: float
    one_cell: tuple[RungTime, ...]
    cells: tuple[RungTime, ...]
    longest_context_one: int | None
    longest_context_cells: int | None


@dataclass(frozen=True, slots=True)
class Placement:
    """What fits where.

    Attributes:
        fits: By budget, and in it by rung.
        contexts: In ascending order.
        profiles: By control loop, the tightest first.
    """

    fits: tuple[Fit, ...]
    contexts: tuple[ContextFit, ...]
    profiles: tuple[ProfileFit, ...]


def place(measured: Measurements, question: Question) -> Placement:
    """Work out what fits."""
    near_ms = question.loop_ms[Profile.NEAR_RT]
    return Placement(
        fits=tuple(
            fit(each.rung, each.curve, measured.around, budget_ms, question)
            for budget_ms in question.budgets_ms
            for each in measured.rungs
        ),
        contexts=tuple(
            ContextFit(
                each.context_steps,
                answer_ms(each.curve, measured.around, 1),
                answer_ms(each.curve, measured.around, question.cells),
                largest_request(each.curve, measured.around, near_ms, question.most_cells),
            )
            for each in measured.contexts
        ),
        profiles=tuple(
            _profile(measured, question, profile, budget_ms)
            for profile, budget_ms in question.loop_ms.items()
        ),
    )


def answer_ms(curve: Curve, around: Curve, cells: int) -> float:
    """From arrival to answer on an idle node, at the 99th percentile."""
    return curve.duration_ms(cells, Statistic.P99) + around.duration_ms(cells, Statistic.P99)


def largest_request(curve: Curve, around: Curve, budget_ms: float, most_cells: int) -> int:
    """Cells in the largest request that is in time on an idle node; 0 where none is."""
    low, high = 0, most_cells  # in time, and perhaps not
    while low < high:
        middle = (low + high + 1) // 2
        if answer_ms(curve, around, middle) <= budget_ms:
            low = middle
        else:
            high = middle - 1
    return low


def busiest_call(curve: Curve, around: Curve, budget_ms: float) -> tuple[int, float]:
    """Cells in the call at which most are served in time under full load, and how many a second.

    A request waits for the call that has just begun, and then shares its own.
    """
    best = (0, 0.0)
    for cells in range(1, curve.largest_call + 1):
        wait_ms = curve.duration_ms(cells, Statistic.P99)
        if wait_ms + answer_ms(curve, around, cells) > budget_ms:
            break
        per_s = cells_per_s(curve, around, cells)
        if per_s > best[1]:
            best = cells, per_s
    return best


def cells_per_s(curve: Curve, around: Curve, cells: int) -> float:
    """Cells a second in calls of so many, with all that is around them done on the same core."""
    mean = Statistic.MEAN
    return _MS_PER_S * cells / (curve.duration_ms(cells, mean) + around.duration_ms(cells, mean))


def fit(rung: Rung, curve: Curve, around: Curve, budget_ms: float, question: Question) -> Fit:
    """What a rung can do within a budget."""
    call_cells, per_s = busiest_call(curve, around, budget_ms)
    return Fit(
        budget_ms=budget_ms,
        rung=rung,
        request_cells=largest_request(curve, around, budget_ms, question.most_cells),
        call_cells=call_cells,
        cells_per_s=per_s,
        periods=tuple(
            PeriodCells(period_s, int(per_s * period_s * question.load_ratio))
            for period_s in question.periods_s
        ),
    )


def longest_context(
    contexts: Sequence[ContextCurve], around: Curve, budget_ms: float, cells: int
) -> int | None:
    """The longest context with which so many cells are in time, None where there is none."""
    fitting = [
        each.context_steps for each in contexts if answer_ms(each.curve, around, cells) <= budget_ms
    ]
    return max(fitting, default=None)


def _profile(
    measured: Measurements, question: Question, profile: Profile, budget_ms: float
) -> ProfileFit:
    def times(cells: int) -> tuple[RungTime, ...]:
        taken = [(r.rung, answer_ms(r.curve, measured.around, cells)) for r in measured.rungs]
        return tuple(RungTime(rung, each_ms, budget_ms - each_ms) for rung, each_ms in taken)

    def context(cells: int) -> int | None:
        return longest_context(measured.contexts, measured.around, budget_ms, cells)

    return ProfileFit(
        profile=profile,
        budget_ms=budget_ms,
        one_cell=times(1),
        cells=times(question.cells),
        longest_context_one=context(1),
        longest_context_cells=context(question.cells),
    )
