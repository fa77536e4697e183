"""The bill of materials is valid CycloneDX, complete, and the same for the same parts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from service.inventory.component import Component, Origin
from service.inventory.cyclonedx import actual_parts, bill_of_materials, stated_parts
from service.inventory.debian import debian_packages
from service.inventory.notices import licence_list

TEXTS = (Path("LICENSE"),)
GOMP = Component("libgomp", "", Origin.INSIDE, "GPL-3.0-or-later WITH GCC-exception-3.1", "", TEXTS)
A = Component("a", "1", Origin.PYTHON, "MIT", "pkg:pypi/a@1", TEXTS, ("pkg:pypi/b@2%2Bcpu",))
B = Component("b", "2+cpu", Origin.PYTHON, "ISC", "pkg:pypi/b@2%2Bcpu", TEXTS, (), (GOMP,))
MADE = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_document_keeps_to_the_schema(debian) -> None:
    parts = [A, B, *debian_packages(debian)]
    text = bill_of_materials(parts, "rancast", "0.1.0", MADE)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_package_urls_name_what_they_should() -> None:
    assert PackageURL.from_string(B.purl).version == "2+cpu"


def test_every_part_is_stated_with_licence_and_carrier() -> None:
    text = bill_of_materials([A, B], "rancast", "0.1.0", None)
    assert stated_parts(text) == {("", "a", "1"), ("", "b", "2+cpu"), ("b", "libgomp", "")}
    assert stated_parts(text) == actual_parts([A, B])
    document = json.loads(text)
    assert document["components"][0]["licenses"] == [{"expression": "MIT"}]
    assert "timestamp" not in document["metadata"]


def test_tree_of_needs_starts_at_what_nobody_needs() -> None:
    document = json.loads(bill_of_materials([A, B], "rancast", "0.1.0", None))
    assert document["dependencies"] == [
        {"ref": "image", "dependsOn": [A.purl]},
        {"ref": A.purl, "dependsOn": [B.purl]},
    ]


def test_two_carriers_of_one_library_are_two_references() -> None:
    twice = [replace(A, inside=(GOMP,)), B]
    text = bill_of_materials(twice, "rancast", "0.1.0", None)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_same_parts_give_the_same_bytes_and_others_another_number() -> None:
    first, again, other = (
        bill_of_materials(parts, "rancast", "0.1.0", MADE) for parts in ([A, B], [A, B], [B])
    )
    assert first == again
    assert json.loads(first)["serialNumber"] != json.loads(other)["serialNumber"]
    assert json.loads(first)["metadata"]["timestamp"] == "2026-11-30T12:00:00Z"


def test_list_for_people_names_every_part_its_licence_and_reason(debian) -> None:
    text = licence_list([A, B, *debian_packages(debian)], "rancast", "0.1.0")
    assert "libgomp (in b)" in text
    assert "runtime of a compiler" in text
    assert "libx 1:2.0-3" in text
    assert "GPL-2+, Expat" in text
    assert text.count("    LICENSE\n") == 2
