"""Debian's packages are read from dpkg's records and their copyright files."""

from __future__ import annotations

import pytest

from service.inventory.component import Origin
from service.inventory.debian import IN_WORDS, STATUS, debian_packages
from service.inventory.errors import LicenceError


def test_installed_packages_are_found_with_their_licences(debian) -> None:
    library, plain = debian_packages(debian)
    assert (library.name, library.version) == ("libx", "1:2.0-3")
    assert library.licence == "GPL-2+, Expat"
    assert library.purl == "pkg:deb/debian/libx@1%3A2.0-3?arch=amd64&distro=debian-12"
    assert library.origin is Origin.DEBIAN
    assert (plain.name, plain.licence) == ("plain", IN_WORDS)
    assert plain.texts == (debian / "usr/share/doc/plain/copyright",)


def test_package_without_a_copyright_file_has_no_text(debian) -> None:
    (debian / "usr/share/doc/plain/copyright").unlink()
    assert debian_packages(debian)[1].texts == ()


def test_package_outside_the_main_archive_is_refused(debian) -> None:
    status = debian / STATUS
    text = status.read_text(encoding="utf-8").replace("Section: libs", "Section: non-free/libs")
    status.write_text(text, encoding="utf-8")
    with pytest.raises(LicenceError, match=r"libx 1:2.0-3: expected a package of Debian's main"):
        debian_packages(debian)


def test_another_system_has_none(tmp_path) -> None:
    assert debian_packages(tmp_path) == []
