"""TrainJobs: the contract, and that Trainer's own models take what is built."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob
from kubernetes.client import ApiClient

from tests.training.jobs.contract import BackendContract, Site
from training.jobs.cluster.trainjob import TrainJobBackend, build_trainjob
from training.jobs.errors import BackendError, JobConflictError, JobSpecError
from training.jobs.pod_settings import Mount, Toleration
from training.jobs.status import Cause


class TestTrainJob(BackendContract):
    @pytest.fixture
    def site(self, connected, pod_job):
        return Site(lambda: TrainJobBackend(connected(), poll_seconds=0.02), pod_job, retries=False)


@pytest.mark.parametrize("strict", [True, False])
def test_a_trainer_that_is_too_old_is_told_and_runs_nothing(api, connected, pod_job, strict):
    api.unknown_fields["trainjobs"] = {"runtimePatches", "activeDeadlineSeconds"}
    api.knows_strict = strict
    ran = []
    api.on_created = lambda plural, _body: ran.append(plural)
    backend = TrainJobBackend(connected(), poll_seconds=0.02)
    with pytest.raises(BackendError, match=r"Trainer 2\.2 or newer.*runtimePatches"):
        backend.submit(pod_job)
    Site(lambda: backend, pod_job).until_gone("one")
    assert ran == [] if strict else ["trainjobs"]


@pytest.fixture
def trainjob(pod_job):
    pod = replace(
        pod_job.pod,
        mounts=(Mount("cells", "/data", True),),
        secrets=("s3",),
        node_selector=(("disk", "ssd"),),
        tolerations=(Toleration.parse("gpu:NoSchedule"),),
        image_pull_secrets=("pull",),
        service_account="trainer",
        gpus=2,
        scratch="20Gi",
        labels=(("kueue.x-k8s.io/queue-name", "ran"),),
        annotations=(("example.org/ticket", "RAN 7"),),
    )
    spec = replace(pod_job, pod=pod, nodes=3, processes=2, retries=4)
    return build_trainjob(spec, "torch-distributed", ApiClient())


def test_trainers_models_know_every_field_that_is_built(trainjob):
    # They pass over unknown fields, so what they make of it is compared with what was given.
    assert TrainerV1alpha1TrainJob.from_dict(trainjob).to_dict() == trainjob


def test_the_nodes_and_the_restarts_are_trainers_and_torchruns(trainjob):
    trainer = trainjob["spec"]["trainer"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (3, 2)
    assert "--max-restarts=4" in trainer["command"]
    assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == "2"


def test_labels_and_annotations_of_the_user_are_on_the_trainjob_and_its_pods(trainjob):
    (patch,) = trainjob["spec"]["runtimePatches"]
    (node,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pods = node["template"]["spec"]["template"]["metadata"]
    for about in (trainjob["metadata"], pods):
        assert about["labels"]["kueue.x-k8s.io/queue-name"] == "ran"
        assert about["annotations"]["example.org/ticket"] == "RAN 7"
    limits = trainjob["spec"]["trainer"]["resourcesPerNode"]["limits"]
    assert limits["ephemeral-storage"] == "20Gi"


def test_credentials_come_from_the_secret_and_are_not_in_the_object(trainjob):
    variables = {each["name"]: each for each in trainjob["spec"]["trainer"]["env"]}
    key = variables["AWS_SECRET_ACCESS_KEY"]
    assert "value" not in key
    assert key["valueFrom"]["secretKeyRef"] == {
        "name": "s3",
        "key": "AWS_SECRET_ACCESS_KEY",
        "optional": False,
    }
    assert variables["AWS_SESSION_TOKEN"]["valueFrom"]["secretKeyRef"]["optional"] is True


def test_a_second_secret_is_refused_and_not_taken_in_part(pod_job):
    pod = replace(pod_job.pod, secrets=("s3", "other"))
    with pytest.raises(JobSpecError, match=r"one Secret of a TrainJob.*got s3, other"):
        build_trainjob(replace(pod_job, pod=pod), "torch-distributed", ApiClient())


@pytest.mark.parametrize(("nodes", "characters"), [(10, 40), (11, 39), (101, 38)])
def test_names_of_pods_stay_within_a_label(pod_job, nodes, characters):
    spec = replace(pod_job, run_id="x" * characters, nodes=nodes)
    name = build_trainjob(spec, "torch-distributed", ApiClient())["metadata"]["name"]
    assert len(f"{name}-node-0-{nodes - 1}-abcde") == 63
    if characters < 40:
        longer = replace(spec, run_id="x" * (characters + 1))
        with pytest.raises(JobSpecError, match=f"at most {characters} characters"):
            build_trainjob(longer, "torch-distributed", ApiClient())


def test_a_deadline_says_what_the_nodes_waited_for(cluster, api, connected, pod_job):
    cluster.idle = True
    backend = TrainJobBackend(connected(), poll_seconds=0.02)
    backend.submit(pod_job)
    node = "rancast-one-node-0-0-abcde"
    with api.changed:
        assert api.changed.wait_for(lambda: ("pods", node) in api.objects, 10)
    # Trainer deletes the JobSet with all pods.
    api.remove("pods", node)
    cluster.warn("Pod", node, "FailedScheduling", "0/3 nodes are available")
    cluster.condition("trainjobs", "rancast-one", "Failed", "DeadlineExceeded")
    problem = backend.status("one").problem
    assert problem is not None
    assert problem.cause is Cause.DEADLINE
    assert "while it waited: no node fits: 0/3 nodes are available" in problem.message


def test_the_same_job_of_another_runtime_is_another_job(cluster, connected, pod_job):
    cluster.idle = True
    TrainJobBackend(connected(), poll_seconds=0.02).submit(pod_job)
    assert not TrainJobBackend(connected(), poll_seconds=0.02).submit(pod_job).fresh
    other = TrainJobBackend(connected(), runtime="torch-spot", poll_seconds=0.02)
    with pytest.raises(JobConflictError, match="another job is called one"):
        other.submit(pod_job)


def test_the_pods_bear_the_run_id_and_are_hardened(trainjob):
    (patch,) = trainjob["spec"]["runtimePatches"]
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    template = job["template"]["spec"]["template"]
    assert template["metadata"]["labels"]["rancast/run-id"] == "one"
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    (container,) = template["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
