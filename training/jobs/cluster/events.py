"""What the cluster's events say of a job's pods, also of those that are gone.

At the deadline the controller deletes the pods that still wait, and only events tell then what for.
They stay an hour by default, counted from the last time that the same was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubernetes import client

from training.jobs.cluster.pods import seen
from training.jobs.status import Cause, Problem

ASKS_FOR = "(asks for: --cpu, --memory, --gpus, --node-selector, --toleration, --mount)"
"""What keeps a pod from a node, in options of ours."""

LATEST = timedelta(minutes=15)
"""Before the end: what keeps a pod waiting is said again every few minutes."""

_VOLUMES = {"FailedMount", "FailedAttachVolume", "FailedMapVolume"}
_SANDBOXES = {"FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady"}
"""Of warnings that are not looked at one by one those that a pod that runs never gets."""
_CONTAINERS = {"Failed", "BackOff", "InspectFailed", "ErrImageNeverPull"}
_STARTED, _SCHEDULED, _UNSCHEDULABLE = "Started", "Scheduled", "FailedScheduling"


def event_problem(event: client.CoreV1Event) -> Problem | None:
    """What an event says to be wrong with an object that does not start; None where nothing is."""
    said = event.message or event.reason or ""
    match event.reason:
        case "FailedCreate":
            return Problem(Cause.NOT_CREATED, said)
        case "FailedScheduling":
            return Problem(Cause.UNSCHEDULABLE, f"{said} {ASKS_FOR}")
        case reason if reason in _VOLUMES:
            return Problem(Cause.VOLUME, said)
        # Some of these are not even warnings, such as the one that pulls are tried less often.
        case reason if reason in _CONTAINERS:
            of_image = "image" in said.lower()
            return Problem(Cause.IMAGE_PULL if of_image else Cause.CONFIGURATION, said)
    if event.type != "Warning":
        return None
    # Sandboxes, networks, and whatever else newer clusters warn of.
    return Problem(Cause.NOT_STARTED, f"{event.reason}: {said}")


def unstarted_problem(
    events: Sequence[client.CoreV1Event], ended_at: datetime | None
) -> Problem | None:
    """What the last of a job's pods waited for in vain; None where it began, or nothing is known.

    Args:
        events: About the job and its pods.
        ended_at: When the job ended, None where nobody knows.
    """
    by_object: dict[str, list[client.CoreV1Event]] = {}
    for event in sorted(events, key=seen):
        by_object.setdefault(event.involved_object.name or "", []).append(event)
    newest: tuple[datetime, Problem] | None = None
    for about in by_object.values():
        found = _in_vain(about)
        if found is not None and (newest is None or found[0] >= newest[0]):
            newest = found
    begun = max((seen(event) for event in events if event.reason == _STARTED), default=None)
    # What one pod waited for does not matter any more once another began in its place.
    if newest is None or (begun is not None and begun > newest[0]):
        return None
    # That a pod began may be forgotten by now, and what it once waited for be the last that is not.
    if ended_at is not None and newest[0] < ended_at - LATEST:
        return None
    return newest[1]


def _in_vain(events: Sequence[client.CoreV1Event]) -> tuple[datetime, Problem] | None:
    """What one object waited for in vain, and when that was last said; its events by their time."""
    reasons = {event.reason for event in events}
    if _STARTED in reasons:
        return None
    problems = [
        (event, problem)
        for event in events
        if (problem := event_problem(event)) is not None
        and (problem.cause is not Cause.NOT_STARTED or event.reason in _SANDBOXES)
        # Most pods wait for a moment, until their claims are bound.
        and not (event.reason == _UNSCHEDULABLE and _SCHEDULED in reasons)
    ]
    if not problems:
        return None
    last, cause = problems[-1][0], problems[-1][1].cause
    alike = [(event, problem) for event, problem in problems if problem.cause is cause]
    return seen(last), max(alike, key=lambda each: (not _is_brief(each[0]), seen(each[0])))[1]


def _is_brief(event: client.CoreV1Event) -> bool:
    """Whether it only repeats the reason of another, as `Error: ImagePullBackOff` does."""
    return (event.message or "").startswith(("Error: ", "Back-off"))
