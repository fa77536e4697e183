"""Stating what an image is made of: `python -m service.inventory write|check FOLDER`.

`write` is run when an image is built, inside of it. `check` compares an image with its own bill of
materials, and names what was added, removed or changed since.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from service.inventory.component import Component
from service.inventory.cyclonedx import actual_parts, bill_of_materials, stated_parts
from service.inventory.debian import debian_packages
from service.inventory.errors import InventoryError
from service.inventory.notices import licence_list
from service.inventory.policy import refuse_unreviewed
from service.inventory.python import OURS, interpreter, python_packages

BILL = "sbom.cdx.json"
LICENCES = "licences.txt"
EPOCH = "SOURCE_DATE_EPOCH"


def all_components() -> list[Component]:
    """What this machine has: Python's packages, Python, Debian's packages.

    Raises:
        InventoryError: Something cannot be told.
    """
    return [*python_packages(), *interpreter(), *debian_packages()]


def build_time(environment: Mapping[str, str]) -> datetime | None:
    """When the sources were made, by the variable that reproducible builds use; None without it.

    Raises:
        InventoryError: It is not a number of seconds.
    """
    words = environment.get(EPOCH, "")
    if not words:
        return None
    try:
        return datetime.fromtimestamp(int(words), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InventoryError(f"expected seconds since 1970 in {EPOCH}, got {words!r}") from error


def write(folder: Path, made: datetime | None) -> list[Component]:
    """Write both files; what they state.

    Raises:
        InventoryError: Something may not be shipped, or cannot be told.
        OSError: The folder cannot be written.
    """
    components = all_components()
    refuse_unreviewed(components)
    version = next((part.version for part in components if part.name == OURS), "")
    bill = bill_of_materials(components, OURS, version, made)
    (folder / BILL).write_text(bill, encoding="utf-8")
    (folder / LICENCES).write_text(licence_list(components, OURS, version), encoding="utf-8")
    return components


def differences(folder: Path) -> list[str]:
    """What is otherwise than the bill of materials states, one line each.

    Raises:
        InventoryError: The bill cannot be read, or what is here cannot be told.
    """
    path = folder / BILL
    try:
        stated = stated_parts(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InventoryError(f"expected a bill of materials in {path}, got: {error!r}") from error
    actual = actual_parts(all_components())
    return [
        *(f"stated, and not here: {_words(*part)}" for part in sorted(stated - actual)),
        *(f"here, and not stated: {_words(*part)}" for part in sorted(actual - stated)),
    ]


def _words(carrier: str, name: str, version: str) -> str:
    return f"{name} {version}".strip() + (f" in {carrier}" if carrier else "")


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 where something may not be shipped or is otherwise than stated."""
    parser = argparse.ArgumentParser(prog="python -m service.inventory", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("folder", type=Path, help=f"where {BILL} and {LICENCES} are")
    given = parser.parse_args(arguments)
    try:
        if given.action == "write":
            count = len(write(given.folder, build_time(os.environ)))
            sys.stdout.write(f"{count} parts in {given.folder / BILL}\n")
            return 0
        found = differences(given.folder)
    except (InventoryError, OSError) as error:
        sys.stderr.write(f"rancast: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in found) or "all is as stated\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
