"""`python -m service.healthcheck`: does the service of this environment live? For containers.

Asks `/healthz` on this machine, over TLS where the service speaks it. It knows the service by the
same variables (`RANCAST_HOST`, `RANCAST_PORT`, `RANCAST_TLS_…`), not by options of the command
line.

It runs every few seconds beside a service that needs the processor, so it reads those variables
itself: the settings' own module takes ten times as long to import as the question takes.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass

TIMEOUT_S = 4.0
PATH = "/healthz"
_PREFIX = "RANCAST_"
# Where a service that listens on every address is reached from its own machine.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_OK = 200


@dataclass(frozen=True)
class Endpoint:
    """Where the service listens, and what it asks of who calls.

    Attributes:
        host: Address to call.
        port: Port to call.
        has_tls: Whether it speaks TLS.
        demands_certificate: Whether it answers clients with a certificate alone.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    has_tls: bool = False
    demands_certificate: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Endpoint:
        """That of the service which was started with these variables.

        Raises:
            ValueError: The port is none that could be called.
        """
        # Names count whatever their letters' size, and a later one wins, as in the settings.
        said = {name.upper(): value for name, value in environment.items() if value}
        host = said.get(f"{_PREFIX}HOST", cls.host)
        port = said.get(f"{_PREFIX}PORT", str(cls.port))
        if not port.isdecimal() or not 0 < int(port) <= 65535:
            raise ValueError(f"expected a port of 1 to 65535 in {_PREFIX}PORT, got {port!r}")
        return cls(
            _LOOPBACK.get(host, host),
            int(port),
            f"{_PREFIX}TLS_CERTIFICATE" in said,
            f"{_PREFIX}TLS_CLIENT_CA" in said,
        )


def check(endpoint: Endpoint, timeout_s: float = TIMEOUT_S) -> None:
    """Return if the service lives.

    A service that demands a certificate is not asked, because a container has none to show: that it
    answers the greeting of TLS tells that its event loop runs, which a mere connection would not.

    Args:
        endpoint: Where it listens.
        timeout_s: How long each of its answers may take.

    Raises:
        OSError: It cannot be reached, or does not speak as it should.
        http.client.HTTPException: It speaks no HTTP.
        RuntimeError: It says that it does not live.
    """
    context = _context() if endpoint.has_tls else None
    if context is not None and endpoint.demands_certificate:
        address = endpoint.host, endpoint.port
        with (
            socket.create_connection(address, timeout=timeout_s) as plain,
            # In TLS 1.3 the server's part is complete before the client's certificate is due.
            context.wrap_socket(plain),
        ):
            return
    connection = (
        http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=timeout_s)
        if context is None
        else http.client.HTTPSConnection(
            endpoint.host, endpoint.port, timeout=timeout_s, context=context
        )
    )
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", errors="replace")
    finally:
        connection.close()
    if answer.status != _OK:
        raise RuntimeError(f"expected {_OK} of {PATH}, got {answer.status}: {text}")


def _context() -> ssl.SSLContext:
    """Trusts whoever listens: it is this machine, whose certificate has the name of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def main() -> int:
    """Check the service of this environment; 0 if it lives, else 1, with the reason on stderr."""
    try:
        check(Endpoint.of(os.environ))
    except (OSError, ValueError, RuntimeError, http.client.HTTPException) as error:
        sys.stderr.write(f"rancast: {error or type(error).__name__}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
