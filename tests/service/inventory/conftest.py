"""Small packages and small machines, laid out as pip and dpkg lay them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

MakePackage = Callable[..., Path]


@pytest.fixture
def make_package(tmp_path: Path) -> MakePackage:
    """Makes an installed package in a folder, which is answered."""

    def make(
        name: str,
        *,
        version: str = "1.0",
        lines: tuple[str, ...] = ("License-Expression: MIT",),
        files: Mapping[str, str] | None = None,
    ) -> Path:
        folder = f"{name.replace('-', '_')}-{version}.dist-info"
        metadata = ("Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines)
        texts = {
            f"{folder}/METADATA": "\n".join(metadata) + "\n",
            f"{folder}/licenses/LICENSE": "as is",
            **{path.format(info=folder): text for path, text in (files or {}).items()},
        }
        for path, text in texts.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        record = "".join(f"{path},,\n" for path in [*texts, f"{folder}/RECORD"])
        (tmp_path / folder / "RECORD").write_text(record, encoding="utf-8")
        return tmp_path

    return make


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """A root with two packages of Debian, one of them removed, and one without a known form."""
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: libx\nStatus: install ok installed\nSection: libs\nArchitecture: amd64\n"
        "Version: 1:2.0-3\nDescription: a library\n with: a colon\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nSection: libs\nArchitecture: all\n"
        "Version: 1\n\n"
        "Package: plain\nStatus: install ok installed\nSection: utils\nArchitecture: all\n"
        "Version: 3\n",
        encoding="utf-8",
    )
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n', encoding="utf-8")
    structured = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
    copyrights = {
        "libx": structured + "Files: *\nLicense: GPL-2+\n\nFiles: a\nLicense: Expat\n text\n",
        "plain": "This was packaged by hand. License: ask.\n",
    }
    for name, text in copyrights.items():
        path = tmp_path / "usr/share/doc" / name / "copyright"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path
