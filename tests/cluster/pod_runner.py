"""The life of one pod on this machine, in a thread of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.cluster.api import Api, ApiError, Object, at
from tests.cluster.images import REPOSITORY, UNKNOWN, Image
from tests.cluster.pod_container import Container, Program, now
from tests.cluster.pod_environment import Places, PodWaitsError, References, expand
from tests.cluster.pod_volumes import make_volumes
from tests.cluster.probes import Probes, Target

_LOOK_SECONDS = 0.05
# Of this process's variables, those that say how programs run here; no setting is among them.
_INHERITED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "TMPDIR", "TZ")


@dataclass
class Images:
    """What the node knows of images.

    Attributes:
        known: By the name of the image, without registry, tag and digest.
        missing: Images, as pods name them, that cannot be pulled.
    """

    known: Mapping[str, Image] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def find(self, name: str) -> Image:
        """The image that a container names."""
        last = name.partition("@")[0].rpartition("/")[2].partition(":")[0]
        return self.known.get(last, UNKNOWN)


class _EndedError(Exception):
    """The pod is not to go on."""


class PodRunner:
    """Runs a pod until it ends or is told to.

    Attributes:
        containers: All of them, the first ones first.
    """

    def __init__(self, pod: Object, api: Api, images: Images, folder: Path, address: str) -> None:
        spec = pod["spec"]
        self._pod = pod
        self._api = api
        self._images = images
        self._folder = folder
        self._address = address
        self._references = References(api, pod, address)
        logs = folder / "logs"
        logs.mkdir(parents=True)
        self._first = [Container(each, logs) for each in spec.get("initContainers") or []]
        self._main = [Container(each, logs) for each in spec["containers"]]
        self._volumes: dict[str, Path] = {}
        self._probes: dict[str, Probes] = {}
        self._started_at = now()
        self._begun = time.monotonic()
        self._told: Object = {}
        self._stop = threading.Event()
        self._grace_s = float(spec.get("terminationGracePeriodSeconds") or 30)
        self._end: tuple[str, str] | None = None
        self._thread = threading.Thread(target=self._live, daemon=True, name=self.name)

    @property
    def name(self) -> str:
        """Of the pod."""
        return str(self._pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Of the pod."""
        return str(self._pod["metadata"]["namespace"])

    @property
    def address(self) -> str:
        """Loopback address at which its ports are."""
        return self._address

    @property
    def containers(self) -> list[Container]:
        """All containers."""
        return [*self._first, *self._main]

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, grace_s: float) -> None:
        """Ask its processes to end, and kill them where they have not after `grace_s`."""
        self._grace_s = min(self._grace_s, grace_s)
        self._stop.set()

    def evict(self, message: str) -> None:
        """End it as a node does that lacks a resource."""
        self._end = "Evicted", message
        self._grace_s = 0
        self._stop.set()

    def run_out_of_memory(self, container: str | None) -> None:
        """Kill a container, the first one where none is named, as the kernel does."""
        for each in self._main:
            if container in (None, each.name):
                each.fault = "OOMKilled"
                each.send(signal.SIGKILL)
                return

    def join(self, seconds: float) -> None:
        """Wait for its end."""
        self._thread.join(seconds)

    def _live(self) -> None:
        try:
            self._prepare()
            for container in self._first:
                self._run_first(container)
            self._run_main()
        except _EndedError:
            self._kill()
        # The server may be gone before its node is, at the end of all tests.
        except (httpx.HTTPError, ApiError) as error:
            self._kill()
            sys.stderr.write(f"pod {self.namespace}/{self.name}: {error}\n")

    def _check(self) -> None:
        """Wait a moment.

        Raises:
            _EndedError: The pod was stopped, or has taken longer than it may.
        """
        deadline = self._pod["spec"].get("activeDeadlineSeconds")
        if deadline is not None and time.monotonic() - self._begun > deadline:
            self._end = "DeadlineExceeded", "Pod was active on the node longer than the deadline"
            self._stop.set()
        if self._stop.wait(_LOOK_SECONDS):
            raise _EndedError

    def _retry(self, step: Callable[[], None], containers: Iterable[Container]) -> None:
        """Repeat a step until what it needs is there, and tell what that is."""
        while True:
            try:
                step()
            except PodWaitsError as error:
                for each in containers:
                    each.wait_because(error.reason, str(error))
                self._tell("Pending")
                self._check()
            else:
                return

    def _prepare(self) -> None:
        self._tell("Pending")
        for container in self.containers:
            self._retry(lambda each=container: self._pull(each), [container])  # type: ignore[misc]
        self._retry(self._mount, self.containers)

    def _pull(self, container: Container) -> None:
        name = container.spec["image"]
        if name in self._images.missing:
            raise PodWaitsError("ImagePullBackOff", f'Back-off pulling image "{name}"')

    def _mount(self) -> None:
        self._volumes = make_volumes(self._pod, self._folder, self._references)

    def _run_first(self, container: Container) -> None:
        never = self._pod["spec"].get("restartPolicy") == "Never"
        while True:
            self._retry(lambda: self._start(container), [container])
            self._tell("Pending")
            while not container.poll():
                self._check()
            if container.exit_code == 0:
                container.ready = True
                return
            if never:
                self._tell("Failed")
                raise _EndedError
            self._pause(container)

    def _pause(self, container: Container) -> None:
        container.pause()
        self._tell("Pending")
        while not container.may_start_again:
            self._check()

    def _run_main(self) -> None:
        for container in self._main:
            self._retry(lambda each=container: self._start(each), [container])  # type: ignore[misc]
        self._tell("Running")
        while True:
            for container in self._main:
                self._step(container)
            codes = [each.exit_code for each in self._main if self._is_final(each)]
            if len(codes) == len(self._main):
                self._tell("Failed" if any(codes) else "Succeeded")
                return
            self._tell("Running")
            self._check()

    def _step(self, container: Container) -> None:
        if container.poll() and not self._is_final(container):
            container.pause()
        if container.running:
            probes = self._probes[container.name]
            if probes.step():
                container.started, container.ready = probes.started, probes.ready
                return
            self._terminate([container])
            container.pause()
        elif not self._is_final(container) and container.may_start_again:
            self._start(container)

    def _is_final(self, container: Container) -> bool:
        """Whether it has ended and will not be started again."""
        if container.running or container.exit_code is None:
            return False
        policy = self._pod["spec"].get("restartPolicy") or "Always"
        return policy == "Never" or (policy == "OnFailure" and container.exit_code == 0)

    def _start(self, container: Container) -> None:
        places, program = self._program(container.spec)
        target = Target(self._address, container.spec, program, places.rewrite)
        self._probes[container.name] = Probes(container.spec, target)
        container.start(program)

    def _program(self, spec: Object) -> tuple[Places, Program]:
        """What a container runs, in terms of this machine."""
        image = self._images.find(spec["image"])
        own = self._folder / "containers" / spec["name"]
        own.mkdir(parents=True, exist_ok=True)
        folders = {path: own / path.lstrip("/") for path in image.folders}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        for mount in spec.get("volumeMounts") or []:
            place = self._volumes[mount["name"]] / mount.get("subPath", "")
            if not place.exists():
                place.mkdir(parents=True)
            folders[mount["mountPath"]] = place
        message = own / "termination-log"
        folders[spec.get("terminationMessagePath") or "/dev/termination-log"] = message
        places = Places(folders, self._address)
        variables = self._references.environment(spec, image.environment)
        words = [places.rewrite(expand(word, variables)) for word in image.words(spec)]
        if not words:
            raise PodWaitsError("CreateContainerError", "no command specified")
        stated = {name: places.rewrite(value) for name, value in variables.items()}
        environment = {**self._own_variables(own), **stated}
        if "/tmp" in folders:
            environment.setdefault("TMPDIR", str(folders["/tmp"]))
        stated_directory = spec.get("workingDir")
        directory = Path(places.rewrite(stated_directory)) if stated_directory else own
        return places, Program(words, environment, directory, message)

    def _own_variables(self, home: Path) -> dict[str, str]:
        host, _, port = self._api.access.server.rpartition("//")[2].partition(":")
        beside_python = Path(sys.executable).parent
        return {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            # `rancast`, `python` and `torchrun` are those of the tests, and run these sources.
            "PATH": f"{beside_python}:{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(home),
            "HOSTNAME": self._pod["spec"].get("hostname") or self.name,
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
        }

    def _kill(self) -> None:
        """End what runs, and tell the last state."""
        self._terminate(self.containers)
        if self._end is not None:
            self._tell("Failed", reason=self._end[0], message=self._end[1])
        elif any(each.exit_code is not None for each in self._main):
            failed = any(each.exit_code for each in self._main)
            self._tell("Failed" if failed else "Succeeded")

    def _terminate(self, containers: list[Container]) -> None:
        """End containers: their hook, SIGTERM, and SIGKILL after the pod's grace."""
        end = time.monotonic() + self._grace_s
        running = [each for each in containers if each.running]
        for each in running:
            self._run_hook(each, end)
            each.send(signal.SIGTERM)
        while any(each.running for each in running):
            if time.monotonic() >= end:
                for each in running:
                    each.send(signal.SIGKILL)
            for each in running:
                each.poll()
            time.sleep(_LOOK_SECONDS)

    def _run_hook(self, container: Container, end: float) -> None:
        hook = ((container.spec.get("lifecycle") or {}).get("preStop") or {}).get("exec")
        left = end - time.monotonic()
        if not hook or left <= 0:
            return
        places, program = self._program(container.spec)
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [places.rewrite(word) for word in hook["command"]],
                env=dict(program.environment),
                cwd=program.directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=left,
            )

    def _tell(self, phase: str, **more: str) -> None:
        """Tell the API the state of the pod, where it has changed."""
        over = phase in {"Succeeded", "Failed"}
        finals = {id(each) for each in self._main if over or self._is_final(each)}
        ready = not over and all(each.ready for each in self._main)
        first = all(each.exit_code == 0 for each in self._first)
        status: Object = {
            "phase": phase,
            "startTime": self._started_at,
            "hostIP": "127.0.0.1",
            "podIP": self._cluster_ip_of_pod(),
            "podIPs": [{"ip": self._cluster_ip_of_pod()}],
            "conditions": [
                {"type": kind, "status": str(value), "lastTransitionTime": self._started_at}
                for kind, value in (
                    ("PodScheduled", True),
                    ("Initialized", first),
                    ("ContainersReady", ready),
                    ("Ready", ready),
                )
            ],
            "initContainerStatuses": [
                each.status(final=over or each.exit_code == 0) for each in self._first
            ],
            "containerStatuses": [each.status(final=id(each) in finals) for each in self._main],
            **more,
        }
        if status == self._told:
            return
        try:
            self._api.merge(
                at("v1", "pods", self.namespace, f"{self.name}/status"), {"status": status}
            )
        except ApiError as error:
            # Whoever forced the pod away has no use for its state.
            if error.status != 404:
                raise
        self._told = status

    def _cluster_ip_of_pod(self) -> str:
        """An address that may stand in the endpoints of a service, as a loopback one may not."""
        return "10." + self._address.partition(".")[2]
