"""Which backend is meant, made when it is needed: a cluster's client takes a while to load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from training.jobs.backend import TrainingBackend
from training.jobs.errors import BackendError, JobSpecError

if TYPE_CHECKING:
    from training.jobs.cluster.backend import ClusterBackend

LOCAL, KUBERNETES, TRAINJOB = "local", "kubernetes", "trainjob"
BACKENDS = (LOCAL, KUBERNETES, TRAINJOB)


@dataclass(frozen=True)
class BackendChoice:
    """Where jobs are to run.

    Attributes:
        name: One of `BACKENDS`.
        folder: Where local jobs are kept; None for the user's usual place.
        kubeconfig: File with the way to a cluster; None for the usual ones.
        context: Which one of that file.
        namespace: Namespace of the cluster.
        runtime: ClusterTrainingRuntime of TrainJobs; None for Trainer's own for torch.
    """

    name: str = LOCAL
    folder: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    runtime: str | None = None

    def __post_init__(self) -> None:
        if self.name not in BACKENDS:
            raise JobSpecError(f"expected a backend of {', '.join(BACKENDS)}, got {self.name!r}")


def open_backend(choice: BackendChoice) -> TrainingBackend:
    """The backend that is meant.

    Raises:
        BackendError: There is no way to it, or what it takes is not installed.
    """
    if choice.name == LOCAL:
        from training.jobs.local.backend import LocalBackend

        return LocalBackend(choice.folder or usual_folder(os.environ))
    return open_cluster_backend(choice)


def open_cluster_backend(choice: BackendChoice, *, offline: bool = False) -> ClusterBackend:
    """The backend of a cluster.

    Args:
        choice: What is meant.
        offline: Reach no cluster: for showing what would be made there.

    Raises:
        BackendError: There is no way to it, or the client is not installed.
    """
    try:
        from training.jobs.cluster.connection import Cluster, connect
        from training.jobs.cluster.kubernetes import KubernetesBackend
        from training.jobs.cluster.trainjob import RUNTIME, TrainJobBackend
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "kubernetes":
            raise
        raise BackendError(
            "expected the client of Kubernetes; install it: pip install 'rancast[kubernetes]'"
        ) from error
    if offline:
        from kubernetes import client

        cluster = Cluster(client.ApiClient(client.Configuration()), choice.namespace or "default")
    else:
        cluster = connect(choice.kubeconfig, choice.context, choice.namespace)
    if choice.name == TRAINJOB:
        return TrainJobBackend(cluster, runtime=choice.runtime or RUNTIME)
    return KubernetesBackend(cluster)


def usual_folder(environment: Mapping[str, str]) -> Path:
    """Where a user's local jobs are kept: the XDG base directory for state."""
    state = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "rancast" / "jobs"
