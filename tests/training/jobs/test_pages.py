"""docs/training-jobs.md is true: its commands are run as printed, and its Role suffices."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

import rancast
from tests.conftest import REPOSITORY
from tests.test_docs import blocks
from training.jobs.cluster.kubernetes import KubernetesBackend

PAGE = REPOSITORY / "docs" / "training-jobs.md"


def commands(of: str, shell: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Commands of the block with a certain text in it, without `rancast`; exports are done."""
    (block,) = (body for body in blocks(PAGE, "sh") if of in body)
    for line in block.replace("\\\n", " ").splitlines():
        first, *rest = shlex.split(line)
        if first == "export":
            for pair in rest:
                shell.setenv(*pair.split("=", 1))
        elif first == "rancast":
            yield rest


def run(arguments: list[str]) -> str:
    result = CliRunner().invoke(rancast.app, arguments)
    assert result.exit_code == 0, f"{arguments}: {result.output}"
    return result.output


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("RANCAST_JOB_BACKEND", "RANCAST_IMAGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_the_local_commands_lead_from_nothing_to_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("RANCAST_JOBS_DIR", str(tmp_path / "jobs"))
    said = {" ".join(each[:2]): run(each) for each in commands("--run-id first", monkeypatch)}
    assert "first: succeeded" in said["job submit"]
    assert "succeeded" in said["job list"]
    assert (tmp_path / "mine.safetensors").exists()


@pytest.mark.parametrize(
    ("of", "kinds"),
    [
        ("--mount cells:/data:ro --mount models:/models --cpu 2", ["Job", "Job", "Service"]),
        ("--backend trainjob", ["TrainJob"]),
    ],
)
def test_dry_runs_print_objects_that_are_valid(of, kinds, monkeypatch):
    found = [
        each
        for arguments in commands(of, monkeypatch)
        for each in yaml.safe_load_all(run(arguments))
    ]
    assert [each["kind"] for each in found] == kinds
    for each in found:
        if each["kind"] != "TrainJob":
            kubernetes_validate.validate(each, "1.37", strict=True)


def test_the_commands_for_a_cluster_are_understood_by_one(cluster, tmp_path, monkeypatch):
    cluster.idle = True
    file = cluster.api.write_kubeconfig(tmp_path / "kubeconfig")
    # As KUBECONFIG would: the client reads that once, when it is imported.
    for job, command, *options in commands("--run-id weekly", monkeypatch):
        run([job, command, "--kubeconfig", str(file), *options])
    assert cluster.api.find("jobs") == []


def test_the_role_is_all_that_is_asked_of_the_server(connected, pod_job, api):
    (role,) = (yaml.safe_load(text) for text in blocks(PAGE, "yaml"))
    kubernetes_validate.validate(role, "1.37", strict=True)
    allowed = {
        (verb, resource)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    backend = KubernetesBackend(connected(), poll_seconds=0.02)
    backend.submit(replace(pod_job, run_id="two", nodes=2))
    backend.submit(pod_job)
    with backend.logs("one", follow=True) as lines:
        list(lines)
    backend.status("one")
    backend.list()
    backend.cancel("one")
    assert set(api.requests) <= allowed
    assert ("get", "pods/log") in set(api.requests)
