from __future__ import annotations

import io
import tarfile
import zipfile

from hypothesis import given
from hypothesis import strategies as st

from service.packaging.archive import tar_gz, zip_archive

NAMES = st.from_regex(r"[a-z]{1,8}(/[a-zé]{1,8}){0,2}\.[a-z]{1,3}", fullmatch=True)
FILES = st.dictionaries(NAMES, st.binary(max_size=200), max_size=6)


def unpacked(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]


@given(FILES)
def test_what_goes_in_comes_out(files):
    assert unpacked(tar_gz(files)) == files
    with zipfile.ZipFile(io.BytesIO(zip_archive(files))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files


@given(FILES)
def test_the_order_of_files_changes_no_byte(files):
    turned = dict(reversed(files.items()))
    assert tar_gz(files) == tar_gz(turned)
    assert zip_archive(files) == zip_archive(turned)


def test_archives_hold_no_time_and_nobodys_name():
    with tarfile.open(fileobj=io.BytesIO(tar_gz({"a": b"1"})), mode="r:gz") as tar:
        (entry,) = tar
    assert (entry.mtime, entry.uid, entry.uname, entry.mode) == (315_532_800, 0, "", 0o644)
    assert tar_gz({"a": b"1"})[4:8] == bytes(4)
    with zipfile.ZipFile(io.BytesIO(zip_archive({"a": b"1"}))) as archive:
        (info,) = archive.infolist()
    assert info.date_time == (1980, 1, 1, 0, 0, 0)


def test_a_zip_can_be_read_as_a_stream():
    with zipfile.ZipFile(io.BytesIO(zip_archive({"a": b"1" * 99, "b": b""}))) as archive:
        assert all(not entry.flag_bits & 0x08 for entry in archive.infolist())
