"""The claim on which training leaves its checkpoints in a test cluster."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.api import at
from tests.cluster.cluster import Cluster

MODELS = "models"


def make_models_claim(cluster: Cluster, namespace: str) -> None:
    """Make a claim that several pods may write to."""
    claim = {
        "metadata": {"name": MODELS},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster.api.create(at("v1", "persistentvolumeclaims", namespace), claim)


def models_folder(cluster: Cluster, namespace: str) -> Path:
    """Its folder on this machine, once a pod has used it."""
    claim = cluster.api.get(at("v1", "persistentvolumeclaims", namespace, MODELS))
    volume = cluster.api.get(at("v1", "persistentvolumes", name=claim["spec"]["volumeName"]))
    return Path(volume["spec"]["hostPath"]["path"])
