"""Atomic files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from training.simulate.writer import write_whole


def test_a_file_is_renamed_into_place_when_it_is_whole(tmp_path, monkeypatch):
    seen = []

    def watch(source, target):
        seen.append((Path(source).name, Path(source).read_bytes(), Path(target).exists()))
        os.rename(source, target)

    monkeypatch.setattr(os, "replace", watch)
    path, size = write_whole(tmp_path / "new" / "a.xml", b"<a/>")
    assert seen == [("a.xml.partial", b"<a/>", False)]
    assert (path, size) == (tmp_path / "new" / "a.xml", 4)
    assert [p.name for p in path.parent.iterdir()] == ["a.xml"]


def test_a_failure_leaves_the_old_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.xml"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"


def test_compressed_files_are_named_so_and_equal_for_equal_content(tmp_path):
    content = b"<a/>" * 1000
    first, size = write_whole(tmp_path / "a.xml", content, compress=True)
    again, _ = write_whole(tmp_path / "b.xml", content, compress=True)
    assert first.name == "a.xml.gz"
    assert first.stat().st_size == size < len(content)
    assert gzip.decompress(first.read_bytes()) == content
    assert first.read_bytes() == again.read_bytes()
