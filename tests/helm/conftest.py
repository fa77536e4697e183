"""Helm as the chart's tests use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

CHART = Path(__file__).resolve().parents[2] / "helm" / "rancast"
# What every installation has to say about who may call, in the fewest words.
OPEN = {"access": {"open": True}}
# The same in C where it is there, which takes a tenth of the time.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def unavailable(reason: str) -> NoReturn:
    """Skip for want of a tool; where everything is meant to be there (CI=true), fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class Helm:
    """One helm binary."""

    binary: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run helm and return what it said, whatever its exit status."""
        return subprocess.run(
            [self.binary, *arguments], capture_output=True, text=True, check=False, timeout=60
        )

    def template(
        self, values: dict[str, Any] | None = None, *arguments: str, chart: Path = CHART
    ) -> list[dict[str, Any]]:
        """The rendered objects of a release named `r`, with `values` over the chart's own.

        Without a word of `values` on access, the service is open.
        """
        answer = self.try_template(OPEN | (values or {}), *arguments, chart=chart)
        assert answer.returncode == 0, answer.stderr
        return [each for each in yaml.load_all(answer.stdout, Loader=LOADER) if each]

    def refusal(self, values: dict[str, Any], *arguments: str) -> str:
        """Why these values, over an open service, are refused."""
        answer = self.try_template(OPEN | values, *arguments)
        assert answer.returncode != 0, "nothing was refused"
        return answer.stderr

    def try_template(
        self, values: dict[str, Any] | None = None, *arguments: str, chart: Path = CHART
    ) -> subprocess.CompletedProcess[str]:
        """Render these values and no others, and return what helm said, whatever its status."""
        release = () if "--name-template" in arguments else ("--name-template", "r")
        return subprocess.run(
            [self.binary, "template", str(chart), *release, "--values", "-", *arguments],
            input=json.dumps(values or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def _find(name: str) -> str | None:
    beside_python = Path(sys.executable).parent / name
    return str(beside_python) if beside_python.exists() else shutil.which(name)


def _found(name: str) -> Helm:
    binary = _find(name)
    if binary is None:
        unavailable(f"no {name} beside Python or on PATH; `make tools` fetches it")
    return Helm(binary)


@pytest.fixture(scope="session")
def helm() -> Helm:
    """The newer helm that is here. That both render the same is a test of its own."""
    return _found("helm" if _find("helm") else "helm3")


@pytest.fixture(scope="session", params=["helm", "helm3"])
def each_helm(request: pytest.FixtureRequest) -> Helm:
    """Each helm that is here: version 4 as `helm`, version 3 as `helm3`."""
    return _found(request.param)


@pytest.fixture(scope="session")
def both_helms() -> tuple[Helm, Helm]:
    """Version 4 and version 3."""
    return _found("helm"), _found("helm3")


@pytest.fixture(scope="session")
def chart() -> Path:
    """The chart's folder."""
    return CHART
