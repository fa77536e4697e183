from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.packaging.chart import Chart, chart_of, find_chart, package_chart, read_chart
from service.packaging.chart_archive import check_chart
from service.packaging.errors import PackageError
from tests.helm.conftest import CHART, Helm

HEAD = b"name: a\nversion: 1.0.0\n"
NEEDY = b"apiVersion: v2\ndependencies: [{name: dep, version: 1.0.0}]\n"


def entries(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        return {e.name: tar.extractfile(e).read() for e in tar if e.isfile()}  # type: ignore[union-attr]


def packaged(helm: Helm, folder: Path, out: Path) -> dict[str, bytes]:
    """What `helm package` makes of the same folder."""
    answer = helm.run("package", str(folder), "--destination", str(out))
    assert answer.returncode == 0, answer.stderr
    (path,) = out.glob("*.tgz")
    return entries(path.read_bytes())


def test_our_chart_is_found_beside_the_sources():
    assert find_chart(None) == CHART


@pytest.mark.parametrize("which", ["ours", "awkward"])
def test_helm_would_pack_the_same_files(helm, make_chart, tmp_path, which):
    awkward = {
        ".helmignore": "*.bak\nci/\n/only.txt\ndocs/*.md\n",
        "a.bak": "1",
        "ci/b.yaml": "a: 1",
        "only.txt": "1",
        "deep/only.txt": "1",
        "docs/a.md": "1",
        "docs/more/b.md": "1",
        "templates/.hidden.yaml": "{{ fail }}",
        "templates/_help.tpl": "",
        "values.schema.json": "{}",
        "LICENSE": "1",
    }
    folder = CHART if which == "ours" else make_chart(awkward)
    ours = entries(package_chart(read_chart(folder)).content)
    theirs = packaged(helm, folder, tmp_path)
    assert set(ours) == set(theirs)
    # Helm writes Chart.yaml anew, in an order of its own.
    assert {name for name in ours if ours[name] != theirs[name]} == {
        name for name in ours if name.endswith("/Chart.yaml")
    }


def test_helm_takes_the_package(helm, tmp_path):
    package = package_chart(read_chart(CHART))
    path = tmp_path / package.file_name
    path.write_bytes(package.content)
    answer = helm.run("lint", "--strict", str(path), "--set", "access.open=true")
    assert answer.returncode == 0, answer.stdout
    shown = helm.run("show", "chart", str(path))
    assert yaml.safe_load(shown.stdout)["version"] == package.chart.version
    # Our chart wants to be told who may call.
    values = ("--set", "access.open=true")
    from_package = helm.run("template", "r", str(path), *values)
    assert from_package.returncode == 0, from_package.stderr
    from_folder = helm.run("template", "r", str(CHART), *values)
    plain = read_chart(CHART).version
    assert from_package.stdout.replace(package.chart.version, plain) == from_folder.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which it is a chart repository."""
    folder = tmp_path / "repository"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_repository_gives_the_very_content_that_is_asked_for(helm, make_chart, repository):
    # As the Kubernetes participant of policy-clamp pulls: by repository and exact version.
    folder, address = repository
    packages = [package_chart(read_chart(make_chart({"NOTICE": text}))) for text in ("a", "b")]
    for package in packages:
        (folder / package.file_name).write_bytes(package.content)
    answer = helm.run("repo", "index", str(folder), "--url", address)
    assert answer.returncode == 0, answer.stderr
    for package in packages:
        version = package.chart.version
        shown = helm.run("show", "chart", "cast", "--repo", address, "--version", version)
        assert shown.returncode == 0, shown.stderr
        assert yaml.safe_load(shown.stdout)["version"] == version


def test_any_changed_file_changes_the_version_and_nothing_else_does(make_chart):
    first = package_chart(read_chart(make_chart()))
    os.utime(make_chart() / "values.yaml", (1, 1))
    assert package_chart(read_chart(make_chart())).content == first.content
    other = package_chart(read_chart(make_chart({"templates/NOTES.txt": "Hello"})))
    assert other.chart.version != first.chart.version
    assert other.content != first.content


def test_what_is_left_out_does_not_change_the_version(make_chart):
    first = package_chart(read_chart(make_chart({".helmignore": "ci/"})))
    second = package_chart(read_chart(make_chart({"ci/values.yaml": "a: 1"})))
    assert second.content == first.content


def test_the_version_replaces_the_old_one_and_comments_stay(make_chart):
    package = package_chart(read_chart(make_chart()))
    text = package.chart.files["Chart.yaml"].decode()
    assert "# A comment that stays." in text
    assert f"version: {package.chart.version}\n" in text
    assert 'appVersion: "1.0.0"' in text
    assert package.file_name == f"cast-{package.chart.version}.tgz"
    assert check_chart(package.content, package.file_name) == []


def test_without_a_chart_it_says_where_one_could_be(tmp_path):
    with pytest.raises(PackageError, match="name the folder of a chart"):
        find_chart(tmp_path)


def test_an_installed_package_says_that_it_brings_no_chart(monkeypatch, tmp_path):
    monkeypatch.setattr("service.__file__", str(tmp_path / "service" / "__init__.py"))
    with pytest.raises(PackageError, match=r"brings no chart.*--chart"):
        find_chart(None)


def test_a_link_is_refused(make_chart):
    folder = make_chart()
    (folder / "link.yaml").symlink_to(folder / "values.yaml")
    with pytest.raises(PackageError, match=r"got a link, link\.yaml"):
        read_chart(folder)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, r"expected Chart\.yaml"),
        ({"Chart.yaml": b"{"}, "YAML"),
        ({"Chart.yaml": b"\xff"}, "YAML"),
        ({"Chart.yaml": b"- a"}, "a list"),
        ({"Chart.yaml": b"version: 1.0.0"}, "expected a name"),
        ({"Chart.yaml": b"name: Upper\nversion: 1.0.0"}, "'Upper'"),
        ({"Chart.yaml": b"name: a\nversion: 1.0"}, "semantic version"),
        ({"Chart.yaml": HEAD + b"apiVersion: v2", "values.yaml": b"[]"}, "a list"),
        ({"Chart.yaml": HEAD + b"apiVersion: v2", "values.yaml": b"a: 2026-02-30"}, "day is out"),
        ({"Chart.yaml": HEAD + b"apiVersion: v2", "values.yaml": b"a: " + b"[" * 1_000}, "YAML"),
        ({"Chart.yaml": HEAD}, "apiVersion v1 or v2"),
        ({"Chart.yaml": HEAD + b"apiVersion: v3"}, "'v3'"),
        ({"Chart.yaml": HEAD + b"apiVersion: v2\ntype: library"}, "installs no other"),
        ({"Chart.yaml": HEAD + NEEDY}, "helm dependency build"),
        ({"Chart.yaml": HEAD + NEEDY, "charts/other-1.0.0.tgz": b""}, r"none of \['dep'\]"),
    ],
)
def test_what_is_no_chart_is_refused(files, complaint):
    with pytest.raises(PackageError, match=complaint):
        chart_of(files, "here")


def test_a_version_in_an_unusual_place_is_not_guessed_at():
    chart = chart_of({"Chart.yaml": b'{apiVersion: v2, name: a, version: "1.0.0"}'}, "here")
    assert isinstance(chart, Chart)
    with pytest.raises(PackageError, match="one line that begins with version"):
        package_chart(chart)


@pytest.mark.parametrize("there", ["charts/dep-1.0.0.tgz", "charts/dep/Chart.yaml"])
def test_a_chart_that_brings_what_it_depends_on_is_taken(there):
    assert chart_of({"Chart.yaml": HEAD + NEEDY, there: b""}, "here").name == "a"


def test_a_pipe_in_the_folder_is_refused_and_not_waited_for(make_chart):
    folder = make_chart()
    os.mkfifo(folder / "pipe")
    with pytest.raises(PackageError, match="got pipe, a device or pipe"):
        read_chart(folder)
