"""The built image as a restricted pod runs it: no right to write but where a volume is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.image.conftest import Image
from tests.image.test_image import free_port

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]

MEASURE = Path(__file__).with_name("measure_start.py")
TWO_PROCESSES = """\
import torch, torch.distributed as group
group.init_process_group("gloo")
mine = torch.full((1,), float(group.get_rank() + 1))
group.all_reduce(mine)
assert mine.item() == 3, mine
if group.get_rank() == 0:
    print("sum", mine.item())
group.destroy_process_group()
"""


@pytest.fixture
def volume(tmp_path: Path) -> str:
    """The one folder that may be written, as an emptyDir is: another's, and for a group."""
    folder = tmp_path / "volume"
    folder.mkdir()
    os.chown(folder, 0, 10001)
    folder.chmod(0o2770)
    return f"{folder}:/var/lib/rancast"


def test_service_needs_one_volume_and_starts_as_reported(
    image: Image, volume: str, figures: list[str]
) -> None:
    answer = image.hardened_shell(
        "touch /opt/rancast/a /tmp/a 2>/dev/null && exit 9\n"
        f"export RANCAST_PORT={free_port()} RANCAST_OPEN_ACCESS=true\n"
        "exec python3 /measure_start.py",
        volumes=[volume, f"{MEASURE}:/measure_start.py:ro"],
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr[-4000:]
    found = json.loads(answer.stdout.splitlines()[-1])
    assert 0 < found["healthy_s"] <= found["ready_s"]
    assert 0 < found["anonymous_mib"] < found["resident_mib"] <= found["peak_mib"]
    figures += [f"{name}: {value:.1f}" for name, value in found.items()]


def test_training_needs_one_volume(image: Image, volume: str) -> None:
    answer = image.hardened_shell(
        "rancast train --preset nano --steps 2 --evaluate-every 1 --series 4 --synthetic 1"
        " --warmup-steps 1 --out trained.safetensors && ls",
        volumes=[volume],
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    assert "trained.safetensors" in answer.stdout.split()


def test_torchrun_joins_two_processes(image: Image, volume: str, tmp_path: Path) -> None:
    program = tmp_path / "two.py"
    program.write_text(TWO_PROCESSES, encoding="utf-8")
    answer = image.hardened_shell(
        "torchrun --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1"
        f" --master-port {free_port()} /two.py",
        volumes=[volume, f"{program}:/two.py:ro"],
    )
    assert "sum 3.0" in answer.stdout, answer.stdout[-2000:] + answer.stderr[-4000:]
