"""Ten thousand connections that say nothing: others are answered, memory is bounded, all end."""

from __future__ import annotations

import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from service.descriptors import OWN_DESCRIPTORS
from tests.e2e.service_process import Service, running
from tests.service.fakes import forecast_request

CONNECTIONS = 10_000
# A connection is an object of the protocol, its parser, a transport and a timer.
MOST_BYTES_EACH = 20_000


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Lets this process, and those that it starts, have a file descriptor for each connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + 2 * OWN_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"needs {needed} open files (ulimit -Hn), and {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_bytes(service: Service) -> int:
    status = Path(f"/proc/{service.process.pid}/status")
    if not status.exists():
        pytest.skip("memory of a process is read from /proc")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
    assert found is not None
    return 1024 * int(found[1])


def open_sockets(service: Service) -> int:
    """Sockets of the process; the system is asked, so that no counter of ours can be wrong."""
    count = 0
    for descriptor in Path(f"/proc/{service.process.pid}/fd").iterdir():
        try:
            count += descriptor.readlink().name.startswith("socket:")
        except FileNotFoundError:
            continue
    return count


def is_answered(client: httpx.Client) -> bool:
    answer = client.post("/v1/forecast", json=forecast_request(budget_ms=30_000))
    return answer.status_code == 200


@pytest.mark.stress
def test_ten_thousand_idle_connections_hinder_nobody_and_are_let_go() -> None:
    with (
        many_descriptors(),
        running(
            RANCAST_PROFILE="non-rt",
            RANCAST_ACCESS_LOG="false",
            # Long enough to open them all on a busy machine; the silence is ended by it.
            RANCAST_HEAD_SECONDS="20",
        ) as service,
        httpx.Client(base_url=service.address, timeout=60) as client,
        ExitStack() as stack,
    ):
        assert is_answered(client)
        begun_bytes, begun_sockets = resident_bytes(service), open_sockets(service)
        host, port = service.address.removeprefix("http://").split(":")
        idle = []
        for number in range(CONNECTIONS):
            idle.append(stack.enter_context(socket.create_connection((host, int(port)), 60)))
            if number % 1_000 == 0:
                # Others are heard while they come, and the queue of the listener is emptied.
                assert is_answered(client)
        assert is_answered(client)
        held = open_sockets(service) - begun_sockets
        grown_bytes = resident_bytes(service) - begun_bytes
        assert grown_bytes < CONNECTIONS * MOST_BYTES_EACH
        for one in idle:
            assert one.recv(1) == b""  # blocks until the service lets it go
        assert open_sockets(service) <= begun_sockets
        assert is_answered(client)
        metrics = client.get("/metrics").text
        assert f'rancast_connections_closed_total{{reason="slow"}} {CONNECTIONS}.0' in metrics
        # All at a time, unless the machine was too slow to open them within their patience.
        assert held <= CONNECTIONS
        if held < CONNECTIONS:
            pytest.skip(f"only {held} were open at a time, for this machine is too slow")
