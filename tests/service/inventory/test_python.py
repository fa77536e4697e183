"""Packages of Python are found with what they need and carry."""

from __future__ import annotations

import json

import pytest

from service.inventory.component import Origin
from service.inventory.errors import InventoryError, LicenceError
from service.inventory.python import python_packages

CRATES = {
    "bomFormat": "CycloneDX",
    "components": [
        {
            "name": "serde",
            "version": "1.2",
            "purl": "pkg:cargo/serde@1.2",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }
    ],
}


def packages(folder):
    return {part.name: part for part in python_packages([str(folder)])}


def test_package_is_told_by_its_metadata(make_package) -> None:
    (found,) = packages(make_package("My-Thing", version="2.0+cpu")).values()
    assert (found.name, found.version, found.licence) == ("my-thing", "2.0+cpu", "MIT")
    assert found.purl == "pkg:pypi/my-thing@2.0%2Bcpu"
    assert [text.name for text in found.texts] == ["LICENSE"]


def test_application_itself_is_in_no_index(make_package) -> None:
    assert packages(make_package("rancast"))["rancast"].purl == "pkg:generic/rancast@1.0"


def test_needs_follow_markers_and_the_extras_that_others_ask_for(make_package) -> None:
    requires = (
        "Requires-Dist: b; python_version < '3'",
        "Requires-Dist: c",
        "Requires-Dist: d; extra == 'fast'",
        "Requires-Dist: not-installed",
    )
    make_package("a", lines=("License-Expression: MIT", *requires))
    for name in ("b", "c", "d"):
        make_package(name)
    folder = make_package("e")
    assert packages(folder)["a"].needs == ("pkg:pypi/c@1.0",)
    make_package("e", lines=("License-Expression: MIT", "Requires-Dist: a[fast]"))
    assert packages(folder)["a"].needs == ("pkg:pypi/c@1.0", "pkg:pypi/d@1.0")


def test_crates_of_a_wheels_own_bill_are_inside_it(make_package) -> None:
    folder = make_package("a", files={"{info}/sboms/a.cyclonedx.json": json.dumps(CRATES)})
    (crate,) = packages(folder)["a"].inside
    assert (crate.name, crate.licence) == ("serde", "MIT OR Apache-2.0")
    assert crate.origin is Origin.INSIDE
    assert crate.texts == packages(folder)["a"].texts


def test_crate_without_a_licence_is_refused(make_package) -> None:
    bill = {"components": [{"name": "odd", "version": "1"}]}
    folder = make_package("a", files={"{info}/sboms/a.json": json.dumps(bill)})
    with pytest.raises(LicenceError, match="odd 1, got nothing"):
        packages(folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"components": [{"version": "1"}]}'])
def test_damaged_bill_of_a_wheel_is_refused_by_its_path(make_package, text) -> None:
    folder = make_package("a", files={"{info}/sboms/a.json": text})
    with pytest.raises(InventoryError, match=r"sboms/a\.json"):
        packages(folder)


def test_library_that_was_copied_into_a_wheel_is_inside_it(make_package) -> None:
    folder = make_package("a", files={"a.libs/libgfortran-040039e1.so.5.0.0": "elf"})
    (library,) = packages(folder)["a"].inside
    assert (library.name, library.licence.split()[0]) == ("libgfortran", "GPL-3.0-or-later")


def test_copied_library_that_nobody_knows_is_refused(make_package) -> None:
    folder = make_package("a", files={"a.libs/libodd-12.so.1": "elf"})
    with pytest.raises(LicenceError, match="a carries the library libodd"):
        packages(folder)


def test_library_that_is_the_packages_own_is_nothing_foreign(make_package) -> None:
    folder = make_package("a", files={"a/core.cpython-311.so": "elf", "a/lib/libgomp.so.1": "elf"})
    assert [part.name for part in packages(folder)["a"].inside] == ["libgomp"]
