from __future__ import annotations

import errno
import io
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import rancast
from service.packaging import cli
from service.packaging.manifest import MANIFEST_FILE

IMAGE = ("--image", "registry.example.org/ran/rancast:0.1.0")
URIS = ("--push-uri", "http://a.example/api/charts", "--pull-uri", "http://a.example/charts")


def run(*arguments: object, code: int = 0) -> Result:
    call = ["package", *(str(argument) for argument in arguments)]
    result = CliRunner().invoke(rancast.app, call)
    assert result.exit_code == code, result.output
    return result


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


@pytest.mark.parametrize("command", ["chart", "xapp", "csar", "check"])
def test_every_command_has_help(command):
    assert "Usage" in run(command, "--help").output


def test_what_is_written_is_found_fine(make_chart, tmp_path):
    out = tmp_path / "dist"
    chart = ("--chart", make_chart())
    run("chart", *chart, "--out", out)
    run("xapp", *IMAGE, "--set", "open_access=true", "--out", out)
    run("csar", *chart, *IMAGE, *URIS, "--out", out)
    names = {path.name for path in out.iterdir()}
    package = only(out, "cast-1.2.3-c*.tgz")
    assert names == {"config-file.json", "schema.json", "rancast.csar", package.name}
    output = run(
        "check", out / "config-file.json", out / "rancast.csar", package
    ).output.splitlines()
    assert len(output) == 3
    assert all(line.endswith(": fine") for line in output)


def test_our_own_chart_is_taken_where_none_is_named(tmp_path):
    run("chart", "--out", tmp_path)
    assert only(tmp_path, "rancast-*.tgz")


def test_what_is_wrong_is_said_and_ends_with_1(tmp_path):
    path = tmp_path / "rancast.csar"
    path.write_bytes(b"no zip")
    assert "expected a zip file" in run("check", path, code=1).output


def test_a_descriptor_is_checked_with_the_schema_that_is_named(tmp_path):
    run("xapp", *IMAGE, "--set", "open_access=true", "--out", tmp_path)
    schema = (tmp_path / "schema.json").rename(tmp_path / "other.json")
    assert "onboard both" in run("check", tmp_path / "config-file.json", code=1).output
    run("check", tmp_path / "config-file.json", "--schema", schema)


def test_a_byte_order_mark_is_said_which_dms_cli_stumbles_over(tmp_path):
    run("xapp", *IMAGE, "--set", "open_access=true", "--out", tmp_path)
    path = tmp_path / "config-file.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert "byte order mark" in run("check", path, code=1).output


def test_a_damaged_descriptor_is_said(tmp_path):
    path = tmp_path / "config-file.json"
    path.write_text("[]")
    assert "xApp's name" in run("check", path, code=1).output


def test_the_time_of_the_release_is_the_one_that_is_given(make_chart, tmp_path, monkeypatch):
    def manifest() -> bytes:
        run("csar", "--chart", make_chart(), *IMAGE, *URIS, "--out", tmp_path)
        with zipfile.ZipFile(io.BytesIO((tmp_path / "rancast.csar").read_bytes())) as archive:
            return archive.read(MANIFEST_FILE)

    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert b"release_date_time: 1980-01-01T00:00:00+00:00" in manifest()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    assert b"release_date_time: 2026-11-30T00:53:20+00:00" in manifest()


def test_files_of_ones_own_are_taken_along(make_chart, tmp_path):
    extra = tmp_path / "extra"
    job = extra / "Files" / "Dme" / "infoconsumers" / "pm.json"
    job.parent.mkdir(parents=True)
    job.write_text('{"info_type_id": "PmData", "job_owner": "a", "job_definition": {}}')
    call = ("csar", "--chart", make_chart(), *IMAGE, *URIS, "--extra", extra, "--out", tmp_path)
    run(*call)
    with zipfile.ZipFile(tmp_path / "rancast.csar") as archive:
        assert "Files/Dme/infoconsumers/pm.json" in archive.namelist()


@pytest.mark.parametrize(
    ("arguments", "environment", "complaint"),
    [
        (("xapp", *IMAGE, "--set", "open_access"), {}, "NAME=VALUE"),
        (("xapp", *IMAGE, "--set", "port=1", "--set", "port=2"), {}, "port twice"),
        (("xapp", "--image", "rancast"), {}, "with a tag or a digest"),
        (("xapp", *IMAGE), {}, "open_access=true"),
        (("xapp", *IMAGE, "--version", "1"), {}, "semantic version"),
        (("chart", "--chart", "nowhere"), {}, "name the folder of a chart"),
        (("csar", *IMAGE, *URIS), {"SOURCE_DATE_EPOCH": "now"}, "seconds since 1970"),
        (("csar", *IMAGE, *URIS, "--extra", "nowhere"), {}, "with Files/ in it"),
    ],
)
def test_what_cannot_be_packed_is_said_in_a_line(
    tmp_path, monkeypatch, arguments, environment, complaint
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    call = [*arguments, "--out", tmp_path / "out"]
    if arguments[0] == "xapp" and "--version" in arguments:
        call += ["--set", "open_access=true"]
    result = run(*call, code=2)
    assert complaint in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_link_among_files_of_ones_own_is_refused(make_chart, tmp_path):
    folder = tmp_path / "extra" / "Files" / "Dme" / "infoconsumers"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("{}")
    (folder / "pm.json").symlink_to(tmp_path / "secret")
    extra = ("--extra", tmp_path / "extra", "--out", tmp_path)
    result = run("csar", "--chart", make_chart(), *IMAGE, *URIS, *extra, code=2)
    assert "Files/Dme/infoconsumers/pm.json, which is a link" in result.output


def test_what_is_not_to_be_published_is_left_out(make_chart, tmp_path):
    call = ("csar", "--chart", make_chart(), *IMAGE, *URIS, "--out", tmp_path)
    run(*call, "--no-publish")
    with zipfile.ZipFile(tmp_path / "rancast.csar") as archive:
        assert not [name for name in archive.namelist() if name.startswith("Files/Sme/")]


def test_a_file_in_the_place_of_the_folder_is_said(make_chart, tmp_path):
    (tmp_path / "dist").write_text("")
    result = run("chart", "--chart", make_chart(), "--out", tmp_path / "dist", code=2)
    assert "expected a folder to write to" in result.output


def test_a_folder_in_the_place_of_the_file_is_said(make_chart, tmp_path):
    (tmp_path / "rancast.csar").mkdir()
    result = run("csar", "--chart", make_chart(), *IMAGE, *URIS, "--out", tmp_path, code=2)
    assert "got a folder" in result.output


def test_a_full_disk_leaves_the_old_package_whole(make_chart, tmp_path, monkeypatch):
    call = ("csar", "--chart", make_chart(), *IMAGE, *URIS, "--out", tmp_path / "out")
    run(*call)
    before = (tmp_path / "out" / "rancast.csar").read_bytes()

    def fill(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert "No space left" in run(*call, "--provider", "other", code=2).output
    assert (tmp_path / "out" / "rancast.csar").read_bytes() == before
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize("name", ["a.csar", "a.tgz"])
def test_a_huge_file_is_not_read_to_its_end(tmp_path, monkeypatch, name):
    monkeypatch.setattr(cli, "MOST_BYTES", 1_000)
    (tmp_path / name).write_bytes(bytes(1_001))
    assert "at most 1000 bytes" in run("check", tmp_path / name, code=2).output


def test_a_file_of_no_known_kind_is_said(tmp_path):
    assert "expected a .csar, a .tgz" in run("check", tmp_path / "a.zip", code=2).output
