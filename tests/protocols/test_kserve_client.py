"""KServe's own client and types find what they expect: see `kserve_checks.py`."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest

from service.settings import Settings
from tests.protocols.build_environment import PINS, interpreter, is_built
from tests.service.live import live

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = REPOSITORY / ".venv-kserve"
SCRIPT = Path(__file__).with_name("kserve_checks.py")


def checks() -> list[str]:
    """Names of the checks, of a script that only KServe's environment can import."""
    (found,) = (
        node
        for node in ast.parse(SCRIPT.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    methods = [node.name for node in found.body if isinstance(node, ast.AsyncFunctionDef)]
    return [name for name in methods if not name.startswith("_")]


@pytest.fixture(scope="module")
def results() -> dict[str, str | None]:
    if not is_built(ENVIRONMENT):
        pytest.skip("KServe's client is not installed; `make tools` does it where it can be had")
    with live(Settings(profile="non-rt")) as server:
        ended = subprocess.run(
            [interpreter(ENVIRONMENT), "-W", "ignore", SCRIPT, server.url, "fake"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, str | None] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("check", checks())
def test_kserves_own_client_finds_what_it_expects(
    results: dict[str, str | None], check: str
) -> None:
    assert results[check] is None, results[check]


def test_the_version_that_is_tried_is_pinned() -> None:
    pins = PINS.read_text(encoding="utf-8").splitlines()
    assert "kserve==0.21.0" in pins
    assert all(pin.startswith("#") or pin.count("==") == 1 for pin in pins)
