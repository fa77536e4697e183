"""HTTPS, and mutual TLS: contexts from files, replaced while connections are open.

Connections that are open keep what they were made with; new ones get what the files hold by then,
the client CA included. Files that cannot be used change nothing.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from service.access.settings import AccessSettings
from service.errors import ServiceError

_HTTP_1 = ["http/1.1"]


class TlsFilesError(ServiceError):
    """Certificate, key or client CA cannot be used; the message names the file and the setting."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What HTTPS is served with.

    Attributes:
        certificate: Certificate chain.
        key: Its private key, None where the certificate's file has it.
        client_ca: CA certificates of clients, None where clients need no certificate.
    """

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None

    @classmethod
    def of(cls, settings: AccessSettings) -> TlsFiles | None:
        """Those that the settings name, None where they ask for plain HTTP."""
        if settings.tls_certificate is None:
            return None
        return cls(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)

    @property
    def paths(self) -> Sequence[Path]:
        """All files."""
        return [path for path in (self.certificate, self.key, self.client_ca) if path is not None]


class ServerTls:
    """The contexts of one server.

    Attributes:
        files: Where they come from.
        context: What a new connection is made with.

    Args:
        files: Where they come from.

    Raises:
        TlsFilesError: A file is missing or cannot be used, or key and certificate do not belong
            together.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self.context = _context(files)

    def reload(self) -> None:
        """Make new connections with what the files hold now.

        Raises:
            TlsFilesError: They cannot be used; connections are made as before.
        """
        self.context = _context(self.files)


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(_HTTP_1)
    for setting, path in (
        ("RANCAST_TLS_CERTIFICATE", files.certificate),
        ("RANCAST_TLS_KEY", files.key),
        ("RANCAST_TLS_CLIENT_CA", files.client_ca),
    ):
        if path is not None:
            _check_readable(setting, path)
    _load_chain(context, files)
    if files.client_ca is not None:
        try:
            context.load_verify_locations(cafile=files.client_ca)
        except OSError as error:
            raise TlsFilesError(
                f"expected CA certificates in PEM in {files.client_ca} (RANCAST_TLS_CLIENT_CA): "
                f"{_reason(error)}"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _check_readable(setting: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise TlsFilesError(
            f"expected a PEM file at {path} ({setting}), but it cannot be read: {error.strerror}"
        ) from error


def _load_chain(context: ssl.SSLContext, files: TlsFiles) -> None:
    key_file = files.key or files.certificate
    try:
        context.load_cert_chain(files.certificate, files.key, password=_refuse_passphrase)
    except _PassphraseNeededError:
        raise TlsFilesError(
            f"expected a private key without passphrase in {key_file} (RANCAST_TLS_KEY); take the "
            "passphrase off with openssl pkey"
        ) from None
    except OSError as error:  # SSLError is one; another where a file went after it was looked at
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise TlsFilesError(
                f"the private key in {key_file} does not belong to the certificate in "
                f"{files.certificate}; RANCAST_TLS_CERTIFICATE and RANCAST_TLS_KEY have to be a "
                "pair, and the server's certificate the first of its file"
            ) from error
        raise TlsFilesError(
            f"expected a certificate chain in {files.certificate} (RANCAST_TLS_CERTIFICATE) and "
            f"its private key in {key_file} (RANCAST_TLS_KEY), both in PEM: {_reason(error)}"
        ) from error


class _PassphraseNeededError(Exception):
    """Raised instead of asking the terminal."""


def _refuse_passphrase() -> NoReturn:
    raise _PassphraseNeededError


def _reason(error: OSError) -> str:
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    return (error.reason or str(error)).lower().replace("_", " ")
