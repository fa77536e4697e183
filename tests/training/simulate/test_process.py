"""A simulation as a process of its own, ended by a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from training.simulate.state import STATE_NAME

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from pathlib import Path
from training.simulate import SimulateOptions, simulate

def tell(progress):
    print(progress.phase, progress.done, flush=True)

summary = simulate(
    SimulateOptions(
        out=Path(sys.argv[1]), cells=2, days=0.1, speed=float(sys.argv[2]),
        dialects=("3gpp-28532",),
    ),
    tell,
)
print("stopped" if summary.is_stopped else "done", summary.live_periods, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("speed", ["inf", "0.01"], ids=["writing", "waiting"])
def test_a_signal_ends_a_run_cleanly_and_the_next_run_goes_on(tmp_path, number, speed):
    out = tmp_path / "pm"
    errors = tmp_path / "stderr"
    lines: list[str] = []
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(out), speed],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("live") and not any(known.startswith("live") for known in lines):
                process.send_signal(number)
            lines.append(line)
    assert process.returncode == 0
    assert errors.read_text() == ""
    ended, periods = lines[-1].split()
    assert ended == "stopped"
    assert not list(out.rglob("*.partial"))
    files = [path for path in out.rglob("*.xml") if path.name != STATE_NAME]
    assert len(files) >= 1 + int(periods)
    for path in files:
        etree.fromstring(path.read_bytes())
