"""The blocks of commands of the pages that lead to a running app, and where each runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY

ANYWHERE, SERVICE = "On any machine:", "Against the service:"
ENGINE, CLUSTER, RIC = "With a container engine:", "In the cluster:", "On the RIC:"
PLACES = (ANYWHERE, SERVICE, ENGINE, CLUSTER, RIC)
PAGES = ("deploy-xapp.md", "deploy-rapp.md")
_BLOCK = re.compile(r"([^\n]*)\n\n```(sh|yaml)\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[str, str, str]]:
    """The line above each block, its language, and what is in it."""
    return _BLOCK.findall((REPOSITORY / "docs" / page).read_text(encoding="utf-8"))


def commands(page: str, place: str) -> list[str]:
    """The blocks of commands that run in a place."""
    return [
        body
        for above, language, body in blocks(page)
        if language == "sh" and above.lower().endswith(place.lower())
    ]


def write_files(page: str, folder: Path) -> None:
    """Write the files that a page shows, by the names that it gives them."""
    for above, language, body in blocks(page):
        if language == "yaml":
            name = re.search(r"`([\w.-]+\.yaml)`", above)
            assert name is not None, above
            (folder / name[1]).write_text(body, encoding="utf-8")


def make_tools(folder: Path, helm: str | Path) -> Path:
    """A folder for PATH: rancast of these sources, and a helm."""
    folder.mkdir()
    (folder / "helm").symlink_to(helm)
    front = folder / "rancast"
    front.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m rancast "$@"\n'
    )
    front.chmod(0o755)
    return folder


def run(script: str, folder: Path, tools: Path, seconds: float = 120, **variables: str) -> str:
    """What a script prints, run from its top to its bottom; it has to succeed."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout
