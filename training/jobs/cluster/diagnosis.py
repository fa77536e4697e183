"""Why pods do not start, or failed, in words for people.

Reasons are those that the kubelet, the scheduler and the controllers write into a pod's status.
A pod that waits is not given up at once: registries and autoscalers recover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kubernetes import client

from training.jobs.cluster.events import ASKS_FOR, event_problem
from training.jobs.cluster.pods import ENDED, created, index_of, name_of, phase_of
from training.jobs.exits import exit_problem
from training.jobs.progress import last_words
from training.jobs.status import Cause, Problem
from training.torchrun import SIGNALLED

IMAGE_GRACE = timedelta(minutes=2)
"""For a registry that does not answer for a moment."""
LEAVE_GRACE = timedelta(minutes=2)
"""Beyond the time that a pod was given to end; a kubelet that lives needs seconds."""
PLACE_GRACE = timedelta(minutes=5)
"""For an autoscaler that brings a node, and for a volume that is still attached elsewhere."""

_IMAGE_REASONS = {
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
}
_HOPELESS_IMAGE_REASONS = {"InvalidImageName", "ErrImageNeverPull"}
_CONFIGURATION_REASONS = {
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
    "ContainerCannotRun",
}
_KILLED = SIGNALLED + 9


def container_of(pod: client.V1Pod, name: str) -> client.V1ContainerStatus | None:
    """What a pod says of its container of a name, None where it says nothing yet."""
    statuses = (pod.status.container_statuses if pod.status else None) or []
    return next((status for status in statuses if status.name == name), None)


def waiting_problem(
    pod: client.V1Pod,
    container: str,
    warnings: Sequence[client.CoreV1Event],
    now: datetime,
) -> Problem | None:
    """Why a pod does not start; None where nothing is known to be wrong.

    Args:
        pod: A pod that is pending.
        container: Name of its container that trains.
        warnings: What the cluster warned of the pod, the last one last.
        now: Against which graces are counted.
    """
    if phase_of(pod) != "Pending":
        return None
    age = now - created(pod)
    status = container_of(pod, container)
    waiting = status.state.waiting if status and status.state else None
    reason, said = (waiting.reason or "", waiting.message) if waiting else ("", None)
    image = status.image if status else None
    if reason in _HOPELESS_IMAGE_REASONS:
        return Problem(Cause.IMAGE_PULL, f"{image}: {said or reason}; mend --image and submit anew")
    if reason in _IMAGE_REASONS:
        return Problem(
            Cause.IMAGE_PULL,
            f"{image}: {said or reason}; is its name right, and may the cluster pull it "
            "(--image-pull-secret)?",
            lasting=age > IMAGE_GRACE,
        )
    if reason in _CONFIGURATION_REASONS:
        return Problem(
            Cause.CONFIGURATION, f"{said or reason}; are the Secrets there that --secret names?"
        )
    for condition in (pod.status.conditions if pod.status else None) or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            return Problem(
                Cause.UNSCHEDULABLE,
                f"{condition.message or condition.reason or 'the scheduler gives no reason'} "
                f"{ASKS_FOR}",
                lasting=age > PLACE_GRACE,
            )
    # A node is found by now, and what an image's registry answers was told by the status.
    found = [problem for event in warnings if (problem := event_problem(event))]
    causes = (Cause.VOLUME, Cause.NOT_STARTED)
    told = [problem for problem in found if problem.cause in causes]
    return replace(told[-1], lasting=age > PLACE_GRACE) if told else None


def leaving_problem(pod: client.V1Pod, now: datetime) -> Problem | None:
    """Why a pod that is to go does not go: its node is gone; None where that is not so.

    Args:
        pod: A pod.
        now: Against which the grace is counted.
    """
    until = pod.metadata.deletion_timestamp if pod.metadata else None
    if until is None or phase_of(pod) in ENDED or now - until < LEAVE_GRACE:
        return None
    node = (pod.spec.node_name if pod.spec else None) or "its node"
    return Problem(
        Cause.EVICTED,
        f"{_disruption(pod) or f'{name_of(pod)} is to go'}, but {node} does not say that it is "
        "gone, and until then nothing takes its place; bring the node back, or where it is surely "
        f"off: kubectl delete pod {name_of(pod)} --force",
        lasting=False,
    )


def failure_problem(pod: client.V1Pod, container: str) -> Problem | None:
    """Why a pod failed; None where it has not."""
    if pod.status is None or phase_of(pod) != "Failed":
        return None
    status, limits = container_of(pod, container), _memory_limit(pod, container)
    ended = status.state.terminated if status and status.state else None
    words = last_words((ended.message or "").splitlines()) if ended else None
    if ended is not None and ended.reason == "OOMKilled":
        return Problem(
            Cause.OUT_OF_MEMORY,
            f"it used more than its {limits or 'limit'}; give it more (--memory), or make batches "
            "smaller (--series of rancast train)",
        )
    disruption = _disruption(pod)
    if disruption is not None:
        return Problem(Cause.EVICTED, disruption)
    if pod.status.reason == "DeadlineExceeded":
        return Problem(Cause.DEADLINE, pod.status.message or "its time was over")
    if ended is None:
        return Problem(Cause.ERROR, pod.status.message or pod.status.reason or "no reason given")
    if ended.exit_code != _KILLED and ended.reason in _CONFIGURATION_REASONS:
        return Problem(Cause.CONFIGURATION, ended.message or ended.reason or "")
    return exit_problem(ended.exit_code, words)


def latest_failures(pods: Sequence[client.V1Pod], container: str) -> list[Problem]:
    """Why the newest failed pod of every node failed; what befell the newest of all comes last.

    Args:
        pods: Of one job, the oldest first.
        container: Name of the container that trains.
    """
    found: dict[str, Problem] = {}
    for pod in pods:
        if (problem := failure_problem(pod, container)) is not None:
            found.pop(index_of(pod), None)
            found[index_of(pod)] = problem
    return list(found.values())


def not_created_problem(warnings: Sequence[client.CoreV1Event]) -> Problem | None:
    """Why a controller makes no pods: a quota, a policy, an account that is missing."""
    for event in reversed(warnings):
        if event.reason == "FailedCreate":
            return Problem(Cause.NOT_CREATED, event.message or "the controller gives no reason")
    return None


def worst(problems: Sequence[Problem]) -> Problem | None:
    """The problem that tells most of a job with several pods; None where there is none.

    Peers of a process that failed fail too, by the connection that it took along. So bad data, and
    memory, tell more than an error, and of equals the last.
    """
    order = (Cause.BAD_DATA, Cause.OUT_OF_MEMORY, Cause.CONFIGURATION, Cause.KILLED, Cause.EVICTED)
    ranks = {cause: len(order) - place for place, cause in enumerate(order)}
    found: Problem | None = None
    for problem in problems:
        if found is None or ranks.get(problem.cause, 0) >= ranks.get(found.cause, 0):
            found = problem
    return found


def _disruption(pod: client.V1Pod) -> str | None:
    """Why the cluster took a pod away; None where it did not."""
    if pod.status is None:
        return None
    for condition in pod.status.conditions or []:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            said = condition.message or condition.reason
            return f"the cluster took {name_of(pod)} away: {pod.status.message or said}"
    if pod.status.reason in ("Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated"):
        return f"the cluster took {name_of(pod)} away: {pod.status.message or pod.status.reason}"
    return None


def _memory_limit(pod: client.V1Pod, container: str) -> str | None:
    for each in pod.spec.containers if pod.spec else []:
        if each.name == container and each.resources and each.resources.limits:
            return each.resources.limits.get("memory")
    return None
