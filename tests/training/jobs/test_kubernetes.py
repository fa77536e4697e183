"""Jobs of Kubernetes: the contract, and what a cluster does to them besides."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from kubernetes import client

from tests.training.jobs.contract import BackendContract, Site
from training.jobs.cluster.backend import _is_first
from training.jobs.cluster.kubernetes import KubernetesBackend
from training.jobs.cluster.pods import INDEX_NOTE, name_of
from training.jobs.errors import BackendError, JobConflictError, JobSpecError
from training.jobs.status import Cause, Phase

POD = "rancast-one-0"


class TestKubernetes(BackendContract):
    @pytest.fixture
    def site(self, connected, pod_job):
        return Site(lambda: KubernetesBackend(connected(), poll_seconds=0.02), pod_job)


@pytest.fixture
def backend(connected):
    return KubernetesBackend(connected(), poll_seconds=0.02)


@pytest.fixture
def idle(cluster, api, backend, pod_job):
    """A cluster where pods wait, with one that does."""
    cluster.idle = True
    backend.submit(pod_job)
    with api.changed:
        assert api.changed.wait_for(lambda: ("pods", POD) in api.objects, 10)
    return cluster


def waiting(reason: str, message: str = "") -> dict:
    return {
        "phase": "Pending",
        "containerStatuses": [
            {
                "name": "train",
                "image": "registry.example/rancast:1",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": message}},
            }
        ],
    }


def test_an_image_that_cannot_be_pulled_is_named_while_the_job_waits(idle, backend):
    idle.set_pod(POD, waiting("ImagePullBackOff", "manifest unknown"))
    status = backend.status("one")
    assert status.phase is Phase.PENDING
    assert status.problem.cause is Cause.IMAGE_PULL
    assert "registry.example/rancast:1: manifest unknown" in status.problem.message
    assert not status.problem.lasting


def test_a_pod_without_a_node_says_what_the_scheduler_says(idle, backend):
    said = "0/3 nodes are available: 3 Insufficient memory."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    idle.set_pod(POD, {"phase": "Pending", "conditions": [{**condition, "message": said}]})
    problem = backend.status("one").problem
    assert problem.cause is Cause.UNSCHEDULABLE
    assert said in problem.message


def test_a_volume_that_cannot_be_mounted_is_told_from_its_event(idle, backend):
    idle.set_pod(POD, waiting("ContainerCreating"))
    idle.warn("Pod", POD, "FailedMount", "volume is attached to another node")
    idle.warn("Pod", "another", "FailedMount", "not this one")
    problem = backend.status("one").problem
    assert problem.cause is Cause.VOLUME
    assert problem.message == "volume is attached to another node"


def test_a_pod_whose_network_cannot_be_made_says_what_was_warned_last(idle, backend):
    idle.set_pod(POD, waiting("ContainerCreating"))
    idle.warn("Pod", POD, "FailedScheduling", "has unbound immediate PersistentVolumeClaims")
    idle.warn("Pod", POD, "FailedCreatePodSandBox", "plugin type calico failed")
    idle.warn("Pod", POD, "FailedScheduling", "has unbound immediate PersistentVolumeClaims")
    problem = backend.status("one").problem
    assert problem.cause is Cause.NOT_STARTED
    assert problem.message == "FailedCreatePodSandBox: plugin type calico failed"


def test_the_reason_is_that_of_the_last_attempt(idle, api, backend):
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"}
    idle.set_pod(POD, evicted)
    second = {**api.read("pods", POD), "status": {"phase": "Failed", "message": "no space left"}}
    stamp = "2100-01-01T00:00:00Z"
    second["metadata"] |= {"name": "rancast-one-1", "creationTimestamp": stamp}
    api.put("pods", second)
    assert backend.status("one").problem.message == "no space left"
    idle.condition("jobs", "rancast-one", "Failed", "BackoffLimitExceeded")
    assert backend.status("one").problem.cause is Cause.ERROR


def test_a_pod_on_a_node_that_is_gone_is_a_problem_of_a_job_that_runs(idle, api, backend):
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    with api.changed:
        api.objects["pods", POD]["metadata"]["deletionTimestamp"] = hour_ago.isoformat()
    idle.set_pod(POD, {"phase": "Running"})
    status = backend.status("one")
    assert status.phase is Phase.RUNNING
    assert status.problem.cause is Cause.EVICTED
    assert f"kubectl delete pod {POD} --force" in status.problem.message


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("FailedScheduling", "0/3 nodes are available", Cause.UNSCHEDULABLE),
        ("Failed", 'Failed to pull image "a:1": not found', Cause.IMAGE_PULL),
    ],
)
def test_a_deadline_says_what_pods_waited_for_that_it_took_away(
    idle, api, backend, reason, message, cause
):
    idle.warn("Pod", POD, reason, message)
    idle.warn("Pod", "rancast-one-two-0", "Failed", "of another job")
    api.remove("pods", POD)
    idle.condition("jobs", "rancast-one", "Failed", "DeadlineExceeded", "was active too long")
    problem = backend.status("one").problem
    assert problem.cause is Cause.DEADLINE
    assert f"while it waited: {cause}: {message}" in problem.message
    assert "--deadline" not in problem.message


def test_a_deadline_of_a_job_that_ran_asks_for_more_time(idle, api, backend):
    idle.warn("Pod", POD, "FailedScheduling", "0/3 nodes are available")
    idle.tell("Pod", POD, "Started")
    api.remove("pods", POD)
    idle.condition("jobs", "rancast-one", "Failed", "DeadlineExceeded", "was active too long")
    message = backend.status("one").problem.message
    assert "--deadline" in message
    assert "nodes are available" not in message


def test_a_deadline_is_told_where_events_may_not_be_read(idle, api, backend):
    api.forbidden.add(("list", "events"))
    api.remove("pods", POD)
    idle.condition("jobs", "rancast-one", "Failed", "DeadlineExceeded", "was active too long")
    assert "--deadline" in backend.status("one").problem.message


def test_a_deadline_without_a_pod_says_what_the_controller_could_not_make(idle, api, backend):
    api.remove("pods", POD)
    idle.warn("Job", "rancast-one", "FailedCreate", "exceeded quota: gpus")
    idle.condition("jobs", "rancast-one", "Failed", "DeadlineExceeded", "was active too long")
    assert "pods cannot be created: exceeded quota" in backend.status("one").problem.message


def test_a_job_whose_pods_are_refused_says_by_what(idle, api, backend):
    api.remove("pods", POD)
    idle.warn("Job", "rancast-one", "FailedCreate", "exceeded quota: gpus")
    problem = backend.status("one").problem
    assert problem.cause is Cause.NOT_CREATED
    assert "exceeded quota" in problem.message


def test_events_that_may_not_be_read_do_not_hide_the_status(idle, api, backend):
    api.forbidden.add(("list", "events"))
    idle.set_pod(POD, waiting("ContainerCreating"))
    assert backend.status("one").phase is Phase.PENDING


def test_a_job_has_ended_when_its_condition_says_so_and_not_before(idle, api, backend):
    log = api.logs[POD]
    log.lines.append((1, json.dumps({"event": "done", "checkpoint": "mine.safetensors"})))
    log.ended = True
    idle.set_pod(POD, {"phase": "Running"})
    assert backend.status("one").phase is Phase.RUNNING
    idle.condition("jobs", "rancast-one", "SuccessCriteriaMet", "CompletionsReached")
    assert backend.status("one").phase is Phase.RUNNING
    idle.condition("jobs", "rancast-one", "Complete", "CompletionsReached")
    assert backend.status("one").phase is Phase.SUCCEEDED


def test_a_failed_job_without_pods_says_what_its_condition_says(idle, api, backend):
    api.remove("pods", POD)
    idle.condition("jobs", "rancast-one", "Failed", "BackoffLimitExceeded", "it failed too often")
    problem = backend.status("one").problem
    assert "it failed too often" in problem.message


def test_a_job_that_a_queue_holds_back_is_pending_and_says_so(idle, backend):
    idle.condition("jobs", "rancast-one", "Suspended", "JobSuspended", "waits in a queue")
    status = backend.status("one")
    assert status.phase is Phase.PENDING
    assert "waits in a queue" in status.problem.message


def test_a_job_of_several_nodes_has_a_service_that_goes_with_it(cluster, api, backend, pod_job):
    cluster.idle = True
    backend.submit(replace(pod_job, nodes=2))
    (service,) = api.find("services")
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["clusterIP"] == "None"
    (owner,) = service["metadata"]["ownerReferences"]
    assert owner["uid"] == api.read("jobs", "rancast-one")["metadata"]["uid"]
    backend.cancel("one")
    Site(lambda: backend, pod_job).until_gone("one")
    assert api.find("services") == []


def test_a_submit_that_was_killed_half_way_is_completed_by_the_next(cluster, api, backend, pod_job):
    cluster.idle = True
    backend.submit(replace(pod_job, nodes=2))
    api.remove("services", "rancast-one")
    assert not backend.submit(replace(pod_job, nodes=2)).fresh
    assert len(api.find("services")) == 1


def test_a_job_whose_service_is_refused_is_not_left_behind(cluster, api, backend, pod_job):
    cluster.idle = True
    api.forbidden.add(("create", "services"))
    with pytest.raises(BackendError, match="cannot create resource services"):
        backend.submit(replace(pod_job, nodes=2))
    Site(lambda: backend, pod_job).until_gone("one")


def test_a_job_that_runs_outlives_a_second_submit_that_is_refused(cluster, api, backend, pod_job):
    cluster.idle = True
    several = replace(pod_job, nodes=2)
    backend.submit(several)
    api.forbidden.add(("create", "services"))
    with pytest.raises(BackendError, match=r"not allowed.*goes on as it was"):
        backend.submit(several)
    assert ("delete", "jobs") not in api.requests
    assert backend.status("one").phase is Phase.PENDING
    assert len(api.find("services")) == 1


def test_a_job_that_has_ended_needs_nothing_any_more(idle, api, backend, pod_job):
    several = replace(pod_job, run_id="two", nodes=2)
    backend.submit(several)
    idle.condition("jobs", "rancast-two", "Complete", "CompletionsReached")
    api.remove("services", "rancast-two")
    assert not backend.submit(several).fresh
    assert api.find("services") == []


def test_a_service_of_another_job_is_not_taken_for_its_own(cluster, api, backend, pod_job):
    cluster.idle = True
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "rancast-one", "uid": "before"}
    about = {"name": "rancast-one", "ownerReferences": [owner]}
    api.put("services", {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": {}})
    with pytest.raises(JobConflictError, match="Service rancast-one is not this job's"):
        backend.submit(replace(pod_job, nodes=2))
    Site(lambda: backend, pod_job).until_gone("one")


def test_a_server_without_indexed_jobs_is_told_and_keeps_nothing(cluster, api, backend, pod_job):
    cluster.idle = True
    api.unknown_fields["jobs"] = {"completionMode", "podFailurePolicy", "podReplacementPolicy"}
    with pytest.raises(BackendError, match=r"knows no Indexed Jobs.*--nodes 1"):
        backend.submit(replace(pod_job, nodes=2))
    Site(lambda: backend, pod_job).until_gone("one")
    assert backend.submit(pod_job).fresh


def test_jobs_of_others_are_not_listed(cluster, api, backend, pod_job):
    cluster.idle = True
    backend.submit(pod_job)
    other = {"metadata": {"name": "other", "labels": {"app.kubernetes.io/name": "rancast"}}}
    api.put("jobs", {"apiVersion": "batch/v1", "kind": "Job", "spec": {}, **other})
    assert [job.run_id for job in backend.list()] == ["one"]


def test_a_run_id_that_is_being_removed_is_not_taken_for_submitted(cluster, api, backend, pod_job):
    cluster.idle = True
    backend.submit(pod_job)
    with api.changed:
        about = api.objects["jobs", "rancast-one"]["metadata"]
        about["deletionTimestamp"] = about["creationTimestamp"]
    assert backend.status("one").phase is Phase.STOPPING
    with pytest.raises(JobConflictError, match="being removed"):
        backend.submit(pod_job)


def test_what_may_not_be_done_points_at_the_role(api, backend, pod_job):
    api.forbidden.add(("create", "jobs"))
    with pytest.raises(BackendError, match=r"submit one: not allowed.*docs/training-jobs\.md"):
        backend.submit(pod_job)


def test_what_the_schema_refuses_is_told_with_the_servers_words(backend, pod_job):
    pod = replace(pod_job.pod, node_selector=(("disk", None),))
    with pytest.raises(BackendError, match="submit one"):
        backend.submit(replace(pod_job, pod=pod))


def test_a_local_job_is_refused(backend, pod_job):
    with pytest.raises(JobSpecError, match="--image"):
        backend.submit(replace(pod_job, pod=None))
    with pytest.raises(JobSpecError, match="working directory"):
        backend.submit(replace(pod_job, directory="/data"))


def test_of_several_nodes_the_first_one_tells_how_far_they_are() -> None:
    def pod(name: str, index: str, phase: str = "Running", minute: int = 0) -> client.V1Pod:
        made = datetime(2026, 11, 1, 0, minute, tzinfo=UTC)
        about = {"name": name, "annotations": {INDEX_NOTE: index}, "creation_timestamp": made}
        return client.V1Pod(metadata=about, status={"phase": phase})

    pods = [pod("old", "0", "Failed"), pod("new", "0", minute=1), pod("other", "1", minute=2)]
    assert name_of(max(pods, key=_is_first)) == "new"
    waiting = [pod("old", "0", "Failed"), pod("new", "0", "Pending", minute=1)]
    assert name_of(max(waiting, key=_is_first)) == "old"
