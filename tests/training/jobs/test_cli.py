"""`rancast job` as people use it, and what it refuses before anything is started."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
import torch
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

import rancast
from model.checkpoint import load_checkpoint
from tests.conftest import REPOSITORY
from tests.training.jobs.contract import Site
from training.jobs.cli import (
    cancel_and_wait,
    follow_job,
    print_logs,
    show_list,
    show_status,
    submit_and_show,
)
from training.jobs.cluster.kubernetes import KubernetesBackend
from training.jobs.local.backend import LocalBackend
from training.jobs.local.folder import JobFolder
from training.jobs.spec import JobSpec
from training.jobs.status import JobStatus, Phase
from training.jobs.trained_by import checked_command
from training.state import RunState, save_state


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(rancast.app, ["job", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


class Screen:
    """A console and what it shows."""

    def __init__(self, terminal: bool = False) -> None:
        self.file = io.StringIO()
        self.console = Console(file=self.file, force_terminal=terminal, width=120)

    @property
    def text(self) -> str:
        return self.file.getvalue()


@pytest.fixture
def backend(tmp_path, stand_in_python):
    made = LocalBackend(tmp_path / "jobs", stand_in_python)
    yield made
    for job in made.list():
        made.cancel(job.run_id)


def test_following_a_job_shows_its_lines_and_how_it_ended(backend):
    screen = Screen()
    spec = JobSpec("one", ("train", "3"))
    assert submit_and_show(backend, spec, screen.console, follow=True) == 0
    for words in (
        "one submitted (local)",
        "this line is no event",
        "epoch 2 of 3, loss 0.5000",
        "checkpoint written to mine.safetensors",
        "one: succeeded",
    ):
        assert words in screen.text


def test_logs_that_may_not_be_read_are_no_success(api, connected, pod_job, tmp_path):
    backend = KubernetesBackend(connected(), poll_seconds=0.02)
    backend.submit(pod_job)
    api.forbidden.add(("get", "pods/log"))
    screen = Screen()
    assert follow_job(backend, "one", screen.console, poll_seconds=0.02) == 0
    assert "rancast: read the log of rancast-one-0: not allowed" in screen.text
    where = ["--backend", "kubernetes", "--kubeconfig", tmp_path / "kubeconfig"]
    said = run("logs", "one", *where, code=2)
    assert "read the log of rancast-one-0: not allowed" in said.stderr
    assert said.stdout == ""


def test_on_a_terminal_the_lines_move_a_bar(backend):
    screen = Screen(terminal=True)
    backend.submit(JobSpec("one", ("train", "3")))
    assert follow_job(backend, "one", screen.console, poll_seconds=0.02) == 0
    assert "3/3" in screen.text
    assert "loss 0.3333" in screen.text
    assert '"event"' not in screen.text


def test_on_a_terminal_trouble_is_said_beside_the_bar(backend):
    screen = Screen(terminal=True)
    backend.submit(JobSpec("one", ("trouble", "no store")))
    assert follow_job(backend, "one", screen.console, poll_seconds=0.02) == 0
    assert screen.text.count("no store") == 1


def test_following_a_job_that_fails_says_why_and_exits_so(backend):
    screen = Screen()
    backend.submit(JobSpec("one", ("fail", "42", "cells.csv: no samples")))
    assert follow_job(backend, "one", screen.console, poll_seconds=0.02) == 1
    assert "bad data or configuration: cells.csv: no samples" in screen.text


def test_a_job_that_does_not_start_says_why_while_it_is_followed(
    cluster, connected, pod_job, monkeypatch
):
    cluster.idle = True
    backend, screen = KubernetesBackend(connected(), poll_seconds=0.02), Screen()
    backend.submit(pod_job)
    Site(lambda: backend, pod_job).until("one", lambda _: bool(cluster.api.find("pods")))
    about = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    cluster.set_pod("rancast-one-0", {"phase": "Pending", "conditions": [about]})
    status = backend.status

    def then_ends(run_id):
        found = status(run_id)
        cluster.condition("jobs", "rancast-one", "Failed", "DeadlineExceeded")
        return found

    monkeypatch.setattr(backend, "status", then_ends)
    assert follow_job(backend, "one", screen.console, poll_seconds=0.02) == 1
    assert "pending: no node fits: 0/3 nodes are available" in screen.text
    assert "one: failed" in screen.text


def test_submitting_again_says_so_and_shows_how_it_goes(backend):
    spec = JobSpec("one", ("fail", "42", "no samples"))
    backend.submit(spec)
    Site(lambda: backend, spec).until("one")
    screen = Screen()
    assert submit_and_show(backend, spec, screen.console, follow=False) == 1
    assert "one was submitted before" in screen.text
    assert "no samples" in screen.text


def test_logs_name_each_attempt_once(backend):
    spec = JobSpec("one", ("fail", "1", "again"), retries=1)
    backend.submit(spec)
    Site(lambda: backend, spec).until("one")
    written: list[str] = []
    print_logs(backend, "one", written.append, follow=False)
    headings = [line for line in written if line.startswith("==>")]
    assert headings == ["==> attempt 1 <==\n", "==> attempt 2 <==\n"]


def test_a_cancelled_job_is_gone_when_it_is_said_to_be(backend, tmp_path):
    backend.submit(JobSpec("one", ("hang", str(tmp_path / "pid"))))
    screen = Screen()
    cancel_and_wait(backend, "one", screen.console, wait=True, poll_seconds=0.02)
    assert "one is gone" in screen.text
    show_list(backend.list(), screen.console)
    assert "no jobs" in screen.text


def test_missing_data_are_the_reason_that_status_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANCAST_JOBS_DIR", str(tmp_path / "jobs"))
    run(
        *("submit", "--run-id", "one", "--retries", "0", "--follow"),
        *("--", "train", "missing.csv", "--out", "mine.safetensors"),
        code=1,
    )
    assert "missing.csv: expected a file or a folder" in run("status", "one", code=1).output
    assert "one" in run("list").output
    assert "missing.csv" in run("logs", "one").output
    assert "gone" in run("cancel", "one").output
    assert "no job is called one" in run("status", "one", code=2).output


def test_a_dry_run_prints_the_objects_and_reaches_no_cluster(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    output = run(
        *("submit", "--backend", "kubernetes", "--dry-run", "--image", "a:1", "--nodes", 2),
        *("--mount", "cells:/data:ro", "--secret", "s3", "--env", "AWS_REGION=eu-1"),
        *("--", "train", "/data", "--out", "s3://models/mine.safetensors"),
    ).output
    job, service = yaml.safe_load_all(output)
    assert (job["kind"], service["kind"]) == ("Job", "Service")
    assert job["spec"]["completions"] == 2
    (trainjob,) = yaml.safe_load_all(
        run(
            *("submit", "--backend", "trainjob", "--dry-run", "--image", "a:1"),
            *("--runtime", "ours", "--mount", "models:/models"),
            *("--", "train", "--out", "/models/mine.safetensors"),
        ).output
    )
    assert trainjob["spec"]["runtimeRef"]["name"] == "ours"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "serve"], "expected a command that trains"),
        (["--", "train", "--stepz", "3"], "No such option: --stepz"),
        (["--", "train", "--out", "x", "--steps", "many"], "--steps"),
        (["--", "train", "cells"], "out"),
        (["--", "train", "--help"], "not a question"),
        (["--backend", "slurm", "--", "train", "--out", "x"], "expected a backend of"),
        (["--backend", "kubernetes", "--", "train", "--out", "x"], "--image"),
        (["--gpus", "1", "--", "train", "--out", "x"], "--backend kubernetes"),
        (["--env", "A", "--", "train", "--out", "x"], "NAME=VALUE"),
        (["--env", "A_TOKEN=b", "--", "train", "--out", "x"], "--secret"),
        (["--keep", "0.1", "--", "train", "--out", "x"], "at least 600"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_started(
    arguments, words, tmp_path, monkeypatch
):
    monkeypatch.delenv("RANCAST_IMAGE", raising=False)
    monkeypatch.setenv("RANCAST_JOBS_DIR", str(tmp_path / "jobs"))
    result = run("submit", *arguments, code=2)
    assert words in result.output
    assert not (tmp_path / "jobs").exists()


def dry_run(*arguments: object) -> list[dict]:
    """The objects of a job whose checkpoint lies in a store."""
    where = ("--backend", "kubernetes", "--dry-run", "--image", "a:1")
    result = run("submit", *where, *arguments, "--", "train", "--out", "s3://models/x")
    return list(yaml.safe_load_all(result.stdout))


def test_what_a_platform_asks_for_is_on_the_objects_and_the_pods():
    (job,) = dry_run(
        *("--label", "kueue.x-k8s.io/queue-name=ran", "--annotation", "example.org/note=a b=c"),
        *("--user-id", "none", "--image-pull-policy", "Always", "--scratch", "20Gi"),
    )
    pod = job["spec"]["template"]
    for about in (job["metadata"], pod["metadata"]):
        assert about["labels"]["kueue.x-k8s.io/queue-name"] == "ran"
        assert about["annotations"]["example.org/note"] == "a b=c"
    assert "runAsUser" not in pod["spec"]["securityContext"]
    (container,) = pod["spec"]["containers"]
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"]["limits"]["ephemeral-storage"] == "20Gi"


@pytest.mark.parametrize(
    ("options", "threads"),
    [
        ((), "1"),
        (("--cpu", "500m"), "1"),
        (("--cpu", "3500m"), "3"),
        (("--cpu", "8", "--processes", "2"), "4"),
    ],
)
def test_a_pod_computes_with_the_cores_that_it_gets(options, threads):
    (job,) = dry_run(*options)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command = container["command"]
    assert command[command.index("--threads") + 1] == threads


def test_a_local_job_computes_with_as_many_threads_as_it_was_given_cores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANCAST_JOBS_DIR", str(tmp_path / "jobs"))
    for run_id, options in (("one", ("--cpu", "2")), ("two", ())):
        run(
            *("submit", "--run-id", run_id, "--retries", "0", *options),
            *("--", "train", "missing.csv", "--out", "x"),
        )
        command = JobFolder(tmp_path / "jobs" / run_id).record().command
        assert ("--threads" in command) == bool(options)
        run("cancel", run_id)


def test_gpus_are_said_to_be_idle():
    where = ("--backend", "kubernetes", "--dry-run", "--image", "a:1", "--gpus", "1")
    result = run("submit", *where, "--", "train", "--out", "s3://models/x")
    assert "on the CPU" in result.stderr


OF_A_CLUSTER = {
    "--image": "a:1",
    "--image-pull-secret": "pull",
    "--image-pull-policy": "Always",
    "--python": "python3",
    "--memory": "4Gi",
    "--gpus": "0",
    "--scratch": "1Gi",
    "--mount": "a:/a",
    "--secret": "s3",
    "--service-account": "me",
    "--user-id": "10001",
    "--label": "a=b",
    "--annotation": "a=b",
    "--node-selector": "a=b",
    "--toleration": "a",
    "--runtime": "ours",
    "--kubeconfig": "file",
    "--context": "there",
    "--namespace": "ran",
}


@pytest.mark.parametrize("option", OF_A_CLUSTER)
def test_a_local_job_refuses_what_means_nothing_to_it(option, tmp_path, monkeypatch):
    monkeypatch.setenv("RANCAST_JOBS_DIR", str(tmp_path / "jobs"))
    given = (option, OF_A_CLUSTER[option])
    said = run("submit", *given, "--", "train", "--out", "x", code=2).output
    assert f"expected a cluster (--backend kubernetes, or trainjob) for {option};" in said
    assert not (tmp_path / "jobs").exists()


def test_an_image_of_the_environment_is_for_other_jobs_and_no_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANCAST_JOBS_DIR", str(tmp_path / "jobs"))
    monkeypatch.setenv("RANCAST_IMAGE", "registry.example/rancast:1")
    run("submit", "--run-id", "one", "--", "train", "missing.csv", "--out", "x")
    run("cancel", "one")


def test_a_runtime_is_of_trainjobs_only():
    where = ("--backend", "kubernetes", "--image", "a:1", "--runtime", "ours")
    said = run("submit", *where, "--", "train", "--out", "s3://models/x", code=2).output
    assert "--backend trainjob" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--deadline", "inf"), "number of hours after --deadline"),
        (("--keep", "nan"), "number of hours after --keep"),
        (("--keep", "1e9"), "keep_seconds of at most 2147483647"),
        (("--deadline", "1e9"), "deadline_seconds of at most 2147483647"),
        (("--retries", "99999999999"), "retries of at most 2147483647"),
        (("--user-id", "root"), "number of a user, or none"),
        (("--user-id", "0"), "other than root"),
        (("--image-pull-policy", "always"), "IfNotPresent"),
        (("--scratch", "much"), "scratch as a quantity"),
        (("--label", "a"), "NAME=VALUE"),
        (("--label", "a=b c"), "--label a="),
        (("--annotation", "a b=c"), "KEY as in team"),
    ],
)
def test_what_a_server_would_refuse_is_refused_at_submit(options, words):
    where = ("--backend", "kubernetes", "--dry-run", "--image", "a:1", *options)
    assert words in run("submit", *where, "--", "train", "--out", "s3://m/x", code=2).output


@pytest.mark.parametrize("backend", ["kubernetes", "trainjob"])
def test_a_checkpoint_that_would_go_with_the_pod_is_refused_at_submit(backend):
    where = ("--backend", backend, "--dry-run", "--image", "a:1", "--mount", "cells:/data:ro")
    for out, words in (("/tmp/x", "outlives the pod"), ("/data/x", "read only")):
        said = run("submit", *where, "--", "train", "/data", "--out", out, code=2).output
        assert words in said


def test_a_clock_behind_the_servers_shows_no_negative_time():
    screen = Screen()
    began = datetime.now(UTC) + timedelta(minutes=1)
    show_status(JobStatus("one", "kubernetes", Phase.RUNNING, began, began), screen.console)
    assert "for 0:00:00" in screen.text


def test_a_second_attempt_that_finds_more_data_begins_again(tmp_path, write_table):
    write_table(tmp_path / "cells.csv")
    out = tmp_path / "mine.safetensors"
    train = ["train", str(tmp_path / "cells.csv"), "--out", str(out), "--preset", "nano"]
    command = checked_command([*train, "--series", "2", "--steps", "2"]).arguments
    state = tmp_path / "mine.safetensors.run"
    weights = {"a": torch.zeros(1)}
    name = command[command.index("--run-name") + 1]
    save_state(RunState(1, weights, weights, weights), state, "of the data before", name)
    result = CliRunner().invoke(rancast.app, list(command))
    assert result.exit_code == 0, result.output
    assert load_checkpoint(out).training["steps"] == 2
    assert not state.exists()


def test_files_that_could_not_be_read_do_not_fail_a_job(tmp_path):
    from training.jobs.process import main

    (tmp_path / "rancast.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n")
    for status, becomes in ((0, 0), (1, 0), (2, 2), (42, 42)):
        answer = subprocess.run(
            [sys.executable, "-P", "-m", main.__module__, str(status)],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{REPOSITORY}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == becomes, answer.stderr
        assert ('"event": "warning"' in answer.stdout) == (status == 1)


def test_the_clients_absence_is_told_with_what_to_install():
    script = "import sys; sys.modules['kubernetes'] = None; import rancast; rancast.main()"
    answer = subprocess.run(
        [sys.executable, "-c", script, "job", "list", "--backend", "kubernetes"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "rancast[kubernetes]" in answer.stderr


def test_a_job_of_a_cluster_is_found_by_its_kubeconfig(cluster, connected, pod_job, tmp_path):
    cluster.idle = True
    KubernetesBackend(connected()).submit(pod_job)
    file = tmp_path / "kubeconfig"
    assert "one" in run("list", "--backend", "kubernetes", "--kubeconfig", file).output
