"""Jobs as TrainJobs of Kubeflow Trainer v2 (trainer.kubeflow.org/v1alpha1).

For clusters that have Trainer and JobSet: their runtime brings the nodes together and can wait for
room for all of them. What a TrainJob cannot say is the runtime's: how long a finished one stays,
and whether its pods get a token of the cluster.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from training.jobs.cluster.backend import SELECTOR, ClusterBackend
from training.jobs.cluster.conditions import COMPLETE, FAILED, Condition, Snapshot
from training.jobs.cluster.connection import TIMEOUT_SECONDS, Cluster, server_message
from training.jobs.cluster.pod import (
    DIGEST_ANNOTATION,
    RUN_ID_LABEL,
    as_is,
    container_security,
    environment,
    labels,
    metadata,
    notes,
    pod_security,
    resources,
    settings_of,
    tolerations,
    volumes,
)
from training.jobs.cluster.pods import LONG_AGO
from training.jobs.errors import BackendError, JobSpecError
from training.jobs.names import object_name
from training.jobs.program import told_by_environment
from training.jobs.spec import JobSpec

GROUP, VERSION, PLURAL = "trainer.kubeflow.org", "v1alpha1", "trainjobs"
RUNTIME = "torch-distributed"
REPLICATED_JOB = CONTAINER = "node"
"""What Trainer's torch runtimes call the job of the nodes, and its container."""

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Keys that are taken from a Secret: a TrainJob cannot take all that there are."""
OPTIONAL_CREDENTIALS = ("AWS_SESSION_TOKEN",)

LONGEST_LABEL = 63
"""Characters of a name of RFC 1123, which JobSet's pods have to have."""
SUFFIX_CHARACTERS = 6
"""What the cluster adds to the name of a pod: -xxxxx."""

_Object = Mapping[str, Any]


def build_trainjob(spec: JobSpec, runtime: str, api: client.ApiClient) -> dict[str, Any]:
    """The TrainJob of a spec.

    Args:
        spec: The job.
        runtime: Name of the ClusterTrainingRuntime.
        api: Turns models of the client into JSON.

    Raises:
        JobSpecError: The job is none for a cluster.
    """
    settings = settings_of(spec)
    _check(spec)
    found, places = volumes(spec)
    command = told_by_environment(settings.python, spec)
    pod = {
        "securityContext": pod_security(settings),
        "serviceAccountName": settings.service_account,
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets] or None,
        "nodeSelector": dict(settings.node_selector) or None,
        "tolerations": tolerations(settings),
        "volumes": found,
        "containers": [
            {
                "name": CONTAINER,
                "securityContext": container_security(),
                "volumeMounts": places,
            }
        ],
    }
    pods = {"labels": labels(spec), "annotations": notes(spec) or None}
    template = {"metadata": _without_none(pods), "spec": _without_none(pod)}
    patch = {
        "manager": "rancast/jobs",
        "trainingRuntimeSpec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {"name": REPLICATED_JOB, "template": {"spec": {"template": template}}}
                    ]
                }
            }
        },
    }
    about = metadata(spec)
    about.annotations = {**(about.annotations or {}), DIGEST_ANNOTATION: digest(spec, runtime)}
    trainjob = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "TrainJob",
        "metadata": about,
        "spec": {
            "runtimeRef": {"name": runtime},
            "activeDeadlineSeconds": spec.deadline_seconds,
            "trainer": {
                "image": settings.image,
                "command": [as_is(each) for each in command],
                "numNodes": spec.nodes,
                "numProcPerNode": spec.processes,
                "resourcesPerNode": resources(settings),
                "env": [*environment(spec), *_credentials(settings.secrets)],
            },
            "runtimePatches": [patch],
        },
    }
    built: dict[str, Any] = api.sanitize_for_serialization(trainjob)
    return built


def digest(spec: JobSpec, runtime: str) -> str:
    """SHA-256 of everything that a TrainJob is made of but its run id, as 64 hexadecimal digits."""
    return hashlib.sha256(f"{spec.digest} {runtime}".encode()).hexdigest()


