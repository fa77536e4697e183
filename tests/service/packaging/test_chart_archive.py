from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from service.packaging import chart_archive
from service.packaging.archive import tar_gz
from service.packaging.chart_archive import check_chart, open_chart
from service.packaging.errors import PackageError

HEAD = b"apiVersion: v2\nname: cast\n"
CHART = {"cast/Chart.yaml": HEAD + b"version: 1.0.0\n", "cast/values.yaml": b"a: 1\n"}


def test_a_package_is_read_with_its_values():
    chart = open_chart(tar_gz(CHART), "cast-1.0.0.tgz")
    assert (chart.name, chart.version, chart.values) == ("cast", "1.0.0", {"a": 1})
    assert check_chart(tar_gz(CHART), "cast-1.0.0.tgz") == []


def linked() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("cast/Chart.yaml")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    return packed.getvalue()


def sparse() -> bytes:
    """A file of a tebibyte of holes, in 512 bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("cast/Chart.yaml")
        entry.type = tarfile.GNUTYPE_SPARSE
        header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
        header[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        assert tar.fileobj is not None
        tar.fileobj.write(bytes(header))
    return packed.getvalue()


def doubled() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("cast/Chart.yaml"))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"no tar", "gzipped tar"),
        (gzip.compress(b"no tar"), "gzipped tar"),
        (tar_gz(CHART)[:-20], "gzipped tar"),
        (tar_gz({}), "one folder"),
        (tar_gz({**CHART, "other/a": b""}), "one folder"),
        (tar_gz({"Chart.yaml": b""}), "plain files in one folder"),
        (tar_gz({**CHART, "cast/../../a": b""}), "paths inside the chart"),
        (tar_gz({**CHART, "/cast/a": b""}), "paths inside the chart"),
        (linked(), "plain files"),
        (sparse(), "plain files"),
        (doubled(), "each file once"),
        (tar_gz({"other/Chart.yaml": CHART["cast/Chart.yaml"]}), "the folder cast"),
    ],
)
def test_a_damaged_package_is_refused_with_what_was_expected(content, complaint):
    with pytest.raises(PackageError, match=complaint):
        open_chart(content, "cast-1.0.0.tgz")
    (finding,) = check_chart(content, "cast-1.0.0.tgz")
    assert finding.place == ""


def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(chart_archive, "MOST_BYTES", 1_000)
    with pytest.raises(PackageError, match="at most 1000 bytes"):
        open_chart(tar_gz({**CHART, "cast/a": bytes(100_000)}), "cast-1.0.0.tgz")


def test_a_file_name_that_helm_would_not_find_is_told():
    (finding,) = check_chart(tar_gz(CHART), "cast.tgz")
    assert "cast-1.0.0.tgz" in finding.reason


def test_build_metadata_is_told():
    files = {"cast/Chart.yaml": HEAD + b"version: 1.0.0+a\n"}
    (finding,) = check_chart(tar_gz(files), "cast-1.0.0+a.tgz")
    assert "plus sign" in finding.reason
