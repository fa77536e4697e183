"""`rancast job` against Kubernetes itself, with the real trainer in the pods."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rancast
from model.checkpoint import load_checkpoint
from tests.cluster.api import at, wait_for
from tests.cluster.claims import MODELS, make_models_claim, models_folder
from tests.cluster.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

HUGE = "rancast/run-id=huge"
IMAGE = "registry.example.org/ran/rancast:0.1.0"
SHORT = ("--preset", "nano", "--series", "2", "--steps", "2")
ENDLESS = ("--preset", "nano", "--series", "2", "--steps", "1000000")


@dataclass(frozen=True)
class Jobs:
    """A namespace with a claim for checkpoints, and the command line of its jobs.

    Attributes:
        cluster: Which has it.
        namespace: Its name.
    """

    cluster: Cluster
    namespace: str

    def run(self, command: str, *arguments: str, code: int = 0) -> str:
        """What `rancast job` says, with the exit status that it has to have."""
        where = [f"--namespace={self.namespace}", f"--kubeconfig={self.cluster.kubeconfig}"]
        words = ["job", command, "--backend", "kubernetes", *where, *arguments]
        result = CliRunner().invoke(rancast.app, words)
        assert result.exit_code == code, result.output
        return result.output

    def submit(self, run_id: str, *command: str, options: tuple[str, ...] = (), code: int) -> str:
        """Submit a job, and stay until it has ended."""
        image = (
            "--image",
            "registry.example.org/ran/rancast:0.1.0",
            "--mount",
            f"{MODELS}:/models",
        )
        return self.run(
            *("submit", "--run-id", run_id, "--retries", "0", "--follow", *image, *options),
            *("--", *command),
            code=code,
        )

    def models(self) -> Path:
        """Folder of the claim on this machine."""
        return models_folder(self.cluster, self.namespace)


@pytest.fixture(scope="module")
def jobs(cluster: Cluster) -> Jobs:
    cluster.process_node()
    namespace = cluster.namespace()
    make_models_claim(cluster, namespace)
    return Jobs(cluster, namespace)


def test_a_job_is_followed_until_its_checkpoint_lies_on_the_claim(jobs: Jobs) -> None:
    said = jobs.submit("good", "train", "--out", "/models/good.safetensors", *SHORT, code=0)
    assert "good submitted (kubernetes)" in said
    assert "step 2 of 2" in said
    assert "good: succeeded" in said
    assert load_checkpoint(jobs.models() / "good.safetensors").training["steps"] == 2
    assert "good" in jobs.run("list")
    assert '"event": "done"' in jobs.run("logs", "good")


@pytest.mark.parametrize(
    ("run_id", "command", "reason"),
    [
        (
            "no-data",
            ("/models/no.csv", "--out", "/models/x.safetensors"),
            "no.csv: expected a file or a folder, found nothing",
        ),
        (
            "no-place",
            ("--out", "/models/file/x.safetensors"),
            "file/x.safetensors cannot be written: expected a folder, ",
        ),
    ],
)
def test_status_says_what_the_run_could_not_do(
    jobs: Jobs, run_id: str, command: tuple[str, ...], reason: str
) -> None:
    jobs.submit("first", "train", "--out", "/models/first.safetensors", *SHORT, code=0)
    (jobs.models() / "file").touch()
    jobs.submit(run_id, "train", *command, *ENDLESS, code=1)
    said = jobs.run("status", run_id, code=1)
    assert "bad data or configuration: " in said
    assert reason in said


def test_a_job_that_takes_too_long_is_ended_and_says_so(jobs: Jobs) -> None:
    out = ("--out", "/models/slow.safetensors")
    # Long enough to load torch and save a state on a machine that has more to do.
    limit = ("--deadline", str(30 / 3600))
    said = jobs.submit("slow", "train", *out, *ENDLESS, options=limit, code=1)
    assert "deadline exceeded: its time was over before it was done" in said
    assert (jobs.models() / "slow.safetensors.run").exists()


def test_a_job_that_no_node_fits_says_so_also_after_its_deadline(jobs: Jobs) -> None:
    out = ("--out", "/models/huge.safetensors")
    limit = ("--deadline", str(10 / 3600), "--memory", "9000Gi")
    said = jobs.submit("huge", "train", *out, *ENDLESS, options=limit, code=1)
    assert "deadline exceeded: its time was over while it waited: no node fits: " in said
    assert "Insufficient memory" in said
    assert "--deadline" not in said
    assert jobs.cluster.api.list(at("v1", "pods", jobs.namespace), labelSelector=HUGE) == []
    # The controller took its pods, so only events can tell.
    assert "while it waited: no node fits: " in jobs.run("status", "huge", code=1)
    assert "no pod of huge is left" in jobs.run("logs", "huge", code=2)


def test_a_server_without_indexed_jobs_refuses_several_nodes_and_keeps_nothing(jobs: Jobs) -> None:
    if jobs.cluster.version >= (1, 21):
        pytest.skip("this server knows Indexed Jobs")
    options = ("--nodes", "2")
    said = jobs.submit(
        "pair", "train", "--out", "/models/pair.safetensors", options=options, code=2
    )
    assert "knows no Indexed Jobs" in said
    wait_for("end of pair", lambda: "pair" not in jobs.run("list"))


def test_a_cancelled_job_is_gone(jobs: Jobs) -> None:
    words = ("--run-id", "gone", "--image", IMAGE)
    mount = ("--mount", f"{MODELS}:/models")
    train = ("train", "--out", "/models/gone.safetensors", *ENDLESS)
    jobs.run("submit", *words, *mount, "--", *train)
    assert "gone is gone" in jobs.run("cancel", "gone")
    assert "gone" not in jobs.run("list")
    jobs.run("status", "gone", code=2)
