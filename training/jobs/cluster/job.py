"""The objects of a training job: a Job, and a Service where several nodes have to meet."""

from __future__ import annotations

from kubernetes import client

from training.exit_status import BAD_INPUT
from training.jobs.cluster.pod import CONTAINER, RUN_ID_LABEL, metadata, pod_template, settings_of
from training.jobs.names import object_name
from training.jobs.program import RENDEZVOUS_PORT, on_many_nodes, on_one_node
from training.jobs.spec import JobSpec


def build_job(spec: JobSpec) -> client.V1Job:
    """The Job of a spec.

    One node: failed pods are replaced as often as the spec says. Several: an Indexed Job whose pods
    meet at the first one and restart together under torchrun, so the Job itself replaces none but
    those that the cluster took away.

    Raises:
        JobSpecError: The job is none for a cluster.
    """
    settings, name = settings_of(spec), object_name(spec.run_id)
    many = spec.nodes > 1
    if many:
        command = on_many_nodes(settings.python, spec, f"{name}-0.{name}")
    else:
        command = on_one_node(settings.python, spec)
    return client.V1Job(
        api_version="batch/v1",
        kind="Job",
        metadata=metadata(spec),
        spec=client.V1JobSpec(
            completions=spec.nodes if many else None,
            parallelism=spec.nodes if many else None,
            completion_mode="Indexed" if many else None,
            backoff_limit=0 if many else spec.retries,
            active_deadline_seconds=spec.deadline_seconds,
            ttl_seconds_after_finished=spec.keep_seconds,
            # Two pods of one run would write the same files.
            pod_replacement_policy="Failed",
            pod_failure_policy=_failure_policy(),
            template=pod_template(spec, command, subdomain=name if many else None),
        ),
    )


def build_service(spec: JobSpec, job: client.V1Job) -> client.V1Service | None:
    """The Service that names the pods of a job of several nodes; None for one node.

    It belongs to the Job and goes with it.
    """
    if spec.nodes == 1:
        return None
    about = metadata(spec)
    owner = job.metadata
    if owner is not None and owner.uid is not None:
        about.owner_references = [
            client.V1OwnerReference(
                api_version="batch/v1", kind="Job", name=owner.name or "", uid=owner.uid
            )
        ]
    return client.V1Service(
        api_version="v1",
        kind="Service",
        metadata=about,
        spec=client.V1ServiceSpec(
            cluster_ip="None",
            selector={RUN_ID_LABEL: spec.run_id},
            # The first pod is looked for by the others before it can be ready.
            publish_not_ready_addresses=True,
            ports=[client.V1ServicePort(name="rendezvous", port=RENDEZVOUS_PORT)],
        ),
    )


def _failure_policy() -> client.V1PodFailurePolicy:
    """Bad data fail the Job at once; pods that the cluster takes away do not count."""
    return client.V1PodFailurePolicy(
        rules=[
            client.V1PodFailurePolicyRule(
                action="FailJob",
                on_exit_codes=client.V1PodFailurePolicyOnExitCodesRequirement(
                    container_name=CONTAINER, operator="In", values=[BAD_INPUT]
                ),
                # Empty is as good as absent, and the schema of older clusters demands the key.
                on_pod_conditions=[],
            ),
            client.V1PodFailurePolicyRule(
                action="Ignore",
                on_pod_conditions=[
                    client.V1PodFailurePolicyOnPodConditionsPattern(
                        type="DisruptionTarget", status="True"
                    )
                ],
            ),
        ]
    )
