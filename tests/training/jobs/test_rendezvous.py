"""torchrun that ends as its workers did, and knows who holds the rendezvous."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from training.exit_status import BAD_INPUT
from training.jobs.program import RENDEZVOUS_PORT, on_many_nodes
from training.jobs.spec import JobSpec
from training.torchrun import with_place

PATIENCE = "join_timeout=1800,read_timeout=1800"
TORCHRUN = [sys.executable, "-m", "training.torchrun"]

# The second worker waits to be ended, so the first one's status is the one that counts.
WORKER = """
import os, signal, sys
if os.environ["LOCAL_RANK"] == "0":
    sys.exit(int(sys.argv[1]))
if sys.argv[1] != "0":
    signal.pause()
"""


def test_the_status_of_the_worker_that_failed_is_the_jobs(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    answer = subprocess.run(
        [*TORCHRUN, "--standalone", "--nproc-per-node=2", str(script), "42"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == 42, answer.stderr


def test_nodes_that_start_in_any_order_meet_at_the_first(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import os\nprint('rank', os.environ['RANK'], os.environ['WORLD_SIZE'])\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = on_many_nodes(sys.executable, JobSpec("one", ("x",), nodes=2), "127.0.0.1")
    options = [each for each in command[4:] if each.startswith("--")]
    options = [each.replace(f":{RENDEZVOUS_PORT}", f":{port}") for each in options]
    nodes = [
        subprocess.Popen(
            [*TORCHRUN, *options, str(script)],
            env={**os.environ, "JOB_COMPLETION_INDEX": index},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for index in ("1", "0")
    ]
    said = [node.communicate(timeout=120)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    assert sorted("".join(said).split("\n")) == ["", "rank 0 2", "rank 1 2"]


def test_bad_input_is_tried_once_however_often_torchrun_starts_again() -> None:
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=3"]
    train = ["train", "no-such.csv", "--out", "out.safetensors", "--progress", "json"]
    answer = subprocess.run(
        [*TORCHRUN, *options, "-m", "training.jobs.process", *train],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == BAD_INPUT, answer.stderr
    assert answer.stdout.count('"start"') == 1
    assert answer.stdout.count("found nothing") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_killed_torchrun_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "rancast.py").write_text(
        "import os, signal\nprint(os.environ['RANK'], flush=True)\nsignal.pause()\n"
    )
    torchrun = subprocess.Popen(
        [*TORCHRUN, "--standalone", "--nproc-per-node=2", "-m", "training.jobs.process"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert torchrun.stdout is not None
    assert sorted(torchrun.stdout.readline() for _ in range(2)) == ["0\n", "1\n"]
    torchrun.kill()
    # Its processes hold the other end, so this ends with the last of them.
    assert torchrun.communicate(timeout=60)[0] == ""


def test_the_first_pod_holds_the_rendezvous_and_the_others_look_for_it() -> None:
    arguments = ["--nnodes=2", "--rdzv-backend=c10d", "-m", "rancast"]
    first = with_place(arguments, {"JOB_COMPLETION_INDEX": "0"})
    assert first == [f"--rdzv-conf=is_host=true,{PATIENCE}", *arguments]
    second = with_place(arguments, {"JOB_COMPLETION_INDEX": "1"})
    assert second == [f"--rdzv-conf=is_host=false,{PATIENCE}", *arguments]


def test_where_nobody_says_which_pod_it_is_nothing_is_added() -> None:
    assert with_place(["--rdzv-backend=c10d"], {}) == ["--rdzv-backend=c10d"]
    assert with_place(["--standalone"], {"JOB_COMPLETION_INDEX": "0"}) == ["--standalone"]
