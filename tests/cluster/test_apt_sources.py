from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.apt_sources import (
    AptUnavailableError,
    PrivateApt,
    parse_deb822,
    parse_one_line,
    system_sources,
)

DEB822 = """\
Types: deb
# A remark.
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates trixie
Components: main contrib
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://other.example
Suites: nodistro bookworm-vendor
Components: main

Types: deb
URIs: http://off.example
Suites: bookworm
Components: main
Enabled: no
"""
ONE_LINE = """\
# deb http://remark.example bookworm main
deb [arch=amd64 signed-by=/keys/a.gpg] http://mirror.example/debian bookworm main contrib # why
deb-src http://mirror.example/debian bookworm main
deb http://vendor.example vendor-bookworm main
"""


def test_only_suites_of_the_release_are_taken() -> None:
    (source,) = parse_deb822(DEB822)
    assert source.suites == ("bookworm", "bookworm-updates")
    assert source.lines() == [
        "Types: deb deb-src",
        "URIs: http://mirror.example/debian",
        "Suites: bookworm bookworm-updates",
        "Components: main contrib",
        "Signed-By: /keys/debian.gpg",
    ]


def test_key_inside_of_the_entry_is_kept_whole() -> None:
    key = "Signed-By:\n -----BEGIN\n .\n abc\n -----END"
    text = f"Types: deb\nURIs: http://m.example\nSuites: bookworm\nComponents: main\n{key}\n"
    (source,) = parse_deb822(text)
    assert source.lines()[-1] == "Signed-By: \n -----BEGIN\n .\n abc\n -----END"


def test_entries_on_one_line_are_understood() -> None:
    (source,) = parse_one_line(ONE_LINE)
    assert (source.uris, source.suites) == (("http://mirror.example/debian",), ("bookworm",))
    assert source.components == ("main", "contrib")
    assert source.options == (("Signed-By", "/keys/a.gpg"),)


def test_all_files_of_the_system_are_read(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "more.list").write_text(ONE_LINE)
    (tmp_path / "sources.list").write_text("deb http://third.example bookworm main\n")
    mirrors = [source.uris[0] for source in system_sources(tmp_path)]
    assert mirrors == [
        "http://mirror.example/debian",
        "http://third.example",
        "http://mirror.example/debian",
    ]


def test_system_of_another_release_is_told_what_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cluster.apt_sources.system_sources", list)
    with pytest.raises(AptUnavailableError, match=r"Debian 12.*KUBECONFIG"):
        PrivateApt.of_system(tmp_path)


def test_apt_keeps_everything_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = parse_deb822(DEB822)
    monkeypatch.setattr("tests.cluster.apt_sources.system_sources", lambda: sources)
    PrivateApt.of_system(tmp_path / "apt")
    settings = (tmp_path / "apt" / "apt.conf").read_text()
    for name in ("Dir::State", "Dir::State::status", "Dir::Cache", "Dir::Etc::sourceparts"):
        assert f'{name} "{tmp_path}/apt' in settings
    assert "deb-src" in (tmp_path / "apt" / "sources.list.d" / "debian.sources").read_text()
