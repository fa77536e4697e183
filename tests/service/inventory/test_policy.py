"""Nothing is shipped under a licence that nobody has looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from service.inventory.bundled import LINKED_IN, SHARED_LIBRARIES
from service.inventory.component import Component, Origin
from service.inventory.errors import LicenceError
from service.inventory.licences import expression
from service.inventory.policy import PERMISSIVE, REVIEWED, reason, refuse_unreviewed

FREE = Component("free", "1", Origin.PYTHON, "MIT", "pkg:pypi/free@1", (Path("LICENSE"),))


def test_permissive_licence_needs_no_reason() -> None:
    refuse_unreviewed([FREE, replace(FREE, licence="MIT OR GPL-3.0-only")])
    assert reason(FREE) is None


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "MPL-2.0"])
def test_part_that_is_not_permissive_is_refused_by_name(licence: str) -> None:
    with pytest.raises(LicenceError, match=r"free 1: licence .*"):
        refuse_unreviewed([replace(FREE, licence=licence)])


def test_reason_holds_for_its_part_alone() -> None:
    certifi = replace(FREE, name="certifi", licence="MPL-2.0")
    refuse_unreviewed([certifi])
    assert reason(certifi) == REVIEWED["certifi", "MPL-2.0"]


def test_what_lies_inside_is_judged_as_well() -> None:
    inside = Component("libodd", "", Origin.INSIDE, "GPL-2.0-only", "", FREE.texts)
    with pytest.raises(LicenceError, match=r"libodd  \(in free\)"):
        refuse_unreviewed([replace(FREE, inside=(inside,))])


def test_part_without_a_text_is_refused() -> None:
    with pytest.raises(LicenceError, match="no file with the text of its licence"):
        refuse_unreviewed([replace(FREE, texts=())])


def test_debians_main_archive_may_be_passed_on() -> None:
    bash = Component("bash", "5", Origin.DEBIAN, "GPL-3+", "pkg:deb/debian/bash@5", FREE.texts)
    refuse_unreviewed([bash])
    assert "source" in (reason(bash) or "")


def test_every_licence_that_is_named_is_one() -> None:
    known = {*PERMISSIVE, *(licence for _, licence in REVIEWED), *SHARED_LIBRARIES.values()}
    known |= {licence for parts in LINKED_IN.values() for _, licence in parts}
    assert {licence: expression(licence) for licence in known} == {one: one for one in known}
