"""The pod of a training job: hardened, with room, volumes and Secrets as its settings say.

Nothing of it may write but the mounted volumes and two folders of the pod's own; no token of the
cluster is in it; it never runs as root.
"""

from __future__ import annotations

from kubernetes import client

from training.jobs.errors import JobSpecError
from training.jobs.names import object_name
from training.jobs.pod_settings import PodSettings
from training.jobs.spec import JobSpec

CONTAINER = "train"
RUN_ID_LABEL = "rancast/run-id"
DIGEST_ANNOTATION = "rancast/spec-digest"
OURS = {
    "app.kubernetes.io/name": "rancast",
    "app.kubernetes.io/component": "training",
    "app.kubernetes.io/managed-by": "rancast",
}
"""Labels of everything that a submit makes; by them jobs are found again."""

GRACE_SECONDS = 60
"""Between asking a pod to end and ending it: torchrun gives its own processes 30."""

GPU = "nvidia.com/gpu"
_FOLDER = "/tmp"


def settings_of(spec: JobSpec) -> PodSettings:
    """The settings of a job's pods.

    Raises:
        JobSpecError: It has none, or has what only a local job can have.
    """
    if spec.pod is None:
        raise JobSpecError("expected an image to run the job from (--image), got none")
    if spec.directory is not None:
        raise JobSpecError("expected no working directory of a job in a cluster")
    return spec.pod


def labels(spec: JobSpec) -> dict[str, str]:
    """Labels of a job's objects and pods: the user's, and those by which they are found again."""
    return {**dict(settings_of(spec).labels), **OURS, RUN_ID_LABEL: spec.run_id}


def notes(spec: JobSpec) -> dict[str, str]:
    """Annotations of a job's objects and pods that its user gave."""
    return dict(settings_of(spec).annotations)


def metadata(spec: JobSpec) -> client.V1ObjectMeta:
    """Name, labels, annotations and digest of a job's objects."""
    return client.V1ObjectMeta(
        name=object_name(spec.run_id),
        labels=labels(spec),
        annotations={**notes(spec), DIGEST_ANNOTATION: spec.digest},
    )


def environment(spec: JobSpec) -> list[client.V1EnvVar]:
    """Variables of the process; libraries keep their files in the pod's own folder."""
    own = {
        "HOME": _FOLDER,
        "TORCHINDUCTOR_CACHE_DIR": f"{_FOLDER}/inductor",
        "RANCAST_CACHE_DIR": f"{_FOLDER}/rancast",
    }
    return [
        client.V1EnvVar(name=name, value=as_is(value))
        for name, value in {**own, **dict(spec.environment)}.items()
    ]


def as_is(text: str) -> str:
    """An argument or a value as the kubelet has to be given it, so that it means what it says.

    The kubelet would put variables where it reads $(NAME), and one dollar where it reads two.
    """
    return text.replace("$", "$$")


def resources(settings: PodSettings) -> client.V1ResourceRequirements:
    """What a pod is given: exactly what it asks for, so that no neighbour can take it away."""
    amounts = {"cpu": settings.cpu, "memory": settings.memory}
    if settings.gpus:
        amounts[GPU] = str(settings.gpus)
    if settings.scratch is not None:
        amounts["ephemeral-storage"] = settings.scratch
    return client.V1ResourceRequirements(requests=amounts, limits=dict(amounts))


def volumes(spec: JobSpec) -> tuple[list[client.V1Volume], list[client.V1VolumeMount]]:
    """Volumes of a pod and where they are mounted."""
    settings = settings_of(spec)
    found = [client.V1Volume(name="own", empty_dir=client.V1EmptyDirVolumeSource())]
    places = [client.V1VolumeMount(name="own", mount_path=_FOLDER)]
    if spec.processes > 1 or settings.gpus:
        # Processes of one node hand tensors over in memory, and the default is 64 MiB.
        memory = client.V1EmptyDirVolumeSource(medium="Memory")
        found.append(client.V1Volume(name="memory", empty_dir=memory))
        places.append(client.V1VolumeMount(name="memory", mount_path="/dev/shm"))
    names: dict[str, str] = {}
    for mount in settings.mounts:
        if mount.claim not in names:
            names[mount.claim] = f"claim-{len(names)}"
            claim = client.V1PersistentVolumeClaimVolumeSource(claim_name=mount.claim)
            volume = client.V1Volume(name=names[mount.claim], persistent_volume_claim=claim)
            found.append(volume)
        places.append(
            client.V1VolumeMount(
                name=names[mount.claim], mount_path=mount.path, read_only=mount.read_only
            )
        )
    return found, places


def pod_security(settings: PodSettings) -> client.V1PodSecurityContext:
    """What the pod may be: no root, the kernel calls of the runtime's profile."""
    return client.V1PodSecurityContext(
        run_as_non_root=True,
        run_as_user=settings.user_id,
        run_as_group=settings.user_id,
        fs_group=settings.user_id,
        # Changing the owner of every file of a large volume at each start would take minutes.
        fs_group_change_policy="OnRootMismatch",
        seccomp_profile=client.V1SeccompProfile(type="RuntimeDefault"),
    )


def container_security() -> client.V1SecurityContext:
    """What the process may do: nothing that needs a capability, and no writing to the image."""
    return client.V1SecurityContext(
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=client.V1Capabilities(drop=["ALL"]),
    )


def tolerations(settings: PodSettings) -> list[client.V1Toleration] | None:
    """Taints that the node may bear."""
    return [
        client.V1Toleration(
            key=each.key,
            operator="Exists" if each.value is None else "Equal",
            value=each.value,
            effect=each.effect,
        )
        for each in settings.tolerations
    ] or None


def pod_template(
    spec: JobSpec, command: list[str], *, subdomain: str | None = None
) -> client.V1PodTemplateSpec:
    """The pods of a job.

    Args:
        spec: The job.
        command: What its container runs.
        subdomain: Service that gives pods names of their own; None where none has to.

    Raises:
        JobSpecError: The job is none for a cluster.
    """
    settings = settings_of(spec)
    found, places = volumes(spec)
    secrets = [
        client.V1EnvFromSource(secret_ref=client.V1SecretEnvSource(name=name))
        for name in settings.secrets
    ]
    container = client.V1Container(
        name=CONTAINER,
        image=settings.image,
        image_pull_policy=settings.image_pull_policy,
        command=[as_is(each) for each in command],
        env=environment(spec),
        env_from=secrets or None,
        resources=resources(settings),
        volume_mounts=places,
        security_context=container_security(),
        # The end of the log becomes the pod's own word of why it failed, and outlives the log.
        termination_message_policy="FallbackToLogsOnError",
    )
    return client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels(spec), annotations=notes(spec) or None),
        spec=client.V1PodSpec(
            restart_policy="Never",
            termination_grace_period_seconds=GRACE_SECONDS,
            automount_service_account_token=False,
            enable_service_links=False,
            service_account_name=settings.service_account,
            image_pull_secrets=[
                client.V1LocalObjectReference(name=name) for name in settings.image_pull_secrets
            ]
            or None,
            security_context=pod_security(settings),
            node_selector=dict(settings.node_selector) or None,
            tolerations=tolerations(settings),
            subdomain=subdomain,
            volumes=found,
            containers=[container],
        ),
    )
