"""What the conditions of a Job, or a TrainJob, say: the only truth of whether it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from training.jobs.status import Cause, Phase, Problem

COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
DEADLINE_EXCEEDED = "DeadlineExceeded"


@dataclass(frozen=True)
class Condition:
    """A condition that holds."""

    kind: str
    reason: str
    message: str
    since: datetime | None


@dataclass(frozen=True)
class Snapshot:
    """An object that stands for a run, as the server has it.

    Attributes:
        run_id: Of the run.
        digest: Of the spec that it was made of, None where it does not say.
        uid: Of the object.
        created_at: When it was made.
        deleting: Whether it is being removed.
        conditions: Those that hold.
        started_at: When its controller took it up.
        finished_at: When it ended.
        failed_pods: Pods that failed.
        active_pods: Pods that have not ended.
        pod_names: Regular expression of what its pods are called, also of those that are gone.
    """

    run_id: str
    digest: str | None
    uid: str
    created_at: datetime
    deleting: bool
    conditions: tuple[Condition, ...]
    started_at: datetime | None
    finished_at: datetime | None
    failed_pods: int
    active_pods: int
    pod_names: str

    def condition(self, kind: str) -> Condition | None:
        """The condition of a kind, None where it does not hold."""
        return next((each for each in self.conditions if each.kind == kind), None)


def phase_of(snapshot: Snapshot, phases: Sequence[str]) -> Phase:
    """How far a run is.

    Args:
        snapshot: Of its object; once that says that it has ended, nothing else counts.
        phases: Of its pods.
    """
    if snapshot.deleting:
        return Phase.STOPPING
    if snapshot.condition(COMPLETE):
        return Phase.SUCCEEDED
    if snapshot.condition(FAILED):
        return Phase.FAILED
    if snapshot.condition(SUSPENDED):
        return Phase.PENDING
    # Between two attempts there is a pod that has failed and none that runs.
    begun = any(phase != "Pending" for phase in phases)
    return Phase.RUNNING if begun else Phase.PENDING


def ending_problem(
    failed: Condition, attempts: int, pod: Problem | None, waited: Problem | None = None
) -> Problem:
    """Why a run failed: what its controller says, and what its last pod says of it.

    Args:
        failed: The condition.
        attempts: Pods that failed.
        pod: What was wrong with its pods, None where none is left to tell.
        waited: What its pods waited for at the end; None where they ran, or nobody knows.
    """
    if failed.reason == DEADLINE_EXCEEDED:
        before = f"; before that, {pod}" if pod else ""
        if waited is not None:
            # More time would be spent waiting, too.
            return Problem(
                Cause.DEADLINE, f"its time was over while it waited: {waited}; mend that{before}"
            )
        return Problem(
            Cause.DEADLINE,
            "its time was over before it was done; give it more (--deadline), training goes on "
            f"from its saved state{before}",
        )
    pod = pod or waited
    said = ": ".join(part for part in (failed.reason, failed.message) if part)
    if pod is None:
        cause = Cause.BAD_DATA if failed.reason == "PodFailurePolicy" else Cause.ERROR
        return Problem(cause, f"{said}; no pod is left to tell more")
    if failed.reason == "BackoffLimitExceeded" and attempts > 1:
        return Problem(pod.cause, f"{pod.message} (the last of {attempts} attempts)")
    return pod


def suspended_problem(snapshot: Snapshot) -> Problem | None:
    """Says of a run that is held back who may be holding it; None where it is not."""
    held = snapshot.condition(SUSPENDED)
    if held is None or snapshot.condition(COMPLETE) or snapshot.condition(FAILED):
        return None
    said = held.message or held.reason
    return Problem(
        Cause.UNSCHEDULABLE, f"it is suspended, as a queue (Kueue) does: {said}", lasting=False
    )
