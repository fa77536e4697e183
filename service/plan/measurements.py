"""What was measured of a node and a model: all that a placement is worked out from."""

from __future__ import annotations

from dataclasses import dataclass

from model.inference_path import InferencePath
from model.predictor import ModelIdentity, Rung
from service.plan.curves import Curve
from service.plan.memory import MemoryUse
from service.plan.node import Node
from service.plan.workload import Workload


@dataclass(frozen=True, slots=True)
class RungCost:
    """What the service's own cost model learnt from the calls (`service.engine.cost`).

    Attributes:
        call_ms: A call, whatever its size.
        thousand_ms: A thousand samples that enter or leave the model.
        reserve_ms: By how much calls of one cell exceed their estimate at most, in 99 of 100.
    """

    call_ms: float
    thousand_ms: float
    reserve_ms: float


@dataclass(frozen=True, slots=True)
class RungCurve:
    """Calls of one rung.

    Attributes:
        rung: Its name.
        context_steps: Samples of each KPI that enter it at most; None for all.
        curve: Durations by the number of cells in a call.
        cost: The line fitted to them.
    """

    rung: Rung
    context_steps: int | None
    curve: Curve
    cost: RungCost


@dataclass(frozen=True, slots=True)
class ContextCurve:
    """Calls of the best rung with one bound of its context.

    Attributes:
        context_steps: Samples of each KPI that enter it at most.
        curve: Durations by the number of cells in a call.
    """

    context_steps: int
    curve: Curve


@dataclass(frozen=True, slots=True)
class Measurements:
    """Everything that was measured in one run.

    Attributes:
        measured_at: When, in UTC, as RFC 3339.
        seconds: Time that the calls took in all.
        cpu_ratio: CPU time by that time: clearly below 1, others had the processor meanwhile, and
            the figures are too high.
        node: The machine.
        model: Whose rungs they are.
        path: How the forward pass is run.
        workload: What the cells look like.
        rungs: The best first.
        around: What is done around the model for a request of so many cells: reading its JSON,
            making windows, writing the answer's JSON.
        contexts: In ascending order, the last one that of the best rung.
        stored_cell_bytes: What the store keeps of a cell with the workload's KPIs.
        memory: Of the process, None where the system does not say.
    """

    measured_at: str
    seconds: float
    cpu_ratio: float
    node: Node
    model: ModelIdentity
    path: InferencePath
    workload: Workload
    rungs: tuple[RungCurve, ...]
    around: Curve
    contexts: tuple[ContextCurve, ...]
    stored_cell_bytes: int
    memory: MemoryUse | None
