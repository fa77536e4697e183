"""The account that may run training Jobs, and the CronJob that trains anew."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import rancast
from tests.helm.conftest import CHART, Helm
from tests.helm.rendered import container, environment, mounts, of_kind, pod, variables, volumes

MODELS = {"enabled": True, "accessModes": ["ReadWriteMany"]}
DATA = {"paths": ["/data/pm"], "existingClaim": "pm"}


def retrained(**values: Any) -> dict[str, Any]:
    return {"models": MODELS, "retraining": {"enabled": True, "data": DATA, **values}}


def job(objects: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = of_kind(objects, "CronJob")["spec"]["jobTemplate"]["spec"]
    return found


def trainer(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (only,) = job(objects)["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def rights(objects: list[dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    return {
        (group, resource): rule["verbs"]
        for rule in of_kind(objects, "Role")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_without_jobs_nothing_may_be_asked_of_the_kubernetes_api(helm: Helm) -> None:
    objects = helm.template()
    assert not {"Role", "RoleBinding"} & {each["kind"] for each in objects}
    assert pod(objects)["automountServiceAccountToken"] is False


def test_jobs_get_the_least_rights_and_a_token(helm: Helm) -> None:
    objects = helm.template({"jobs": {"enabled": True}})
    assert rights(objects) == {
        ("batch", "jobs"): ["create", "get", "list", "delete"],
        ("batch", "jobs/status"): ["get"],
        ("", "pods"): ["get", "list"],
        ("", "pods/log"): ["get"],
        ("", "events"): ["list"],
    }
    assert pod(objects)["automountServiceAccountToken"] is True
    # Other pods under the account have to ask for one themselves.
    assert of_kind(objects, "ServiceAccount")["automountServiceAccountToken"] is False


def test_train_jobs_may_be_made_where_they_are_asked_for(helm: Helm) -> None:
    objects = helm.template({"jobs": {"enabled": True, "trainJobs": True}})
    verbs = rights(objects)["trainer.kubeflow.org", "trainjobs"]
    assert verbs == ["create", "get", "list", "delete"]
    assert ("trainer.kubeflow.org", "trainjobs") not in rights(
        helm.template({"jobs": {"enabled": True}})
    )


def test_services_may_be_made_where_a_job_spans_nodes(helm: Helm) -> None:
    objects = helm.template({"jobs": {"enabled": True, "multiNode": True}})
    assert rights(objects)["", "services"] == ["create", "get"]


def test_rights_hold_in_the_namespace_of_the_jobs_for_the_account_of_the_service(
    helm: Helm,
) -> None:
    objects = helm.template(
        {"jobs": {"enabled": True, "namespace": "training"}}, "--namespace", "serving"
    )
    role, binding = of_kind(objects, "Role"), of_kind(objects, "RoleBinding")
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "training"
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    account = of_kind(objects, "ServiceAccount")["metadata"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": "serving"}
    ]


def test_the_checkpoint_is_written_where_the_service_looks_for_models(helm: Helm) -> None:
    objects = helm.template(retrained(model="own"))
    folder = environment(objects)["RANCAST_MODELS_DIRECTORY"]
    assert f"--out={folder}/own.safetensors" in trainer(objects)["args"]
    mount = mounts(trainer(objects))[folder]
    assert "readOnly" not in mount
    ours = volumes(job(objects)["template"]["spec"])[mount["name"]]
    assert ours == volumes(pod(objects))[mounts(container(objects))[folder]["name"]]


def test_data_are_read_only(helm: Helm) -> None:
    objects = helm.template(retrained(data={**DATA, "subPath": "archive"}))
    assert mounts(trainer(objects))["/data"] == {
        "name": "data",
        "mountPath": "/data",
        "readOnly": True,
        "subPath": "archive",
    }
    volume = volumes(job(objects)["template"]["spec"])["data"]
    assert volume["persistentVolumeClaim"] == {"claimName": "pm", "readOnly": True}


def test_the_pods_of_training_are_not_taken_for_the_service(helm: Helm) -> None:
    objects = helm.template(retrained())
    selector = of_kind(objects, "Service")["spec"]["selector"]
    labels = job(objects)["template"]["metadata"]["labels"]
    assert not selector.items() <= labels.items()
    assert not selector.items() <= of_kind(objects, "Pod")["metadata"]["labels"].items()


def test_training_is_as_restricted_as_the_service_and_has_no_token(helm: Helm) -> None:
    objects = helm.template({**retrained(), "jobs": {"enabled": True}})
    spec = job(objects)["template"]["spec"]
    assert spec["securityContext"] == pod(objects)["securityContext"]
    assert trainer(objects)["securityContext"] == container(objects)["securityContext"]
    assert spec["automountServiceAccountToken"] is False


def test_bad_data_are_not_tried_again_and_evictions_do_not_count(helm: Helm) -> None:
    objects = helm.template(retrained(), "--kube-version", "1.32")
    bad_data, evicted = job(objects)["podFailurePolicy"]["rules"]
    assert bad_data["action"] == "FailJob"
    assert bad_data["onExitCodes"]["values"] == [42]
    assert bad_data["onExitCodes"]["containerName"] == trainer(objects)["name"]
    assert evicted["action"] == "Ignore"


def test_a_volume_of_one_node_draws_training_to_the_service(helm: Helm) -> None:
    values = retrained(onServiceNode=True)
    values["models"] = {"enabled": True}
    objects = helm.template(values)
    (term,) = job(objects)["template"]["spec"]["affinity"]["podAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    labels = of_kind(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    assert term["labelSelector"]["matchLabels"] == labels
    assert term["topologyKey"] == "kubernetes.io/hostname"


@pytest.mark.parametrize("command", ["finetune", "train"])
def test_every_option_is_one_of_the_command(helm: Helm, command: str) -> None:
    options = yaml.safe_load((CHART / "ci" / "full-values.yaml").read_text())["retraining"][
        "options"
    ]
    if command == "train":
        options = {**options, "preset": "nano"}
        del options["minutes"]
    objects = helm.template(
        {**retrained(command=command, options=options), "catalogues": {"a.toml": ""}}
    )
    given = {each.partition("=")[0] for each in trainer(objects)["args"] if each.startswith("--")}
    group = typer.main.get_command(rancast.app)
    parameters = group.commands[command].params  # type: ignore[attr-defined]
    assert given <= {option for parameter in parameters for option in parameter.opts}
    assert {"--out", "--catalogue", "--kpi", "--keep-suspect", "--time-zone"} <= given


def run_trainer(container: dict[str, Any], folder: Path, run: str) -> list[str]:
    """Words that a run's process is started with, where checkpoints lie in a folder."""
    program = folder / "python3"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    own = {"JOB_NAME": f"r-rancast-retraining-{run}", "PATH": f"{folder}:/usr/bin:/bin"}
    answer = subprocess.run(
        [*container["command"], *container["args"]],
        env={**variables(container), **own},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.splitlines()


def test_the_command_is_run_with_a_version_that_a_second_try_keeps(helm: Helm, tmp_path) -> None:
    objects = helm.template(retrained(options={"country": "ES CT"}, versionPrefix="2."))
    only = trainer(objects)
    words = run_trainer(only, tmp_path, "29384720")
    assert words[:3] == ["-P", "-m", "training.jobs.process"]
    assert words[3:6] == ["finetune", "rancast-small", "/data/pm"]
    assert "--country=ES CT" in words
    assert words[-2:] == ["--version", "2.29384720"]
    assert [word for word in words if word.startswith("--out=/")]
    (source,) = (each for each in only["env"] if each["name"] == "JOB_NAME")
    assert source["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['job-name']"


@pytest.mark.parametrize("command", ["finetune", "train"])
def test_what_a_run_of_other_data_left_is_not_gone_on_from(helm: Helm, command: str) -> None:
    options = {"preset": "nano"} if command == "train" else {}
    arguments = trainer(helm.template(retrained(command=command, options=options)))["args"]
    assert arguments.count("--run-name=r-rancast-retraining") == 1


def test_a_cron_jobs_name_leaves_room_for_the_number_of_the_run(helm: Helm) -> None:
    objects = helm.template(retrained(), "--name-template", "r" * 53)
    assert len(of_kind(objects, "CronJob")["metadata"]["name"]) <= 52


def test_what_is_added_to_training_reaches_it(helm: Helm) -> None:
    full = yaml.safe_load((CHART / "ci" / "full-values.yaml").read_text())
    objects = helm.template(full)
    ours, spec = full["retraining"], job(objects)["template"]["spec"]
    assert variables(trainer(objects))["OMP_NUM_THREADS"] == "2"
    assert trainer(objects)["envFrom"] == ours["extraEnvFrom"]
    for name in (
        *("nodeSelector", "tolerations", "affinity", "priorityClassName"),
        *("runtimeClassName", "schedulerName"),
    ):
        assert spec[name] == ours[name]
    for name in ("hostAliases", "dnsPolicy", "dnsConfig"):
        assert spec[name] == full[name]
    assert spec["initContainers"] == ours["extraInitContainers"]
    assert volumes(spec)["tmp"] == {"name": "tmp", **ours["temporaryVolume"]}
    annotations = job(objects)["template"]["metadata"]["annotations"]
    assert annotations == {**full["commonAnnotations"], **ours["podAnnotations"]}
    assert volumes(spec)["shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
    assert of_kind(objects, "CronJob")["spec"]["timeZone"] == "Europe/Madrid"


DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, f"host.example/rancast@{DIGEST}"),
        ({"tag": "gpu"}, "host.example/rancast:gpu"),
        ({"repository": "ran/gpu"}, "host.example/ran/gpu:1.2.3"),
        ({"registry": "other.example"}, "other.example/rancast:1.2.3"),
        ({"digest": "sha256:" + "cd" * 32}, "host.example/rancast@sha256:" + "cd" * 32),
    ],
)
def test_training_has_the_image_of_the_service_unless_it_is_given_its_own(
    helm: Helm, own: dict[str, str], expected: str
) -> None:
    image = {"registry": "host.example", "tag": "1.2.3", "digest": DIGEST}
    assert trainer(helm.template({**retrained(image=own), "image": image}))["image"] == expected
