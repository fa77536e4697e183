"""What kubelets, schedulers and controllers write about pods, in words for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes import client

from training.jobs.cluster.conditions import Condition, ending_problem
from training.jobs.cluster.diagnosis import (
    failure_problem,
    latest_failures,
    leaving_problem,
    waiting_problem,
    worst,
)
from training.jobs.cluster.pods import INDEX_NOTE
from training.jobs.status import Cause, Problem

MADE = datetime(2026, 11, 30, 12, tzinfo=UTC)


def pod(status: dict[str, Any]) -> client.V1Pod:
    resources = {"limits": {"memory": "4Gi"}}
    container = {"name": "train", "image": "a:1", "resources": resources}
    found = client.V1Pod.from_dict(
        {
            "metadata": {"name": "one-0", "creationTimestamp": MADE.isoformat()},
            "spec": {"containers": [container]},
            "status": status,
        }
    )
    assert found is not None
    return found


def with_state(phase: str, state: dict[str, Any], **more: Any) -> client.V1Pod:
    about = {"name": "train", "image": "a:1", "imageID": "", "ready": False, "restartCount": 0}
    return pod({"phase": phase, "containerStatuses": [{**about, "state": state}], **more})


def waits(reason: str, message: str = "as it is") -> client.V1Pod:
    return with_state("Pending", {"waiting": {"reason": reason, "message": message}})


def ended(exit_code: int, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": exit_code, **more}}


def waiting(made: client.V1Pod, after: timedelta = timedelta()) -> Problem | None:
    return waiting_problem(made, "train", (), MADE + after)


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"])
def test_an_image_gets_time_to_be_pulled(reason: str) -> None:
    early, late = waiting(waits(reason)), waiting(waits(reason), timedelta(minutes=3))
    assert early is not None
    assert late is not None
    assert early.cause is late.cause is Cause.IMAGE_PULL
    assert (early.lasting, late.lasting) == (False, True)


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull"])
def test_an_image_that_never_can_be_pulled_gets_none(reason: str) -> None:
    problem = waiting(waits(reason, "couldn't parse image name"))
    assert problem is not None
    assert problem.lasting
    assert "couldn't parse image name" in problem.message


def test_a_secret_that_is_missing_is_named() -> None:
    problem = waiting(waits("CreateContainerConfigError", 'secret "s3" not found'))
    assert problem is not None
    assert problem.cause is Cause.CONFIGURATION
    assert 'secret "s3" not found' in problem.message


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_a_pod_that_is_being_made_has_no_problem(reason: str) -> None:
    assert waiting(waits(reason)) is None
    assert waiting(pod({"phase": "Pending"})) is None


def test_a_pod_that_runs_does_not_wait() -> None:
    assert waiting(with_state("Running", {"running": {}})) is None


def test_a_claim_that_is_missing_is_the_schedulers_word() -> None:
    said = 'persistentvolumeclaim "cells" not found'
    condition = {"type": "PodScheduled", "status": "False", "message": said}
    problem = waiting(pod({"phase": "Pending", "conditions": [condition]}), timedelta(minutes=6))
    assert problem is not None
    assert problem.cause is Cause.UNSCHEDULABLE
    assert said in problem.message
    assert problem.lasting


def failure(made: client.V1Pod) -> Problem:
    problem = failure_problem(made, "train")
    assert problem is not None
    return problem


def test_out_of_memory_says_the_limit() -> None:
    problem = failure(with_state("Failed", ended(137, reason="OOMKilled")))
    assert problem.cause is Cause.OUT_OF_MEMORY
    assert "4Gi" in problem.message
    assert "--memory" in problem.message


def test_a_kill_without_a_reason_says_that_it_is_most_often_memory() -> None:
    problem = failure(with_state("Failed", ended(137, reason="Error", message="epoch 3\n")))
    assert problem.cause is Cause.KILLED
    assert "memory" in problem.message
    assert "epoch 3" in problem.message


@pytest.mark.parametrize(
    "status",
    [
        {"reason": "Evicted", "message": "the node was low on memory"},
        {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "message": "the node was low on memory",
                }
            ]
        },
    ],
)
def test_an_eviction_says_why(status: dict[str, Any]) -> None:
    problem = failure(pod({"phase": "Failed", **status}))
    assert problem.cause is Cause.EVICTED
    assert "the node was low on memory" in problem.message


def test_bad_data_say_what_the_pod_said_last() -> None:
    said = 'a warning\n{"event": "error", "reason": "cells.csv: no samples"}\n'
    problem = failure(with_state("Failed", ended(42, reason="Error", message=said)))
    assert problem == Problem(Cause.BAD_DATA, "cells.csv: no samples")


def test_a_program_that_is_not_in_the_image_is_the_pods_configuration() -> None:
    state = ended(128, reason="StartError", message="exec: python4: not found")
    problem = failure(with_state("Failed", state))
    assert problem.cause is Cause.CONFIGURATION
    assert "python4" in problem.message


def test_a_signal_is_named() -> None:
    assert "SIGSEGV" in failure(with_state("Failed", ended(139))).message


def test_a_pod_that_has_not_failed_has_no_failure() -> None:
    assert failure_problem(with_state("Running", {"running": {}}), "train") is None


def numbered(index: str, minute: int, **status: Any) -> client.V1Pod:
    made = pod({"phase": "Failed", **status})
    assert made.metadata is not None
    made.metadata.creation_timestamp = MADE + timedelta(minutes=minute)
    made.metadata.annotations = {INDEX_NOTE: index}
    return made


def test_of_several_attempts_the_last_one_tells_why() -> None:
    attempts = [
        numbered("0", 1, reason="Evicted", message="the node was low on memory"),
        numbered("0", 2, message="no space left on device"),
    ]
    assert latest_failures(attempts, "train") == [Problem(Cause.ERROR, "no space left on device")]


def test_of_several_nodes_the_last_attempt_of_each_counts() -> None:
    pods = [
        numbered("0", 1, reason="Evicted", message="low on memory"),
        numbered("1", 2, message="one"),
        numbered("0", 3, message="nought"),
    ]
    assert [each.message for each in latest_failures(pods, "train")] == ["one", "nought"]


def in_deletion(phase: str = "Running") -> client.V1Pod:
    made = with_state(phase, {"running": {}})
    assert made.metadata is not None
    assert made.spec is not None
    made.metadata.deletion_timestamp = MADE
    made.spec.node_name = "worker-7"
    return made


def test_a_pod_whose_node_does_not_let_it_go_says_what_frees_the_job() -> None:
    made = in_deletion()
    assert made.status is not None
    lost = {"type": "DisruptionTarget", "status": "True", "message": "the node is unreachable"}
    made.status.conditions = [client.V1PodCondition(**lost)]
    problem = leaving_problem(made, MADE + timedelta(minutes=3))
    assert problem is not None
    assert problem.cause is Cause.EVICTED
    assert not problem.lasting
    for words in ("the node is unreachable", "worker-7", "kubectl delete pod one-0 --force"):
        assert words in problem.message


def test_a_pod_that_has_just_been_told_to_go_gets_time() -> None:
    assert leaving_problem(in_deletion(), MADE + timedelta(minutes=1)) is None
    assert leaving_problem(in_deletion("Failed"), MADE + timedelta(minutes=9)) is None
    assert leaving_problem(with_state("Running", {"running": {}}), MADE) is None


def test_of_several_pods_the_one_that_tells_most_is_told() -> None:
    lost = Problem(Cause.ERROR, "connection closed by peer")
    bad = Problem(Cause.BAD_DATA, "no samples")
    assert worst([lost, bad, lost]) == bad
    assert worst([]) is None


def test_the_last_of_several_attempts_says_how_many_there_were() -> None:
    failed = Condition("Failed", "BackoffLimitExceeded", "it failed too often", MADE)
    problem = ending_problem(failed, 3, Problem(Cause.OUT_OF_MEMORY, "too much"))
    assert problem == Problem(Cause.OUT_OF_MEMORY, "too much (the last of 3 attempts)")


def test_a_deadline_after_an_attempt_that_failed_says_both() -> None:
    failed = Condition("Failed", "DeadlineExceeded", "", MADE)
    problem = ending_problem(failed, 1, Problem(Cause.EVICTED, "low on memory"))
    assert problem.cause is Cause.DEADLINE
    assert "--deadline" in problem.message
    assert "before that, evicted: low on memory" in problem.message


def test_a_deadline_that_was_spent_waiting_does_not_ask_for_more_time() -> None:
    failed = Condition("Failed", "DeadlineExceeded", "", MADE)
    problem = ending_problem(failed, 0, None, Problem(Cause.IMAGE_PULL, "no such image"))
    assert problem.cause is Cause.DEADLINE
    assert "while it waited: image cannot be pulled: no such image" in problem.message
    assert "--deadline" not in problem.message


def test_a_pod_policy_without_a_pod_is_bad_data() -> None:
    failed = Condition("Failed", "PodFailurePolicy", "exit code 42", MADE)
    assert ending_problem(failed, 1, None).cause is Cause.BAD_DATA
