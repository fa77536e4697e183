"""A file is there whole or not at all, and what stands in its way is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from model.files import make_folder, replace_file


def test_a_file_takes_the_place_of_another_with_folders_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    for content in (b"one", b"two"):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_what_was_there_stays_alone_where_writing_ends_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "a"
    replace_file(path, b"one")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(type(error)):
        replace_file(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(number: int) -> None:
        done.append("sync")
        sync(number)

    def noted_replace(*names: Path) -> None:
        done.append("name")
        replace(*names)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    replace_file(tmp_path / "a", b"one")
    assert done[:2] == ["sync", "name"]


@pytest.mark.parametrize("below", ["", "b", "b/c"])
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(NotADirectoryError, match=f"expected a folder, {tmp_path}/a is a file"):
        make_folder(tmp_path / "a" / below)
