"""docs/training-jobs.md is true: its commands are run as printed, and its Role suffices."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

import rancast
from tests.conftest import REPOSITORY
from tests.test_docs import blocks, manifests
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


PLACES = {"cells": "/data", "models": "/models"}


def places(pod: dict) -> dict[str, str]:
    """Where each claim of a pod is mounted."""
    claims = {
        each["name"]: each["persistentVolumeClaim"]["claimName"]
        for each in pod["volumes"]
        if "persistentVolumeClaim" in each
    }
    mounts = pod["containers"][0]["volumeMounts"]
    return {claims[each["name"]]: each["mountPath"] for each in mounts if each["name"] in claims}


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
        ("--cpu 2 --memory 8Gi", ["Job", "Job", "Service"]),
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
    for of in ("--run-id weekly", "rancast job cancel weekly"):
        for group, command, *options in commands(of, monkeypatch):
            if group == "job":
                run([group, command, "--kubeconfig", str(file), *options])
    assert cluster.api.find("jobs") == []


@pytest.mark.parametrize("version", ["1.28", "1.32", "1.37"])
def test_every_manifest_of_the_page_is_valid(version):
    found = manifests(PAGE)
    assert [each["kind"] for each in found] == [
        *("PersistentVolumeClaim", "PersistentVolumeClaim"),
        *("Pod", "Role"),
    ]
    for each in found:
        kubernetes_validate.validate(each, version, strict=True)


def test_files_are_copied_by_the_user_and_to_the_places_of_the_job(monkeypatch):
    claims = {each["metadata"]["name"] for each in manifests(PAGE, "PersistentVolumeClaim")}
    (pod,) = manifests(PAGE, "Pod")
    (submit,) = (each for each in commands("--run-id weekly", monkeypatch) if each[1] == "submit")
    (job,) = yaml.safe_load_all(run([*submit[:2], "--dry-run", *submit[2:]]))
    theirs = job["spec"]["template"]["spec"]
    assert pod["spec"]["securityContext"] == theirs["securityContext"]
    (container,), (trainer,) = pod["spec"]["containers"], theirs["containers"]
    assert container["image"] == trainer["image"]
    assert container["securityContext"] == trainer["securityContext"]
    assert places(pod["spec"]) == places(theirs) == {name: PLACES[name] for name in claims}


def test_what_kubectl_is_to_apply_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    applied = {
        each
        for block in blocks(PAGE, "sh")
        for each in re.findall(r"kubectl apply -f (\S+)", block)
    }
    assert applied == {"claims.yaml", "files.yaml", "role.yaml"}
    for name in applied:
        assert f"`{name}`" in text


def test_the_role_is_all_that_is_asked_of_the_server(connected, pod_job, api):
    (role,) = manifests(PAGE, "Role")
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
