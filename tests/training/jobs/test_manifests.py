"""The objects of a job are valid to the last key, hardened, and say what was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import ApiClient

from tests.cluster.pod_environment import expand
from training.jobs.cluster.job import build_job, build_service
from training.jobs.cluster.trainjob import build_trainjob
from training.jobs.pod_settings import Mount, PodSettings, Toleration
from training.jobs.spec import JobSpec

POD = PodSettings(
    "registry.example/rancast:1",
    image_pull_policy="IfNotPresent",
    image_pull_secrets=("pull",),
    service_account="trainer",
    cpu="2500m",
    memory="8Gi",
    gpus=1,
    scratch="20Gi",
    labels=(("kueue.x-k8s.io/queue-name", "ran"),),
    annotations=(("example.org/ticket", "RAN 7"),),
    mounts=(Mount("cells", "/data", True), Mount("models", "/models"), Mount("cells", "/again")),
    secrets=("s3",),
    node_selector=(("disk", "ssd"),),
    tolerations=(
        Toleration.parse("gpu:NoSchedule"),
        Toleration.parse("team=radio"),
        Toleration.parse("spot=yes:NoExecute"),
    ),
)
ONE = JobSpec("one", ("train", "/data", "--out", "/models/$(x).safetensors"), pod=POD)
MANY = replace(ONE, nodes=3, processes=2, retries=2, environment=(("AWS_REGION", "eu-1"),))
VERSIONS = ("1.28", "1.32", "1.37")


def as_json(thing: object) -> dict[str, Any]:
    found: dict[str, Any] = ApiClient().sanitize_for_serialization(thing)
    return found


def job_of(spec: JobSpec) -> dict[str, Any]:
    return as_json(build_job(spec))


def trainers(spec: JobSpec) -> dict[str, Any]:
    """What a TrainJob has in the place of a pod's template."""
    return {"containers": [build_trainjob(spec, "torch", ApiClient())["spec"]["trainer"]]}


