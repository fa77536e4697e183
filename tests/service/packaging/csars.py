"""Packages for the tests: a good one, and ways to break it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from service.packaging.archive import zip_archive
from service.packaging.chart import package_chart, read_chart
from service.packaging.csar import CsarOptions, csar_files
from service.packaging.csar_rules import check_csar
from service.packaging.finding import Finding
from service.packaging.image import image_reference
from service.packaging.manifest import MANIFEST_FILE, Manifest

RELEASED = datetime(2026, 11, 30, tzinfo=UTC)
Files = dict[str, bytes]

OPTIONS = CsarOptions(
    release="rancast",
    namespace="nonrtric",
    provider="Example",
    image=image_reference("registry.example.org/ran/rancast:0.1.0"),
    push_uri="http://charts.example.org:8080/api/charts",
    pull_uri="http://charts.example.org:8080/charts",
    overrides={},
    released=RELEASED,
    extra={},
    created_by="rancast 0.1.0",
)


def files_of(chart: Path, **changes: Any) -> Files:
    """Files of a package of a chart."""
    return csar_files(package_chart(read_chart(chart)), replace(OPTIONS, **changes))


def findings_of(files: Mapping[str, bytes], *, signed: bool = True) -> list[Finding]:
    """What is wrong with a package of these files; its manifest is made anew where it is signed."""
    packed = dict(files)
    if signed:
        packed.pop(MANIFEST_FILE, None)
        packed[MANIFEST_FILE] = Manifest("rancast", "Example", RELEASED).text(packed)
    return check_csar(zip_archive(packed), "rancast.csar")


def edit_json(files: Files, name: str, change: Callable[[Any], Any]) -> None:
    """Change a JSON document in place."""
    document = json.loads(files[name])
    change(document)
    files[name] = json.dumps(document).encode()


def edit_yaml(files: Files, name: str, change: Callable[[Any], Any]) -> None:
    """Change a YAML document in place."""
    document = yaml.safe_load(files[name])
    change(document)
    files[name] = yaml.safe_dump(document).encode()
