"""Probes of a container: `httpGet`, `tcpSocket` and `exec`."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.cluster.api import Object
from tests.cluster.pod_container import Program

# Periods are cut to a tenth, so that tests need not wait for them.
HASTE = 0.1
# A machine that others use is slow, and no test is about a probe's own patience.
_SHORTEST_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Target:
    """What a probe looks at.

    Attributes:
        address: Of the pod.
        container: Whose ports are known by name.
        program: Whose environment commands run in.
        rewrite: Turns a word of the container into one of this machine.
    """

    address: str
    container: Object
    program: Program
    rewrite: Callable[[str], str]

    def port(self, stated: int | str) -> int:
        """A port by its number or name."""
        for each in self.container.get("ports") or []:
            if each.get("name") == stated:
                return int(each["containerPort"])
        return int(stated)


class Probe:
    """A probe and its answers so far.

    It passes once it has passed as often as it has to. It fails once it has failed for as long as
    the failures that it allows would take, at the periods that it states.
    """

    def __init__(self, spec: Object, target: Target) -> None:
        self._spec = spec
        self._target = target
        self._period_s = float(spec.get("periodSeconds") or 10)
        self._next = time.monotonic() + HASTE * float(spec.get("initialDelaySeconds") or 0)
        self._passes = 0
        self._failing_since: float | None = None
        self.passed: bool | None = None

    def step(self) -> None:
        """Look, where it is time to."""
        start = time.monotonic()
        if start < self._next:
            return
        self._next = start + HASTE * self._period_s
        if self._looks_well():
            self._failing_since = None
            self._passes += 1
            if self._passes >= int(self._spec.get("successThreshold") or 1):
                self.passed = True
            return
        self._passes = 0
        if self._failing_since is None:
            self._failing_since = start
        allowed = int(self._spec.get("failureThreshold") or 3) - 1
        if start - self._failing_since >= allowed * self._period_s:
            self.passed = False

    def _looks_well(self) -> bool:
        timeout = max(float(self._spec.get("timeoutSeconds") or 1), _SHORTEST_TIMEOUT_S)
        try:
            if "httpGet" in self._spec:
                return self._http(self._spec["httpGet"], timeout)
            if "tcpSocket" in self._spec:
                place = (self._target.address, self._target.port(self._spec["tcpSocket"]["port"]))
                with socket.create_connection(place, timeout):
                    return True
            words = [self._target.rewrite(word) for word in self._spec["exec"]["command"]]
            answer = subprocess.run(
                words,
                env=dict(self._target.program.environment),
                cwd=self._target.program.directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=timeout,
            )
        except (OSError, http.client.HTTPException, subprocess.TimeoutExpired):
            return False
        return answer.returncode == 0

    def _http(self, spec: Object, timeout: float) -> bool:
        place = spec.get("host") or self._target.address, self._target.port(spec["port"])
        connection: http.client.HTTPConnection
        if spec.get("scheme") == "HTTPS":
            # A kubelet does not check it either.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection(*place, timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection(*place, timeout=timeout)
        headers = {each["name"]: each["value"] for each in spec.get("httpHeaders") or []}
        try:
            connection.request("GET", spec.get("path") or "/", headers=headers)
            return 200 <= connection.getresponse().status < 400
        finally:
            connection.close()


class Probes:
    """The three probes of a container; the other two wait for the first one."""

    def __init__(self, spec: Object, target: Target) -> None:
        def made(kind: str) -> Probe | None:
            return Probe(spec[kind], target) if spec.get(kind) else None

        self._startup = made("startupProbe")
        self._liveness = made("livenessProbe")
        self._readiness = made("readinessProbe")

    @property
    def started(self) -> bool:
        """Whether the container has started."""
        return self._startup is None or self._startup.passed is True

    @property
    def ready(self) -> bool:
        """Whether it may be given work."""
        return self.started and (self._readiness is None or self._readiness.passed is True)

    def step(self) -> bool:
        """Look where it is time to; whether the container may go on."""
        if not self.started:
            assert self._startup is not None
            self._startup.step()
            return self._startup.passed is not False
        for probe in (self._readiness, self._liveness):
            if probe is not None:
                probe.step()
        return self._liveness is None or self._liveness.passed is not False