def pod_of(spec: JobSpec) -> dict[str, Any]:
    found: dict[str, Any] = job_of(spec)["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("spec", [ONE, MANY, replace(ONE, pod=PodSettings("a:1"))])
def test_objects_are_valid_to_the_last_key(spec: JobSpec, version: str) -> None:
    job = build_job(spec)
    assert job.metadata is not None
    job.metadata.uid = "6d0e1c1e-0000-4000-8000-000000000000"
    kubernetes_validate.validate(as_json(job), version, strict=True)
    if (service := build_service(spec, job)) is not None:
        kubernetes_validate.validate(as_json(service), version, strict=True)


def test_a_misspelt_key_would_be_refused() -> None:
    job = job_of(ONE)
    job["spec"]["backofLimit"] = job["spec"].pop("backoffLimit")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.37", strict=True)


def test_the_limits_of_a_job_are_those_of_its_spec() -> None:
    spec = job_of(replace(ONE, retries=3, deadline_seconds=60, keep_seconds=900))["spec"]
    assert spec["backoffLimit"] == 3
    assert spec["activeDeadlineSeconds"] == 60
    assert spec["ttlSecondsAfterFinished"] == 900
    assert spec["podReplacementPolicy"] == "Failed"


def test_bad_data_fail_the_job_and_a_drained_node_does_not_count() -> None:
    bad, drained = job_of(ONE)["spec"]["podFailurePolicy"]["rules"]
    assert bad["action"] == "FailJob"
    assert bad["onExitCodes"] == {"containerName": "train", "operator": "In", "values": [42]}
    assert drained["action"] == "Ignore"
    assert drained["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_pods_are_hardened() -> None:
    pod = pod_of(ONE)
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_what_a_library_writes_goes_to_the_pods_own_folder() -> None:
    (container,) = pod_of(ONE)["containers"]
    own = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "own"]
    assert own == ["/tmp"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    for name in ("HOME", "TORCHINDUCTOR_CACHE_DIR", "RANCAST_CACHE_DIR"):
        assert variables[name].startswith("/tmp")


def test_a_pod_gets_exactly_what_it_asks_for() -> None:
    (container,) = pod_of(ONE)["containers"]
    amounts = {
        **{"cpu": "2500m", "memory": "8Gi", "nvidia.com/gpu": "1"},
        "ephemeral-storage": "20Gi",
    }
    assert container["resources"] == {"requests": amounts, "limits": amounts}


def test_a_claim_that_is_mounted_twice_is_one_volume() -> None:
    pod = pod_of(ONE)
    claims = {
        each["name"]: each["persistentVolumeClaim"]["claimName"]
        for each in pod["volumes"]
        if "persistentVolumeClaim" in each
    }
    assert sorted(claims.values()) == ["cells", "models"]
    mounts = {
        each["mountPath"]: (claims[each["name"]], each.get("readOnly", False))
        for each in pod["containers"][0]["volumeMounts"]
        if each["name"] in claims
    }
    assert mounts == {
        "/data": ("cells", True),
        "/models": ("models", False),
        "/again": ("cells", False),
    }


def test_credentials_are_named_and_never_told() -> None:
    (container,) = pod_of(ONE)["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}]


def test_taints_are_tolerated_as_kubectl_writes_them() -> None:
    assert pod_of(ONE)["tolerations"] == [
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "radio"},
        {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoExecute"},
    ]


def test_an_argument_is_not_taken_for_a_variable_of_the_pod() -> None:
    (container,) = pod_of(ONE)["containers"]
    assert container["command"][-1] == "/models/$$(x).safetensors"


@given(st.text("$()Aa", max_size=12))
def test_arguments_and_variables_mean_what_they_say(text: str) -> None:
    spec = replace(ONE, arguments=("train", text), environment=(("DATA", text),))
    for template in (pod_of(spec), trainers(spec)):
        (container,) = template["containers"]
        assert expand(container["command"][-1], {"A": "other"}) == text
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert expand(variables["DATA"], {"A": "other"}) == text


def test_labels_and_annotations_of_the_user_stand_beside_ours() -> None:
    job = job_of(ONE)
    for about in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert about["labels"]["kueue.x-k8s.io/queue-name"] == "ran"
        assert about["labels"]["rancast/run-id"] == "one"
        assert about["annotations"]["example.org/ticket"] == "RAN 7"
    assert job["metadata"]["annotations"]["rancast/spec-digest"] == ONE.digest


def test_a_user_that_the_platform_chooses_is_not_named() -> None:
    assert ONE.pod is not None
    free = replace(ONE.pod, user_id=None)
    assert pod_of(replace(ONE, pod=free))["securityContext"] == {
        "runAsNonRoot": True,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_nodes_meet_at_the_first_pod_by_the_name_that_the_service_gives_it() -> None:
    job, service = build_job(MANY), build_service(MANY, build_job(MANY))
    spec, about = as_json(job)["spec"], as_json(service)
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == 3
    assert spec["backoffLimit"] == 0
    pod = spec["template"]["spec"]
    assert pod["subdomain"] == about["metadata"]["name"] == "rancast-one"
    command = pod["containers"][0]["command"]
    assert command[:4] == ["python3", "-P", "-m", "training.torchrun"]
    for option in (
        "--nnodes=3",
        "--nproc-per-node=2",
        "--max-restarts=2",
        "--rdzv-endpoint=rancast-one-0.rancast-one:29500",
    ):
        assert option in command
    assert about["spec"]["selector"] == {"rancast/run-id": "one"}
    assert spec["template"]["metadata"]["labels"]["rancast/run-id"] == "one"
    assert about["spec"]["publishNotReadyAddresses"] is True


def test_processes_of_a_node_share_memory_beyond_the_default() -> None:
    volumes = {each["name"]: each for each in pod_of(replace(ONE, processes=2))["volumes"]}
    assert volumes["memory"]["emptyDir"] == {"medium": "Memory"}
    assert "memory" not in {
        each["name"] for each in pod_of(replace(ONE, pod=PodSettings("a:1")))["volumes"]
    }


def test_names_of_pods_and_hosts_stay_within_a_label() -> None:
    spec = replace(MANY, run_id="x" * 40, nodes=1000)
    job = job_of(spec)
    assert len(f"{job['metadata']['name']}-999") <= 63
