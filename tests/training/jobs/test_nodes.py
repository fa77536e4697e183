"""Nodes of one job start again together, whichever of them failed or went away.

Each node is a torchrun of this machine with the command line of a job's pod; in the place of
rancast it runs a module that only adds figures up, until it is told to end.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from training.jobs.program import RENDEZVOUS_PORT, on_many_nodes, told_by_environment
from training.jobs.spec import JobSpec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent"),
]

SPEC = JobSpec("one", ("x",), nodes=2, retries=1)
SECONDS = 120

WORKER = """
import os, sys
from pathlib import Path
import torch
from training.team import joined_team

folder = Path(os.environ["FOLDER"])
with joined_team() as team:
    print("joined", flush=True)
    rounds = 0
    while team.add_up(torch.tensor(float((folder / "end").exists()))) == 0:
        rounds += 1
        if os.environ.get("FAILS") and rounds == 5 and not (folder / "failed").exists():
            (folder / "failed").touch()
            raise OSError("no space left on device")
    print("done", flush=True)
"""

Start = Callable[..., "subprocess.Popen[str]"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a node; all are ended with the test."""
    (tmp_path / "rancast.py").write_text(WORKER)
    nodes = []

    def start(command: list[str], **variables: str) -> subprocess.Popen[str]:
        path = f"{tmp_path}{os.pathsep}{REPOSITORY}"
        stated = {"PYTHONPATH": path, "FOLDER": str(tmp_path), "GLOO_SOCKET_IFNAME": "lo"}
        nodes.append(
            subprocess.Popen(
                command,
                env={**os.environ, **stated, **variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
        return nodes[-1]

    yield start
    for node in nodes:
        node.kill()
        node.communicate()


def joins(node: subprocess.Popen[str]) -> None:
    assert node.stdout is not None
    assert node.stdout.readline() == "joined\n"


def ends_well(*nodes: subprocess.Popen[str]) -> None:
    for node in nodes:
        assert node.communicate(timeout=SECONDS)[0].endswith("done\n")
        assert node.returncode == 0


@pytest.fixture
def pods(start: Start) -> Callable[..., subprocess.Popen[str]]:
    """Starts the pod of an index of one Indexed Job."""
    port = free_port()
    words = on_many_nodes(sys.executable, SPEC, "127.0.0.1")
    command = [word.replace(f":{RENDEZVOUS_PORT}", f":{port}") for word in words]

    def pod(index: int, **variables: str) -> subprocess.Popen[str]:
        return start(command, JOB_COMPLETION_INDEX=str(index), **variables)

    return pod


@pytest.mark.timeout(300)
def test_a_process_that_fails_once_is_started_again_with_the_others(pods, tmp_path) -> None:
    nodes = pods(0), pods(1, FAILS="yes")
    for node in (*nodes, *nodes):
        joins(node)
    (tmp_path / "end").touch()
    ends_well(*nodes)


@pytest.mark.timeout(300)
def test_nodes_that_a_trainer_brings_together_are_started_again_too(start, tmp_path) -> None:
    told = {"PET_NNODES": "2", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(free_port())}
    command = told_by_environment(sys.executable, SPEC)
    nodes = (
        start(command, **told, PET_NODE_RANK="0"),
        start(command, **told, PET_NODE_RANK="1", FAILS="yes"),
    )
    for node in (*nodes, *nodes):
        joins(node)
    (tmp_path / "end").touch()
    ends_well(*nodes)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_pod_that_is_replaced_joins_the_others_again(pods, tmp_path, number) -> None:
    first, second = pods(0), pods(1)
    for node in (first, second):
        joins(node)
    second.send_signal(number)
    second.communicate(timeout=SECONDS)
    third = pods(1)
    for node in (first, third):
        joins(node)
    (tmp_path / "end").touch()
    ends_well(first, third)
