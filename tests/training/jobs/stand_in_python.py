"""A Python that runs the stand-in for the trainer, whatever it is told to run."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.training.jobs.contract import STAND_IN


def write_stand_in_python(path: Path) -> Path:
    """Write it as an executable, to be used as a job's Python."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{STAND_IN}" "$@"\n')
    path.chmod(0o755)
    return path
