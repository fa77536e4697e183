"""Bytes of files within their bounds, and trees of files."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zipfile
from pathlib import Path

import pytest

import kpi.readers as readers
from kpi.catalogue import load_catalogue
from kpi.errors import UnreadableFileError
from kpi.readers import ReadLimits, ReadOptions, read, read_tree
from tests.kpi.readers.pm_files import read_text, rows, simple, write

PACKED = gzip.compress(simple("1").encode())


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.xml", simple("1"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\0", "empty or blank"),
        (gzip.compress(b""), "empty"),
        (zipped(), "zip archive; unpack"),
        (bz2.compress(b"x"), "bzip2"),
        (PACKED[:-9], "truncated"),
        (PACKED[:12], "truncated"),
        (PACKED[:-8] + b"\0" * 8, "damaged"),
        (PACKED[:20] + b"\xff" * 40 + PACKED[60:], "damaged"),
        (PACKED + b"garbage", "damaged"),
    ],
    ids=[
        "nothing",
        "blank",
        "gzip of nothing",
        "zip",
        "bzip2",
        "no trailer",
        "no body",
        "wrong checksum",
        "damaged body",
        "garbage behind",
    ],
)
def test_bytes_that_are_no_plain_or_whole_gzip_file_are_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    with pytest.raises(UnreadableFileError, match=reason):
        read_text(tmp_path, content)


def test_gzip_bomb_is_refused_at_the_limit(tmp_path: Path) -> None:
    bomb = gzip.compress(b" " * 5_000_000)
    options = ReadOptions(limits=ReadLimits(max_bytes=1_000_000))
    with pytest.raises(UnreadableFileError, match="at most 1000000 bytes after decompression"):
        read_text(tmp_path, bomb, options)


def test_plain_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="at most 10 bytes"):
        read_text(tmp_path, simple("1"), ReadOptions(limits=ReadLimits(max_bytes=10)))


def test_gzip_members_in_a_row_are_one_file(tmp_path: Path) -> None:
    text = simple("1").encode()
    halves = gzip.compress(text[:200]) + gzip.compress(text[200:]) + b"\0" * 16
    assert rows(read_text(tmp_path, halves)) == rows(read_text(tmp_path, text))


def test_nothing_and_a_folder_are_no_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UnreadableFileError):
            read(path)


def test_pipe_in_a_folder_is_named_and_not_opened(tmp_path: Path) -> None:
    write(tmp_path, simple("1"), "a.xml")
    os.mkfifo(tmp_path / "pipe")
    # With a writer, so that a reader that does open it takes the bytes instead of waiting for ever.
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(pipe, b"untouched")
    bad: list[UnreadableFileError] = []
    try:
        assert len(rows(read_tree(tmp_path, on_error=bad.append))) == 1
        assert os.read(pipe, 100) == b"untouched"
    finally:
        os.close(pipe)
    assert [error.path for error in bad] == [str(tmp_path / "pipe")]
    assert "regular file" in bad[0].reason


def test_xml_of_countless_tags_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    limits = ReadLimits(max_samples=100)
    text = simple("1").replace("<measData>", "<x/>" * 1500 + "<measData>")
    with pytest.raises(UnreadableFileError, match="at most 1424 tags"):
        read_text(tmp_path, text, ReadOptions(limits=limits))


def test_path_that_the_system_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="too long"):
        list(read_tree(tmp_path / ("x" * 5000)))


@pytest.mark.parametrize("step", ["open", "read_bytes"])
def test_unreadable_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = write(tmp_path, simple("1"))
    catalogue = load_catalogue()

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, step, refuse)
    with pytest.raises(UnreadableFileError, match=r"file\.xml: cannot be read: Permission denied"):
        read(path, None, catalogue)


def test_tree_reads_the_good_files_in_order_and_names_the_bad_one(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    write(tmp_path, simple("1"), "a.xml")
    write(tmp_path / "b", PACKED[:-9], "bad.gz")
    write(tmp_path / "b", simple("2"), "good.xml")
    write(tmp_path, simple("3"), "c.xml")
    for name in ("d.tmp", "e.PARTIAL", ".f.xml", ".hidden/g.xml"):
        write(tmp_path, "no PM file", name)
    bad: list[UnreadableFileError] = []
    found = rows(read_tree(tmp_path, ReadOptions(), None, bad.append))
    assert [row[4] for row in found] == [1.0, 2.0, 3.0]
    assert [Path(error.path).name for error in bad] == ["bad.gz"]
    with pytest.raises(UnreadableFileError, match="truncated"):
        list(read_tree(tmp_path))


def test_tree_of_one_file_is_that_file(tmp_path: Path) -> None:
    assert len(rows(read_tree(write(tmp_path, simple("1"))))) == 1


def test_empty_folder_and_missing_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="empty"):
        list(read_tree(tmp_path))
    with pytest.raises(UnreadableFileError, match="found nothing"):
        list(read_tree(tmp_path / "x"))


def test_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked").mkdir()
    write(tmp_path, simple("1"), "a.xml")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    bad: list[UnreadableFileError] = []
    assert len(rows(read_tree(tmp_path, on_error=bad.append))) == 1
    assert "locked: cannot be listed: Permission denied" in str(bad[0])
    with pytest.raises(UnreadableFileError, match="locked"):
        list(read_tree(tmp_path))


def test_limits_and_options_without_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        ReadLimits(max_bytes=0)
    with pytest.raises(ValueError, match="vectors"):
        ReadOptions(vectors="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time zone"):
        ReadOptions(time_zone="Nowhere")


def test_everything_exported_is_there() -> None:
    assert all(hasattr(readers, name) for name in readers.__all__)


def test_gzip_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    text = simple("1").encode()
    options = ReadOptions(limits=ReadLimits(max_bytes=len(text)))
    assert len(rows(read_text(tmp_path, gzip.compress(text), options))) == 1


def test_record_beyond_the_limit_is_refused() -> None:
    options = ReadOptions(limits=ReadLimits(max_bytes=3))
    with pytest.raises(UnreadableFileError, match="at most 3 bytes"):
        readers.read_report(b'{"event":{}}', "topic", options, arrival_ms=0)
