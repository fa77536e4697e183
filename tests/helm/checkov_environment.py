"""Build the environment that holds checkov, which scans the chart's manifests for what is too open.

Its packages ask for versions that exclude those of the project, so it has an environment of its
own; nothing is done where it is there already, made from the same pins.

    python -m tests.helm.checkov_environment .venv-checkov
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.protocols.build_environment import EnvironmentUnavailableError, build, is_built

PINS = Path(__file__).with_name("checkov-constraints.txt")


def main() -> int:
    """Build the environment that the command line names, unless it is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the environment is made")
    folder: Path = parser.parse_args().folder
    if is_built(folder, PINS):
        return 0
    sys.stderr.write(f"installing checkov into {folder}; this takes a minute\n")
    try:
        build(folder, PINS)
    except EnvironmentUnavailableError as error:
        sys.stderr.write(f"no checkov here, its test will skip: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
