"""The command writes both files and notices what changed since."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.inventory import __main__ as command
from service.inventory.component import Component, Origin
from service.inventory.errors import InventoryError

RANCAST = Component("rancast", "0.1.0", Origin.PYTHON, "Apache-2.0", "pkg:a", (Path("LICENSE"),))
OTHER = replace(RANCAST, name="other", version="3", purl="pkg:b")


@pytest.fixture
def inside(monkeypatch):
    """What is on the machine, to be changed by the test."""
    found = [RANCAST, OTHER]
    monkeypatch.setattr(command, "all_components", lambda: list(found))
    monkeypatch.delenv(command.EPOCH, raising=False)
    return found


@pytest.mark.usefixtures("inside")
def test_what_was_written_is_as_stated(tmp_path, capsys) -> None:
    assert command.main(["write", str(tmp_path)]) == 0
    assert command.main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all is as stated"
    assert "rancast 0.1.0" in (tmp_path / command.LICENCES).read_text(encoding="utf-8")


def test_changed_version_is_named_on_both_sides(inside, tmp_path, capsys) -> None:
    command.main(["write", str(tmp_path)])
    inside[1] = replace(OTHER, version="4")
    capsys.readouterr()
    assert command.main(["check", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "stated, and not here: other 3",
        "here, and not stated: other 4",
    ]


def test_part_that_may_not_be_shipped_ends_the_build_and_leaves_no_bill(
    inside, tmp_path, capsys
) -> None:
    inside[1] = replace(OTHER, licence="GPL-3.0-only")
    assert command.main(["write", str(tmp_path)]) == 1
    assert "other 3: licence GPL-3.0-only" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("text", [None, "{", "{}", "[]"])
def test_bill_that_cannot_be_read_is_an_error_with_its_path(tmp_path, capsys, text) -> None:
    path = tmp_path / command.BILL
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert command.main(["check", str(tmp_path)]) == 1
    assert str(path) in capsys.readouterr().err


def test_time_is_that_of_the_sources() -> None:
    assert command.build_time({}) is None
    assert command.build_time({command.EPOCH: ""}) is None
    assert command.build_time({command.EPOCH: "86400"}) == datetime(1970, 1, 2, tzinfo=UTC)
    with pytest.raises(InventoryError, match="expected seconds since 1970"):
        command.build_time({command.EPOCH: "yesterday"})
