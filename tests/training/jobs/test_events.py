"""Events tell what pods waited for that are gone, and which of their words say most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes import client

from training.jobs.cluster.events import event_problem, unstarted_problem
from training.jobs.cluster.pods import seen
from training.jobs.status import Cause, Problem

BEGUN = datetime(2026, 11, 30, 12, tzinfo=UTC)


def event(
    reason: str, message: str = "", second: int = 0, of: str = "one-abcde", **more: Any
) -> client.CoreV1Event:
    found = client.CoreV1Event.from_dict(
        {
            "metadata": {"name": "an-event"},
            "involvedObject": {"kind": "Pod", "name": of},
            "reason": reason,
            "message": message,
            "type": "Warning" if reason.startswith("Failed") else "Normal",
            "lastTimestamp": (BEGUN + timedelta(seconds=second)).isoformat(),
            **more,
        }
    )
    assert found is not None
    return found


def waited_for(events: list[client.CoreV1Event], after_minutes: float = 1) -> Problem | None:
    return unstarted_problem(events, BEGUN + timedelta(minutes=after_minutes))


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("FailedScheduling", "3 Insufficient memory", Cause.UNSCHEDULABLE),
        ("FailedAttachVolume", "Multi-Attach error", Cause.VOLUME),
        ("FailedCreate", "exceeded quota", Cause.NOT_CREATED),
        ("Failed", 'Failed to pull image "a:1"', Cause.IMAGE_PULL),
        ("BackOff", 'Back-off pulling image "a:1"', Cause.IMAGE_PULL),
        ("Failed", 'Error: secret "s3" not found', Cause.CONFIGURATION),
        ("FailedCreatePodSandBox", "no address is left", Cause.NOT_STARTED),
    ],
)
def test_an_event_has_a_cause(reason: str, message: str, cause: Cause) -> None:
    problem = event_problem(event(reason, message))
    assert problem is not None
    assert problem.cause is cause
    assert message in problem.message


@pytest.mark.parametrize("reason", ["Scheduled", "Pulling", "Created", "Started", "Killing"])
def test_what_is_no_warning_is_no_problem(reason: str) -> None:
    assert event_problem(event(reason)) is None


def test_of_an_image_the_words_of_the_registry_are_told() -> None:
    problem = waited_for(
        [
            event("Scheduled"),
            event("Failed", 'Failed to pull image "a:1": manifest unknown', 2),
            event("Failed", "Error: ErrImagePull", 3),
            event("BackOff", 'Back-off pulling image "a:1"', 9),
            event("Failed", "Error: ImagePullBackOff", 9),
        ]
    )
    assert problem is not None
    assert "manifest unknown" in problem.message


def test_a_pod_that_found_a_node_does_not_wait_for_one() -> None:
    assert waited_for([event("FailedScheduling", second=1), event("Scheduled")]) is None


def test_a_pod_that_began_waited_for_nothing() -> None:
    assert waited_for([event("FailedMount", second=9), event("Started")]) is None


def test_what_a_former_pod_waited_for_is_over_once_another_began() -> None:
    former = event("FailedScheduling", second=1)
    assert waited_for([former, event("Started", second=2, of="one-fghij")]) is None


def test_a_pod_that_waits_while_another_runs_is_told() -> None:
    waits = event("FailedScheduling", "no room", 600, of="one-fghij")
    problem = waited_for([waits, event("Started")])
    assert problem is not None
    assert "no room" in problem.message


def test_nothing_is_known_without_events() -> None:
    assert waited_for([]) is None


def test_what_was_said_long_before_the_end_is_not_why_it_ended() -> None:
    # Clusters forget that a pod began while they still know what it waited for.
    assert waited_for([event("FailedScheduling")], after_minutes=10) is not None
    assert waited_for([event("FailedScheduling")], after_minutes=40) is None


def test_warnings_of_jobs_and_pods_that_run_are_not_what_they_waited_for() -> None:
    assert waited_for([event("DeadlineExceeded", "was active too long", type="Warning")]) is None
    assert waited_for([event("NodeNotReady", "the node is not ready", type="Warning")]) is None
    assert waited_for([event("FailedCreatePodSandBox", "no address is left")]) is not None


def test_an_event_that_repeats_was_seen_when_its_series_says() -> None:
    series = {"count": 4, "lastObservedTime": "2026-11-30T13:00:00.000000Z"}
    repeated = event("FailedScheduling", series=series, lastTimestamp=None)
    assert seen(repeated) == BEGUN + timedelta(hours=1)
