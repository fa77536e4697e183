"""Jobs as Jobs of Kubernetes: nothing has to be installed in the cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from training.jobs.cluster.backend import CONFLICT, SELECTOR, ClusterBackend
from training.jobs.cluster.conditions import Condition, Snapshot
from training.jobs.cluster.connection import TIMEOUT_SECONDS
from training.jobs.cluster.job import build_job, build_service
from training.jobs.cluster.pod import CONTAINER, DIGEST_ANNOTATION, RUN_ID_LABEL
from training.jobs.cluster.pods import LONG_AGO
from training.jobs.errors import BackendError, JobConflictError
from training.jobs.names import object_name
from training.jobs.spec import JobSpec


class KubernetesBackend(ClusterBackend):
    """Each job is a Job; one of several nodes has a headless Service besides."""

    name = "kubernetes"
    kind = "Job"
    container = CONTAINER

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        """See `ClusterBackend.manifests`."""
        job = build_job(spec)
        objects = [job, build_service(spec, job)]
        return [
            self.cluster.api.sanitize_for_serialization(each)
            for each in objects
            if each is not None
        ]

    def _create(self, spec: JobSpec) -> None:
        job = build_job(spec)
        made = self.cluster.batch.create_namespaced_job(
            self.cluster.namespace, job, _request_timeout=TIMEOUT_SECONDS
        )
        # Of fields that they do not know, servers only warn. A job of one node does without them.
        indexed = made.spec is not None and made.spec.completion_mode == "Indexed"
        if spec.nodes > 1 and not indexed:
            self._delete(object_name(spec.run_id))
            raise BackendError(
                f"submit {spec.run_id}: the API server knows no Indexed Jobs (Kubernetes 1.24 and "
                "newer do), without which nodes do not find each other; use one node (--nodes 1), "
                "with several --processes"
            )

    def _accompany(self, spec: JobSpec, uid: str) -> None:
        job = build_job(spec)
        assert job.metadata is not None
        job.metadata.uid = uid
        service = build_service(spec, job)
        if service is None:
            return
        try:
            self.cluster.core.create_namespaced_service(
                self.cluster.namespace, service, _request_timeout=TIMEOUT_SECONDS
            )
        except ApiException as error:
            if error.status != CONFLICT:
                raise
            self._check_owner(job.metadata.name or "", uid)

    def _check_owner(self, service: str, uid: str) -> None:
        """Refuse a Service that goes with another object than the run's."""
        found = self.cluster.core.read_namespaced_service(
            service, self.cluster.namespace, _request_timeout=TIMEOUT_SECONDS
        )
        owners = (found.metadata.owner_references if found.metadata else None) or []
        if uid not in [owner.uid for owner in owners]:
            raise JobConflictError(
                f"the Service {service} is not this job's; it is still being removed with the job "
                "that it belongs to (submit again in a minute), or someone else's (choose another "
                "--run-id)"
            )

    def _read(self, name: str) -> Snapshot:
        return _snapshot(
            self.cluster.batch.read_namespaced_job(
                name, self.cluster.namespace, _request_timeout=TIMEOUT_SECONDS
            )
        )

    def _list(self) -> Sequence[Snapshot]:
        found = self.cluster.batch.list_namespaced_job(
            self.cluster.namespace, label_selector=SELECTOR, _request_timeout=TIMEOUT_SECONDS
        )
        return [_snapshot(job) for job in found.items if _is_ours(job)]

    def _delete(self, name: str) -> None:
        # Foreground: the Job stays until its pods are gone. By default they would stay, alone.
        self.cluster.batch.delete_namespaced_job(
            name,
            self.cluster.namespace,
            propagation_policy="Foreground",
            _request_timeout=TIMEOUT_SECONDS,
        )


def _is_ours(job: client.V1Job) -> bool:
    """Whether a submit made it: a Job that a CronJob of the chart made has no run id."""
    return bool(job.metadata and RUN_ID_LABEL in (job.metadata.labels or {}))


def _snapshot(job: client.V1Job) -> Snapshot:
    about, status = job.metadata or client.V1ObjectMeta(), job.status or client.V1JobStatus()
    conditions = tuple(
        Condition(each.type, each.reason or "", each.message or "", each.last_transition_time)
        for each in status.conditions or []
        if each.status == "True"
    )
    indexed = job.spec is not None and job.spec.completion_mode == "Indexed"
    # A failed Job has no completion time; the moment of its condition is when it ended.
    ended = [each.since for each in conditions if each.kind in ("Complete", "Failed")]
    return Snapshot(
        run_id=(about.labels or {}).get(RUN_ID_LABEL, ""),
        digest=(about.annotations or {}).get(DIGEST_ANNOTATION),
        uid=about.uid or "",
        created_at=about.creation_timestamp or LONG_AGO,
        deleting=about.deletion_timestamp is not None,
        conditions=conditions,
        started_at=status.start_time,
        finished_at=status.completion_time or next(iter(ended), None),
        failed_pods=status.failed or 0,
        active_pods=status.active or 0,
        pod_names=re.escape(about.name or "") + (r"-\d+-\w+" if indexed else r"-\w+"),
    )
