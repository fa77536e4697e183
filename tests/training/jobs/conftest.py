"""A Python that runs the stand-in for the trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs.stand_in_python import write_stand_in_python
from training.jobs.pod_settings import PodSettings
from training.jobs.spec import JobSpec


@pytest.fixture
def stand_in_python(tmp_path: Path) -> str:
    """An executable to be used as a job's Python: whatever it is told to run, it runs that."""
    return str(write_stand_in_python(tmp_path / "python"))


@pytest.fixture
def api() -> Iterator[Any]:
    """A double of an API server."""
    from tests.training.jobs.api_double import ApiDouble

    double = ApiDouble()
    yield double
    double.close()


@pytest.fixture
def cluster(api: Any) -> Iterator[Any]:
    """A double of a cluster that runs the pods of the server."""
    from tests.training.jobs.cluster_double import ClusterDouble

    double = ClusterDouble(api)
    yield double
    double.close()


@pytest.fixture
def connected(cluster: Any, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Makes connections to the double, each as a process of its own would."""
    from training.jobs.cluster.connection import Cluster, connect

    made: list[Cluster] = []

    def connection(**options: Any) -> Cluster:
        made.append(connect(cluster.api.write_kubeconfig(tmp_path / "kubeconfig"), **options))
        return made[-1]

    yield connection
    for each in made:
        each.api.rest_client.pool_manager.clear()


@pytest.fixture
def pod_job(stand_in_python: str) -> JobSpec:
    """A job of a cluster that runs the stand-in."""
    pod = PodSettings("registry.example/rancast:1", python=stand_in_python)
    return JobSpec("one", ("train", "1"), retries=0, pod=pod)
