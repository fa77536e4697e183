"""A missing program is a reason to skip, and a failure where everything is to be there."""

from __future__ import annotations

import pytest

from tests.monitoring.tools import find


@pytest.fixture(autouse=True)
def nothing_is_here(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


def test_a_missing_program_skips_and_says_where_it_comes_from():
    with pytest.raises(pytest.skip.Exception, match=r"no promtool on PATH.*make tools"):
        find("promtool")


def test_a_missing_program_fails_where_ci_is_to_have_all(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no promtool on PATH"):
        find("promtool")


def test_a_fetched_program_is_found(tmp_path):
    path = tmp_path / "rancast-tools" / "prometheus" / "promtool"
    path.parent.mkdir(parents=True)
    path.touch()
    assert find("promtool") == str(path)
