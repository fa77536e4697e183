from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from tests.cluster.build_control_plane import (
    BINARIES,
    ControlPlaneUnavailableError,
    Workshop,
    build,
    cache_folder,
    main,
)

Usage = namedtuple("Usage", "total used free")


def finish(folder: Path) -> Workshop:
    """Put something into the places of the binaries."""
    shop = Workshop(folder)
    shop.bin.mkdir(parents=True)
    for name in BINARIES:
        (shop.bin / name).write_text("#!/bin/sh\n")
        (shop.bin / name).chmod(0o755)
    return shop


def test_cache_is_where_the_user_says_or_among_the_users_caches() -> None:
    assert cache_folder({"CONTROL_PLANE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/rancast/control-plane")
    assert cache_folder({}) == Path.home() / ".cache" / "rancast" / "control-plane"


def test_what_is_there_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = finish(tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    assert build(tmp_path) == shop.bin


def test_one_missing_binary_is_missing_the_control_plane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = finish(tmp_path)
    (shop.bin / "kube-scheduler").unlink()
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ControlPlaneUnavailableError, match=r"apt-get, dpkg, tar.*KUBECONFIG"):
        build(tmp_path)


def test_full_disk_is_told_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def which(name: str) -> str:
        return f"/usr/bin/{name}"

    monkeypatch.setattr("tests.cluster.build_control_plane.shutil.which", which)
    usage = Usage(10**9, 10**9, 10**8)
    monkeypatch.setattr("tests.cluster.build_control_plane.shutil.disk_usage", lambda _: usage)
    with pytest.raises(ControlPlaneUnavailableError, match=r"got 0\.1; set CONTROL_PLANE_CACHE"):
        build(tmp_path)


def test_nothing_is_built_beside_the_users_own_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "mine")
    monkeypatch.setenv("CONTROL_PLANE_CACHE", str(tmp_path / "cache"))
    assert main() == 0
    assert "KUBECONFIG names mine" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def test_reason_is_told_where_it_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("CONTROL_PLANE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.devnull)
    assert main() == 1
    assert "apt-get" in capsys.readouterr().err
