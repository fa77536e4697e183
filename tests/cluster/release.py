"""A release of the chart in a real cluster, made with one helm."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.api import Object, at, wait_for
from tests.cluster.cluster import Cluster
from tests.cluster.images import REPOSITORY

CHART = REPOSITORY / "helm" / "rancast"
# Starting torch may take a minute on a machine that has more to do.
_WAIT = "180s"


def find_helm(name: str) -> str | None:
    """A helm beside the Python that runs the tests, where `make tools` puts it, or on PATH."""
    beside_python = Path(sys.executable).parent / name
    return str(beside_python) if beside_python.exists() else shutil.which(name)


def copy_chart(target: Path, *, for_old_server: bool) -> Path:
    """Copy the chart.

    Args:
        target: Folder to make.
        for_old_server: Whether to leave out the oldest Kubernetes that it is meant for, which is
            newer than what the tests can build.
    """
    shutil.copytree(CHART, target)
    if for_old_server:
        about = target / "Chart.yaml"
        text = about.read_text(encoding="utf-8")
        about.write_text(re.sub(r"^kubeVersion:.*\n", "", text, flags=re.M), encoding="utf-8")
    return target


@dataclass(frozen=True)
class Release:
    """A release.

    Attributes:
        cluster: Where it is.
        helm: The binary that makes it.
        chart: Folder of the chart.
        namespace: Of all its objects.
        name: Its own.
        home: Folder for what helm keeps.
    """

    cluster: Cluster
    helm: str
    chart: Path
    namespace: str
    name: str
    home: Path

    def run(self, *arguments: str, values: Object | None = None) -> str:
        """Run helm, which has to succeed; what it printed."""
        answer = self.try_run(*arguments, values=values)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def try_run(
        self, *arguments: str, values: Object | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run helm and return what it said, whatever its exit status."""
        given = ("--values", "-") if values is not None else ()
        place = ("--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace)
        return subprocess.run(
            [self.helm, *arguments, *place, *given],
            input=json.dumps(values or {}),
            env={
                **{name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
                "HELM_CACHE_HOME": str(self.home / "cache"),
                "HELM_CONFIG_HOME": str(self.home / "config"),
                "HELM_DATA_HOME": str(self.home / "data"),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def install(self, values: Object, *, wait: bool = True) -> None:
        """Install it; by default until helm holds it to be ready."""
        self.run("install", self.name, str(self.chart), *self._patience(wait), values=values)

    def upgrade(self, values: Object, *, wait: bool = True) -> None:
        """Upgrade it."""
        self.run("upgrade", self.name, str(self.chart), *self._patience(wait), values=values)

    def uninstall(self) -> None:
        """Remove it."""
        self.run("uninstall", self.name)

    @staticmethod
    def _patience(wait: bool) -> tuple[str, ...]:
        return ("--wait", "--timeout", _WAIT) if wait else ()

    @property
    def selector(self) -> str:
        """Label selector of all its objects."""
        return f"app.kubernetes.io/instance={self.name}"

    def objects(self, group: str, kind: str) -> list[Object]:
        """Its objects of a kind."""
        path = at(group, kind, self.namespace)
        return self.cluster.api.list(path, labelSelector=self.selector)

    def pods(self) -> list[Object]:
        """Its pods that are not about to go."""
        return [
            pod for pod in self.objects("v1", "pods") if "deletionTimestamp" not in pod["metadata"]
        ]

    def pod(self) -> Object:
        """Its only pod, once there is but one and it is ready."""

        def only() -> Object | None:
            pods = self.pods()
            return pods[0] if len(pods) == 1 and is_ready(pods[0]) else None

        return wait_for(f"single ready pod of {self.name}", only, 180)

    def address(self) -> str:
        """Base URL of its only pod."""
        pod = self.pod()
        host = self.cluster.process_node().address(self.namespace, pod["metadata"]["name"])
        (port,) = (
            each["containerPort"]
            for each in pod["spec"]["containers"][0]["ports"]
            if each["name"] == "http"
        )
        return f"http://{host}:{port}"


def is_ready(pod: Object) -> bool:
    """Whether a pod is ready."""
    conditions: list[dict[str, Any]] = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