class TrainJobBackend(ClusterBackend):
    """Each job is a TrainJob."""

    name = "trainjob"
    kind = "TrainJob"
    container = CONTAINER

    def __init__(self, cluster: Cluster, *, runtime: str = RUNTIME, **options: float) -> None:
        """Use a cluster.

        Args:
            cluster: Where jobs run.
            runtime: Name of the ClusterTrainingRuntime.
            options: Of `ClusterBackend`.
        """
        super().__init__(cluster, **options)
        self.runtime = runtime

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        """See `ClusterBackend.manifests`."""
        return [build_trainjob(spec, self.runtime, self.cluster.api)]

    def _create(self, spec: JobSpec) -> None:
        (body,) = self.manifests(spec)
        old = (
            f"submit {spec.run_id}: expected Kubeflow Trainer 2.2 or newer: the one of this "
            "cluster would run the job without its volumes, its limits or its deadline"
        )
        try:
            made = self.cluster.custom.create_namespaced_custom_object(
                GROUP,
                VERSION,
                self.cluster.namespace,
                PLURAL,
                body,
                field_validation="Strict",
                _request_timeout=TIMEOUT_SECONDS,
            )
        except ApiException as error:
            if error.status == 400 and "unknown field" in (said := server_message(error)):
                raise BackendError(f"{old} ({said})") from error
            raise
        # Servers before 1.25 do not know that they are to be strict.
        lost = sorted(set(body["spec"]) - set(cast(_Object, made)["spec"]))
        if lost:
            self._delete(body["metadata"]["name"])
            raise BackendError(f"{old} (dropped: {', '.join(lost)})")

    def _digest(self, spec: JobSpec) -> str:
        return digest(spec, self.runtime)

    def _accompany(self, spec: JobSpec, uid: str) -> None:
        """Nothing: the runtime makes the Service of the nodes."""

    def _read(self, name: str) -> Snapshot:
        found = self.cluster.custom.get_namespaced_custom_object(
            GROUP, VERSION, self.cluster.namespace, PLURAL, name, _request_timeout=TIMEOUT_SECONDS
        )
        return _snapshot(cast(_Object, found))

    def _list(self) -> Sequence[Snapshot]:
        found = self.cluster.custom.list_namespaced_custom_object(
            GROUP,
            VERSION,
            self.cluster.namespace,
            PLURAL,
            label_selector=SELECTOR,
            _request_timeout=TIMEOUT_SECONDS,
        )
        return [_snapshot(each) for each in cast(_Object, found)["items"]]

    def _delete(self, name: str) -> None:
        self.cluster.custom.delete_namespaced_custom_object(
            GROUP,
            VERSION,
            self.cluster.namespace,
            PLURAL,
            name,
            propagation_policy="Foreground",
            _request_timeout=TIMEOUT_SECONDS,
        )


def _check(spec: JobSpec) -> None:
    """Refuse what JobSet or a list of variables would refuse later, or worse, take in part."""
    longest = f"{object_name(spec.run_id)}-{REPLICATED_JOB}-0-{spec.nodes - 1}"
    over = len(longest) + SUFFIX_CHARACTERS - LONGEST_LABEL
    if over > 0:
        raise JobSpecError(
            f"expected a run id of at most {len(spec.run_id) - over} characters for a TrainJob of "
            f"{spec.nodes} nodes, because names of its pods have to stay within {LONGEST_LABEL}, "
            f"got {spec.run_id!r}"
        )
    secrets = settings_of(spec).secrets
    if len(secrets) > 1:
        raise JobSpecError(
            f"expected one Secret of a TrainJob, which takes {', '.join(CREDENTIALS)} from it, "
            f"got {', '.join(secrets)}"
        )


def _credentials(secrets: Sequence[str]) -> list[client.V1EnvVar]:
    """Variables from the keys of Secrets; without one of them the pod does not start."""
    return [
        client.V1EnvVar(
            name=key,
            value_from=client.V1EnvVarSource(
                secret_key_ref=client.V1SecretKeySelector(
                    name=secret, key=key, optional=key in OPTIONAL_CREDENTIALS
                )
            ),
        )
        for secret in secrets
        for key in CREDENTIALS
    ]


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _snapshot(trainjob: Mapping[str, Any]) -> Snapshot:
    about, status = trainjob.get("metadata", {}), trainjob.get("status") or {}
    conditions = tuple(
        Condition(
            each["type"],
            each.get("reason", ""),
            each.get("message", ""),
            _time(each.get("lastTransitionTime")),
        )
        for each in status.get("conditions") or []
        if each.get("status") == "True"
    )
    ended = [each.since for each in conditions if each.kind in (COMPLETE, FAILED)]
    created = _time(about.get("creationTimestamp")) or LONG_AGO
    nodes = [each for each in status.get("jobsStatus") or [] if each.get("name") == REPLICATED_JOB]
    return Snapshot(
        run_id=(about.get("labels") or {}).get(RUN_ID_LABEL, ""),
        digest=(about.get("annotations") or {}).get(DIGEST_ANNOTATION),
        uid=about.get("uid", ""),
        created_at=created,
        deleting=about.get("deletionTimestamp") is not None,
        conditions=conditions,
        started_at=created if nodes else None,
        finished_at=next(iter(ended), None),
        failed_pods=0,
        active_pods=sum(each.get("active", 0) for each in nodes),
        pod_names=rf"{re.escape(about.get('name', ''))}-{REPLICATED_JOB}-\d+-\d+-\w+",
    )
