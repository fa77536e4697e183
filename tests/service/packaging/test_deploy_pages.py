"""The pages that lead to a running app: what can run without a RIC runs as printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from service.settings import Settings
from tests.helm.conftest import CHART, Helm
from tests.service.live import Live, live

REPOSITORY = Path(__file__).resolve().parents[3]
ADDRESS = "http://127.0.0.1:8080"
ANYWHERE, SERVICE = "On any machine:", "Against the service:"
PLACES = (ANYWHERE, SERVICE, "With a container engine:", "In the cluster:", "On the RIC:")
BLOCK = re.compile(r"([^\n]*)\n\n```(sh|yaml)\n(.*?)```", re.DOTALL)
PAGES = ("deploy-xapp.md", "deploy-rapp.md")
TOKEN = "0123456789abcdef0123456789abcdef"


def blocks(page: str) -> list[tuple[str, str, str]]:
    """The line above each block, its language, and what is in it."""
    return BLOCK.findall((REPOSITORY / "docs" / page).read_text(encoding="utf-8"))


def commands(page: str, place: str) -> list[str]:
    return [
        body
        for above, language, body in blocks(page)
        if language == "sh" and above.lower().endswith(place.lower())
    ]


def run(script: str, folder: Path, tools: Path) -> str:
    """What a script prints, run from its top to its bottom."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture
def tools(helm: Helm, tmp_path: Path) -> Path:
    """A folder for PATH: rancast of these sources, and one of the helms."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "helm").symlink_to(helm.binary)
    front = folder / "rancast"
    front.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m rancast "$@"\n'
    )
    front.chmod(0o755)
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Live]:
    """A service that asks for a token."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operator admin {TOKEN}\n")
    with live(Settings(token_file=tokens)) as running:
        yield running


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_commands_says_where_it_runs(page):
    for above, language, body in blocks(page):
        if language == "sh":
            assert above.lower().endswith(tuple(map(str.lower, PLACES))), body
    shown = (REPOSITORY / "docs" / page).read_text(encoding="utf-8").count("```sh\n")
    assert shown == sum(language == "sh" for _, language, _ in blocks(page))


@pytest.mark.parametrize("page", PAGES)
def test_what_runs_on_any_machine_runs_as_printed(page, work, tools, our_chart):
    assert our_chart == CHART
    for above, language, body in blocks(page):
        if language == "yaml":
            name = re.search(r"`([\w.-]+\.yaml)`", above)
            assert name is not None, above
            (work / name[1]).write_text(body, encoding="utf-8")
    output = run("".join(commands(page, ANYWHERE)), work, tools)
    assert ": fine" in output
    kinds = {each["kind"] for each in yaml.safe_load_all((work / "rendered.yaml").read_text())}
    assert {"Deployment", "Service"} <= kinds
    if page == "deploy-xapp.md":
        assert "service-ricxapp-rancast-http" in output
        assert "service-ricxapp-rancast-rmr" in output
        assert "configmap-ricxapp-rancast-appconfig" in output
        return
    # What the requests to the rApp manager name is in the package.
    with zipfile.ZipFile(work / "dist" / "rancast.csar") as archive:
        names = {Path(name).stem for name in archive.namelist()}
    (request,) = re.findall(r"(\{\s*\"acm\".*?\})'", "".join(commands(page, "On the RIC:")), re.S)
    stated = json.loads(request)
    assert {stated["acm"]["instance"], *stated["sme"].values()} <= names


@pytest.mark.parametrize("page", PAGES)
def test_what_asks_the_service_is_answered(page, service, work, tools):
    (work / "token").write_text(TOKEN)
    output = ""
    for script in commands(page, SERVICE):
        assert ADDRESS in script
        output += run(script.replace(ADDRESS, service.url), work, tools)
    assert '"forecasts"' in output
    assert "rancast_latency_budget" in output
