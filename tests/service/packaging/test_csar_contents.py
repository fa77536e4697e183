"""How a package is packed: what cannot be read is said, and what can is judged."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.packaging.archive import zip_archive
from service.packaging.csar_rules import check_csar

SMALL = zip_archive({"asd.mf": b"a: b\n", "TOSCA-Metadata/TOSCA.meta": b"a: b\n"})


def packed(entry: zipfile.ZipInfo, content: bytes = b"a") -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(entry, content)
    return target.getvalue()


@given(
    st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_no_zip_file_is_too_damaged(changes):
    content = bytearray(SMALL)
    for place, value in changes:
        content[place] = value
    for finding in check_csar(bytes(content), "a.csar"):
        assert finding.reason


@pytest.mark.parametrize("name", [b"asd.mf", b"TOSCA-Metadata/TOSCA.meta"])
def test_a_name_in_no_encoding_is_said(name):
    entry = zipfile.ZipInfo("\u00e9" + name.decode()[1:])
    content = packed(entry).replace("\u00e9".encode(), b"\xff\xff")
    (finding,) = check_csar(content, "a.csar")
    assert "expected a zip file" in finding.reason


def test_a_directory_that_points_in_front_of_the_file_is_said():
    # Where the directory begins stands 6 bytes before the end.
    content = SMALL[:-6] + (1 << 24).to_bytes(4, "little") + SMALL[-2:]
    (finding,) = check_csar(content, "a.csar")
    assert "expected a zip file" in finding.reason


def test_a_link_is_told():
    entry = zipfile.ZipInfo("a")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    findings = check_csar(packed(entry, b"/etc/passwd"), "a.csar")
    assert [each for each in findings if each.place == "a" and "got a link" in each.reason]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_the_manager_cannot_read_is_told(method):
    entry = zipfile.ZipInfo("a")
    entry.compress_type = method
    findings = check_csar(packed(entry), "a.csar")
    assert [each for each in findings if each.place == "a" and "deflated" in each.reason]
