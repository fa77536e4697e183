from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.build_control_plane import BINARIES
from tests.cluster.control_plane import Certificate, ControlPlane, ControlPlaneError, free_ports

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here")


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@needs_openssl
def test_part_that_dies_ends_the_start_with_its_log(tmp_path: Path) -> None:
    for name in BINARIES:
        program(tmp_path / "bin" / name, "echo no such flag >&2; exit 3")
    plane = ControlPlane(tmp_path / "bin", tmp_path / "plane")
    with pytest.raises(ControlPlaneError, match=r"(?s)ended with status 3.*no such flag"):
        plane.start()
    assert plane.processes == {}


@needs_openssl
def test_certificate_holds_for_loopback(tmp_path: Path) -> None:
    made = Certificate.make(tmp_path)
    trust = ssl.create_default_context(cafile=str(made.certificate))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = made.server_context().wrap_bio(to_server, to_client, server_side=True)
    client = trust.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for side in (client, server) * 3:
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.getpeercert()


def test_missing_openssl_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ControlPlaneError, match="expected openssl on PATH"):
        ControlPlane(tmp_path, tmp_path / "plane").start()


def test_parts_end_in_the_order_in_which_they_need_each_other(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, tmp_path)
    ended = tmp_path / "ended"
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        words = f"trap 'echo {name} >>{ended}; exit' TERM; echo up; while :; do sleep 0.02; done"
        process = subprocess.Popen([program(tmp_path / name, words)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout as output:
            assert output.readline() == b"up\n"
        plane.processes[name] = process
    plane.stop()
    assert ended.read_text().split() == ["kube-scheduler", "kube-apiserver", "etcd"]


def test_free_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as each:
            each.bind(("127.0.0.1", port))
