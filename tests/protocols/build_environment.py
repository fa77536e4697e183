"""Build the environment that holds KServe's own client and types, for the tests of its protocols.

KServe's package asks for versions that exclude those of the project, so it has an environment of
its own; nothing is done where it is there already, made from the same pins.

    python tests/protocols/build_environment.py .venv-kserve
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

PINS = Path(__file__).with_name("kserve-constraints.txt")
_STAMP = ".pins"


class EnvironmentUnavailableError(Exception):
    """The environment cannot be built here: no package index, or no venv module."""


def is_built(folder: Path, pins: Path = PINS) -> bool:
    """Whether the environment is there, made from today's pins."""
    stamp = folder / _STAMP
    return stamp.is_file() and stamp.read_bytes() == pins.read_bytes()


def interpreter(folder: Path) -> Path:
    """The environment's Python."""
    return folder / "bin" / "python"


def build(folder: Path, pins: Path = PINS) -> None:
    """Make the environment, of these pins and nothing else.

    Raises:
        EnvironmentUnavailableError: It cannot be made here.
    """
    try:
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run(
            [
                interpreter(folder),
                *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                *("--only-binary", ":all:", "-r", pins),
            ],
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise EnvironmentUnavailableError(str(error)) from error
    (folder / _STAMP).write_bytes(pins.read_bytes())


def main() -> int:
    """Build the environment that the command line names, unless it is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the environment is made")
    folder: Path = parser.parse_args().folder
    if is_built(folder):
        return 0
    sys.stderr.write(f"installing KServe's client into {folder}; this takes a minute\n")
    try:
        build(folder)
    except EnvironmentUnavailableError as error:
        sys.stderr.write(f"no KServe client here, its tests will skip: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
