"""The image with the extra that `rancast job` needs in a pod may be shipped, too."""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from service.inventory.policy import refuse_unreviewed
from service.inventory.python import python_packages
from tests.conftest import REPOSITORY


def test_what_the_kubernetes_client_brings_may_be_shipped(tmp_path: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = list(project["optional-dependencies"]["kubernetes"])
    found: set[str] = set()
    while waiting:
        wanted = Requirement(waiting.pop())
        name = canonicalize_name(wanted.name)
        if name in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        package = distribution(name)
        waiting += package.requires or ()
        for place in {file.parts[0] for file in package.files or () if ".." not in file.parts}:
            target = tmp_path / place
            if not target.exists():
                target.symlink_to(Path(str(package.locate_file(place))))
    packages = python_packages([str(tmp_path)])
    assert len(packages) == len(found) > 10
    refuse_unreviewed(packages)
