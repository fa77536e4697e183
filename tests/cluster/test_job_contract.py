"""What every training backend has to do, done by Kubernetes itself: the server, its job controller.

Pods run the contract's stand-in for the trainer on the test cluster's node. Its release knows
neither Indexed Jobs nor podFailurePolicy, so bad data are tried as often as any other failure.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.training.jobs.contract import BackendContract, Site
from tests.training.jobs.stand_in_python import write_stand_in_python
from training.jobs.cluster.connection import connect
from training.jobs.cluster.kubernetes import KubernetesBackend
from training.jobs.pod_settings import PodSettings
from training.jobs.spec import JobSpec

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of a test that pods see as well: the usual one is theirs alone."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


class TestKubernetesItself(BackendContract):
    @pytest.fixture
    def site(self, cluster: Cluster, tmp_path: Path) -> Site:
        cluster.process_node()
        namespace = cluster.namespace()
        pod = PodSettings(
            "registry.example/rancast:1", python=str(write_stand_in_python(tmp_path / "python"))
        )

        def open_backend() -> KubernetesBackend:
            return KubernetesBackend(
                connect(cluster.kubeconfig, namespace=namespace), poll_seconds=0.3
            )

        return Site(
            open_backend,
            replace(JobSpec("one", ("train", "1")), retries=0, pod=pod),
            bad_data_is_final=False,
            poll_seconds=0.3,
        )
