"""Certificates made on the spot, by the openssl that Python's own TLS rests on in most places."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """A CA of a test.

    Args:
        folder: Where it writes.
        name: Its common name.
    """

    def __init__(self, folder: Path, name: str = "a-ca") -> None:
        self._folder = folder
        self._number = 0
        self.pair = self._paths(name)
        _openssl("req", "-x509", *_NEW_KEY, *_files(self.pair), "-subj", f"/CN={name}")

    @property
    def certificate(self) -> Path:
        """What others trust."""
        return self.pair.certificate

    def issue(self, name: str) -> Pair:
        """A certificate for 127.0.0.1, of a server or a client."""
        pair = self._paths(name)
        _openssl(
            *("req", "-x509", *_NEW_KEY, *_files(pair), "-subj", f"/CN={name}"),
            *("-CA", str(self.pair.certificate), "-CAkey", str(self.pair.key)),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"),
        )
        return pair

    def _paths(self, name: str) -> Pair:
        self._number += 1
        stem = f"{name}-{self._number}"
        return Pair(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def _files(pair: Pair) -> tuple[str, ...]:
    return "-out", str(pair.certificate), "-keyout", str(pair.key)


def _openssl(*arguments: str) -> None:
    binary = shutil.which("openssl")
    if binary is None:
        pytest.skip("there is no openssl to make certificates with")
    made = subprocess.run(
        [binary, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert made.returncode == 0, made.stderr


def encrypt(key: Path, encrypted: Path) -> None:
    """Write the key anew, under a passphrase."""
    _openssl(
        *("pkey", "-in", str(key), "-out", str(encrypted)), *("-aes256", "-passout", "pass:word")
    )
