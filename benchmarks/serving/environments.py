"""Environments of opponents whose pins are not ours: each has its own packages and sees our others.

An environment holds what its pins name; all else (torch, numpy, FastAPI, the same versions for
both sides) it finds in the environment that the benchmark runs in, behind its own. Nothing is done
where it is there already, made from the same pins.

    python -m benchmarks.serving.environments
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.serving.processes import ROOT

_STAMP = ".pins"


class EnvironmentUnavailableError(Exception):
    """The environment cannot be built here: no package index, or no venv module."""


@dataclass(frozen=True)
class Environment:
    """Where one opponent is installed.

    Attributes:
        words: The opponent, for people.
        folder: Of the environment.
        pins: Exact versions of what it holds.
    """

    words: str
    folder: Path
    pins: Path

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def is_built(self) -> bool:
        """Whether it is there, made from today's pins."""
        stamp = self.folder / _STAMP
        return stamp.is_file() and stamp.read_bytes() == self.pins.read_bytes()

    @property
    def remedy(self) -> str:
        """What to do where it is not."""
        return (
            f"{self.words} is not installed; `python -m benchmarks.serving.environments` makes "
            f"{self.folder.name}"
        )

    def build(self) -> None:
        """Make it.

        Raises:
            EnvironmentUnavailableError: It cannot be made here.
        """
        try:
            venv.create(self.folder, clear=True, with_pip=True)
            subprocess.run(
                [
                    self.interpreter,
                    *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                    # The pins are complete: what is not among them is that of this environment.
                    *("--no-deps", "--only-binary", ":all:", "-r", self.pins),
                ],
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise EnvironmentUnavailableError(str(error)) from error
        (self._packages() / "benchmark.pth").write_text(
            f"{sysconfig.get_path('purelib')}\n", encoding="utf-8"
        )
        (self.folder / _STAMP).write_bytes(self.pins.read_bytes())

    def _packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"


def _environment(words: str, name: str) -> Environment:
    pins = Path(__file__).with_name("opponents") / f"{name}-constraints.txt"
    return Environment(words, ROOT / f".venv-{name}", pins)


LITSERVE = _environment("LitServe with its own batching", "litserve")
BENTOML = _environment("BentoML with its own batching", "bentoml")


def main() -> int:
    """Build both, where they are not there."""
    status = 0
    for environment in (LITSERVE, BENTOML):
        if environment.is_built:
            continue
        sys.stderr.write(f"installing into {environment.folder.name}\n")
        try:
            environment.build()
        except EnvironmentUnavailableError as error:
            sys.stderr.write(f"no {environment.words} here: {error}\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
