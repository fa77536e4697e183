"""A node of a Kubernetes cluster that runs the commands of pods as processes of this machine.

Needs no container runtime and no privileges. Pods go through their real states, as the API server,
the controllers and the scheduler see them. It knows: init containers, restart policies, commands
and arguments with their variables, `env` and `envFrom` with fields, resources, config maps and
secrets, volumes (`emptyDir`, claims, config maps, secrets, `downwardAPI`, `projected`, `hostPath`),
probes, `preStop` commands, grace, deadlines of pods, termination messages, and logs with every
option of the API. Faults can be put in: an image that cannot be pulled, memory that runs out, an
eviction.

What it is not:

* There are no images. A container of the service's image runs the `rancast` of this source tree,
  beside the Python that runs the tests, in the environment that the Dockerfile states; any other
  container has to state a command that this machine has.
* Nothing is isolated: a process runs as the user of the tests, sees all files, and may exceed its
  limits. `securityContext`, requests and limits, and `readOnly` of mounts are not acted upon.
* Paths of mounts are real folders elsewhere, and are replaced in commands, arguments and variables.
  A path that is built into a program, such as that of the service account's token, is not.
* A pod has an address of the loopback network of its own, 127.x.y.z, which takes the place of
  0.0.0.0 where the pod is told to listen everywhere. The API shows 10.x.y.z, since endpoints may
  not be loopback ones. Services and their names lead nowhere, and pods get no variables of them.
* Probes look ten times as often as stated. There is no `exec`, `attach` and `port-forward`, and
  volumes do not follow changes of what they were made of.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.cluster.api import Api, ApiError, Object, at
from tests.cluster.control_plane import Certificate
from tests.cluster.kubelet_logs import LogServer
from tests.cluster.pod_container import now
from tests.cluster.pod_runner import Images, PodRunner
from tests.cluster.provisioner import Provisioner

NAME = "process-node"
# Lists instead of watching: that of one node takes 2 ms, and nothing can be missed.
_LOOK_SECONDS = 0.2
_HEARTBEAT_SECONDS = 10.0
_STOP_SECONDS = 10.0
_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "200", "ephemeral-storage": "512Gi"}


@dataclass
class _Known:
    """A pod that this node has begun."""

    runner: PodRunner
    stopping: bool = False


class ProcessKubelet:
    """The node.

    Attributes:
        images: What it knows of images; `missing` may be changed at any time.
    """

    def __init__(self, api: Api, certificate: Certificate, folder: Path, images: Images) -> None:
        self.images = images
        self._api = api
        self._folder = folder
        self._pods: dict[str, _Known] = {}
        self._logs = LogServer(certificate.server_context(), self.find)
        self._provisioner = Provisioner(api, folder / "claims")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True, name=NAME)
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Register the node and begin to run its pods."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._logs.start()
        self._provisioner.register()
        labels = {
            "kubernetes.io/hostname": NAME,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        self._api.create(at("v1", "nodes"), {"metadata": {"name": NAME, "labels": labels}})
        self._heartbeat()
        # New nodes are marked as not ready; the controller that would take the mark off is left
        # out of this cluster.
        self._api.merge(at("v1", "nodes", name=NAME), {"spec": {"taints": None}})
        self._thread.start()

    def stop(self) -> None:
        """End all pods' processes and the node."""
        self._stop.set()
        self._thread.join(_STOP_SECONDS)
        for known in self._pods.values():
            known.runner.stop(0)
        for known in self._pods.values():
            known.runner.join(_STOP_SECONDS)
        self._logs.stop()

    def find(self, namespace: str, pod: str) -> PodRunner | None:
        """A pod that runs here or has run here and was not deleted, the newest of its name."""
        for known in reversed(list(self._pods.values())):
            if (known.runner.namespace, known.runner.name) == (namespace, pod):
                return known.runner
        return None

    def address(self, namespace: str, pod: str) -> str:
        """Loopback address at which the ports of a pod are.

        Raises:
            KeyError: It does not run here.
        """
        return self._runner(namespace, pod).address

    def evict(self, namespace: str, pod: str, message: str) -> None:
        """End a pod as a node does that lacks a resource.

        Raises:
            KeyError: It does not run here.
        """
        self._runner(namespace, pod).evict(message)

    def run_out_of_memory(self, namespace: str, pod: str, container: str | None = None) -> None:
        """Kill a container of a pod, its first where none is named, as the kernel does.

        Raises:
            KeyError: It does not run here.
        """
        self._runner(namespace, pod).run_out_of_memory(container)

    def logs(self, lines: int = 15) -> str:
        """The last lines of each container of the pods that are here now."""
        told = []
        for known in list(self._pods.values()):
            for container in known.runner.containers:
                if container.log().exists():
                    text = container.log().read_text(encoding="utf-8", errors="replace")
                    head = f"== {known.runner.namespace}/{known.runner.name} {container.name}"
                    told.append("\n".join([head, *text.splitlines()[-lines:]]))
        return "\n".join(told)

    def _runner(self, namespace: str, pod: str) -> PodRunner:
        found = self.find(namespace, pod)
        if found is None:
            raise KeyError(f"expected a pod {namespace}/{pod} on this node, there is none")
        return found

    def _live(self) -> None:
        beaten = time.monotonic()
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                if time.monotonic() - beaten > _HEARTBEAT_SECONDS:
                    beaten = time.monotonic()
                    self._heartbeat()
                self._provisioner.step()
                self._look()
            except (httpx.HTTPError, ApiError) as error:
                sys.stderr.write(f"{NAME}: {error}\n")

    def _heartbeat(self) -> None:
        status = {
            "capacity": _CAPACITY,
            "allocatable": _CAPACITY,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": "localhost"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.port}},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "processes can be run",
                    "lastHeartbeatTime": now(),
                    "lastTransitionTime": now(),
                }
            ],
        }
        self._api.merge(at("v1", "nodes", name=f"{NAME}/status"), {"status": status})

    def _look(self) -> None:
        pods = self._api.list(at("v1", "pods"), fieldSelector=f"spec.nodeName={NAME}")
        for pod in pods:
            self._serve(pod)
        present = {pod["metadata"]["uid"] for pod in pods}
        # Those that were forced away.
        for uid in [uid for uid in self._pods if uid not in present]:
            self._pods[uid].runner.stop(0)
            if not self._pods[uid].runner.alive:
                del self._pods[uid]

    def _serve(self, pod: Object) -> None:
        metadata = pod["metadata"]
        known = self._pods.get(metadata["uid"])
        if "deletionTimestamp" in metadata:
            if known is not None and known.runner.alive:
                if not known.stopping:
                    known.runner.stop(float(metadata.get("deletionGracePeriodSeconds") or 0))
                    known.stopping = True
                return
            self._api.delete(
                at("v1", "pods", metadata["namespace"], metadata["name"]),
                gracePeriodSeconds=0,
                preconditions={"uid": metadata["uid"]},
            )
        elif known is None and pod["status"].get("phase") == "Pending":
            folder = self._folder / "pods" / metadata["uid"]
            runner = PodRunner(pod, self._api, self.images, folder, self._next_address())
            self._pods[metadata["uid"]] = _Known(runner)
            runner.start()

    def _next_address(self) -> str:
        """One that no other pod has, nor is likely to have one of another run of the tests."""
        high, low = divmod(next(self._numbers), 250)
        return f"127.{1 + os.getpid() % 250}.{high % 256}.{1 + low}"
