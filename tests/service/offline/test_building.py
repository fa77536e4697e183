"""Native code is built where it is missing, and one that cannot be built stops no other."""

from __future__ import annotations

import pytest

from model import native_tokens
from model.errors import ArtifactError
from service.offline import building


@pytest.fixture
def built(monkeypatch):
    """Names of what was built; nothing lies anywhere."""
    names: list[str] = []
    for name in ("tokens", "attention"):
        monkeypatch.setattr(building, f"find_{name}", lambda: None)
        package = getattr(building, f"native_{name}")
        monkeypatch.setattr(package, "build", lambda name=name: names.append(name))
    return names


def test_what_is_missing_is_built(built):
    assert building.build_native_code() == []
    assert built == ["tokens", "attention"]


def test_what_lies_somewhere_is_not_built_again(built, monkeypatch, tmp_path):
    monkeypatch.setattr(building, "find_tokens", lambda: tmp_path)
    assert building.build_native_code() == []
    assert built == ["attention"]


def test_one_that_cannot_be_built_is_told_of_and_stops_no_other(built, monkeypatch):
    def fail():
        raise ArtifactError("no compiler")

    monkeypatch.setattr(native_tokens, "build", fail)
    assert building.build_native_code() == ["no compiler"]
    assert built == ["attention"]
