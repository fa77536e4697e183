"""Jobs of the real job controller whose pods run the real trainer, to every end that a Job has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from model.checkpoint import load_checkpoint
from tests.cluster.api import Object, at, wait_for
from tests.cluster.claims import MODELS, make_models_claim, models_folder
from tests.cluster.cluster import Cluster
from tests.cluster.process_kubelet import ProcessKubelet
from training.exit_status import BAD_INPUT

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# Enough to write a checkpoint; and more than any test waits for.
SHORT = ("--preset", "nano", "--series", "2", "--steps", "2")
ENDLESS = ("--preset", "nano", "--series", "2", "--steps", "1000000")


@dataclass(frozen=True)
class Training:
    """A namespace with a claim for checkpoints, in which training jobs are created.

    Attributes:
        cluster: Which has it.
        node: Runs the pods.
        namespace: Its name.
    """

    cluster: Cluster
    node: ProcessKubelet
    namespace: str

    def create(self, name: str, *arguments: str, **spec: Any) -> str:
        """Create a job of the service's image; its name."""
        mount = {"name": MODELS, "mountPath": "/models"}
        container = {
            "name": "train",
            "image": "registry.example.org/ran/rancast:0.1.0",
            "args": list(arguments),
            "volumeMounts": [mount],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
        pod = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": [{"name": MODELS, "persistentVolumeClaim": {"claimName": MODELS}}],
        }
        job = {"backoffLimit": 0, "template": {"spec": pod}, **spec}
        path = at("batch/v1", "jobs", self.namespace)
        self.cluster.api.create(path, {"metadata": {"name": name}, "spec": job})
        return name

    def find(self, name: str) -> Object | None:
        """A job, as the server has it."""
        return self.cluster.api.find(at("batch/v1", "jobs", self.namespace, name))

    def end(self, name: str) -> Object:
        """The condition that ended a job."""

        def condition() -> Object | None:
            conditions: list[Object] = (self.find(name) or {})["status"].get("conditions") or []
            return next((each for each in conditions if each["status"] == "True"), None)

        return wait_for(f"end of {name}", condition, 180)

    def pods(self, name: str) -> list[Object]:
        """Pods of a job, the first one first."""
        path = at("v1", "pods", self.namespace)
        found = self.cluster.api.list(path, labelSelector=f"job-name={name}")
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def log(self, name: str) -> str:
        """What the newest pod of a job has said so far; empty before it runs."""
        pods = self.pods(name)
        if not pods or not pods[-1]["status"].get("containerStatuses"):
            return ""
        if "waiting" in pods[-1]["status"]["containerStatuses"][0]["state"]:
            return ""
        path = at("v1", "pods", self.namespace, f"{pods[-1]['metadata']['name']}/log")
        said: str = self.cluster.api.get(path)
        return said

    def process(self, name: str) -> int:
        """Process of a job's newest pod, once there is one."""

        def running() -> int | None:
            pods = self.pods(name)
            runner = self.node.find(self.namespace, pods[-1]["metadata"]["name"]) if pods else None
            return runner.containers[0].process_id if runner else None

        return wait_for(f"process of {name}", running)

    def wait_until_it_trains(self, out: str, after: int = 0) -> int:
        """Wait until a run has begun, or was taken up again: then it saves its state at once.

        Args:
            out: Name of its checkpoint.
            after: What this returned before it was taken up.

        Returns:
            When the state was saved, in nanoseconds.
        """
        state = self.models() / f"{out}.run"

        def saved() -> int | None:
            at_ns = state.stat().st_mtime_ns if state.exists() else 0
            return at_ns if at_ns > after else None

        return wait_for(f"state of {out}", saved, 120)

    def cancel(self, name: str) -> None:
        """Delete a job with its pods, and wait until they are gone."""
        path = at("batch/v1", "jobs", self.namespace, name)
        self.cluster.api.delete(path, propagationPolicy="Foreground")
        self.wait_until_gone(name)

    def wait_until_gone(self, name: str) -> None:
        """Wait until neither a job nor a pod of it is left."""
        wait_for(f"end of {name}", lambda: self.find(name) is None and not self.pods(name), 120)

    def models(self) -> Path:
        """Folder of the claim on this machine."""
        return models_folder(self.cluster, self.namespace)


@pytest.fixture(scope="module")
def training(cluster: Cluster) -> Training:
    node, namespace = cluster.process_node(), cluster.namespace()
    make_models_claim(cluster, namespace)
    return Training(cluster, node, namespace)


def is_gone(process: int) -> bool:
    return not Path("/proc", str(process)).exists()


def test_finished_job_leaves_a_checkpoint_on_its_claim(training: Training) -> None:
    name = training.create("done", "train", "--out", "/models/done.safetensors", *SHORT)
    assert training.end(name)["type"] == "Complete"
    assert "step 2 of 2" in training.log(name)
    assert load_checkpoint(training.models() / "done.safetensors").config.width > 0


def test_job_without_its_data_fails_at_once_and_says_why(training: Training) -> None:
    name = training.create("lost", "train", "/models/no.csv", "--out", "/models/x.safetensors")
    condition = training.end(name)
    assert (condition["type"], condition["reason"]) == ("Failed", "BackoffLimitExceeded")
    (pod,) = training.pods(name)
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == BAD_INPUT
    assert "no.csv" in ended["message"]


def test_job_beyond_its_deadline_is_ended_and_its_process_with_it(training: Training) -> None:
    out = ("--out", "/models/slow.safetensors")
    name = training.create("slow", "train", *out, *ENDLESS, activeDeadlineSeconds=4)
    process = training.process(name)
    condition = training.end(name)
    assert (condition["type"], condition["reason"]) == ("Failed", "DeadlineExceeded")
    wait_for("end of the process", lambda: is_gone(process))


def test_job_goes_once_its_time_after_the_end_is_over(training: Training) -> None:
    spec = {"ttlSecondsAfterFinished": 1}
    name = training.create("passing", "train", "/models/no.csv", "--out", "/models/x", **spec)
    training.wait_until_gone(name)


def test_cancelled_job_goes_with_its_process_and_is_resumed_by_its_name(
    training: Training,
) -> None:
    arguments = ("train", "--out", "/models/later.safetensors", *ENDLESS)
    name = training.create("later", *arguments)
    begun = training.wait_until_it_trains("later.safetensors")
    process = training.process(name)
    training.cancel(name)
    wait_for("end of the process", lambda: is_gone(process))
    training.create(name, *arguments)
    training.wait_until_it_trains("later.safetensors", after=begun)
    training.cancel(name)


@pytest.mark.parametrize("fault", ["eviction", "memory"])
def test_lost_pod_is_replaced_by_one_that_goes_on(training: Training, fault: str) -> None:
    out = f"{fault}.safetensors"
    name = training.create(fault, "train", "--out", f"/models/{out}", *ENDLESS, backoffLimit=1)
    begun = training.wait_until_it_trains(out)
    pod = training.pods(name)[0]["metadata"]["name"]
    if fault == "eviction":
        training.node.evict(training.namespace, pod, "The node was low on resource: memory.")
    else:
        training.node.run_out_of_memory(training.namespace, pod)
    # The controller waits ten seconds before it tries again.
    training.wait_until_it_trains(out, after=begun)
    assert len(training.pods(name)) == 2
    training.cancel(name)
