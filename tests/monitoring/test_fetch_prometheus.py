"""Prometheus is taken from the package as a whole or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring import fetch_prometheus
from tests.monitoring.fetch_prometheus import main

BOOKWORM = "prometheus:prometheus promtool"


class Debian:
    """Plays apt and dpkg: how many downloads fail, and which programs each package holds."""

    def __init__(self, *packages: str, failures: int = 0) -> None:
        self.programs = dict(each.split(":") for each in packages)
        self.failures = failures
        self.commands: list[str] = []

    def run(self, command: tuple[str, ...], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(" ".join(command[:2]))
        if command[1] == "download":
            if self.failures:
                self.failures -= 1
                return subprocess.CompletedProcess(command, 100, "", "E: Unable to locate it")
            (options["cwd"] / f"{command[-1]}_1_amd64.deb").touch()
        elif command[1] == "-x":
            folder = Path(command[3]) / "usr" / "bin"
            folder.mkdir(parents=True, exist_ok=True)
            package = Path(command[2]).name.partition("_")[0]
            for name in self.programs.get(package, "").split():
                (folder / name).write_text(name)
                (folder / name).chmod(0o755)
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture(autouse=True)
def nothing_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"apt-get": "/usr/bin/apt-get", "dpkg": "/usr/bin/dpkg"}
    monkeypatch.setattr("shutil.which", there.get)


def use(debian: Debian, monkeypatch: pytest.MonkeyPatch) -> Debian:
    monkeypatch.setattr("subprocess.run", debian.run)
    return debian


def test_both_programs_are_taken_and_can_be_run(tmp_path, monkeypatch):
    debian = use(Debian(BOOKWORM), monkeypatch)
    assert main([str(tmp_path / "tools")]) == 0
    found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "tools").iterdir()}
    assert found == {"prometheus": 0o755, "promtool": 0o755}
    assert debian.commands == ["apt-get download", "dpkg -x"]


def test_where_promtool_is_a_package_of_its_own_both_are_taken(tmp_path, monkeypatch):
    debian = use(Debian("prometheus:prometheus", "promtool:promtool"), monkeypatch)
    assert main([str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prometheus", "promtool"]
    assert debian.commands == ["apt-get download", "dpkg -x"] * 2


def test_the_lists_are_fetched_once_where_there_are_none(tmp_path, monkeypatch):
    debian = use(Debian(BOOKWORM, failures=1), monkeypatch)
    assert main([str(tmp_path)]) == 0
    downloads = ["apt-get download", "apt-get update", "apt-get download"]
    assert debian.commands == [*downloads, "dpkg -x"]


def test_without_a_package_the_reason_is_told_and_nothing_is_left(tmp_path, monkeypatch, capsys):
    use(Debian(failures=2), monkeypatch)
    assert main([str(tmp_path)]) == 1
    assert "E: Unable to locate it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_packages_without_promtool_are_told_so(tmp_path, monkeypatch, capsys):
    use(Debian("prometheus:prometheus"), monkeypatch)
    assert main([str(tmp_path)]) == 1
    assert "no package holds promtool" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_another_system_is_told_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert main([str(tmp_path)]) == 1
    assert "there is no apt-get" in capsys.readouterr().err


def test_programs_that_are_there_are_kept(tmp_path, monkeypatch):
    debian = use(Debian(), monkeypatch)
    for name in fetch_prometheus.PROGRAMS:
        (tmp_path / name).write_text("mine")
    assert main([str(tmp_path)]) == 0
    assert debian.commands == []
    assert (tmp_path / "promtool").read_text() == "mine"


def test_the_cache_is_outside_of_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fetch_prometheus.cache_folder() == tmp_path / "rancast-tools" / "prometheus"
    assert Path(__file__).parents[2] not in fetch_prometheus.cache_folder().parents
