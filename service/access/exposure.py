"""Secure by default: no open door on a network, unless the operator says so."""

from __future__ import annotations

import ipaddress

from service.access.settings import AccessSettings
from service.errors import StartupError


def refuse_exposure(settings: AccessSettings, host: str, address: str) -> None:
    """Refuse to listen where anyone could call without having to show anything.

    Args:
        settings: What the operator chose.
        host: Where to listen, as the operator wrote it.
        address: The same, as a numeric address.

    Raises:
        StartupError: It is no loopback address, nothing is asked of clients, and nobody said that
            this is meant.
    """
    if settings.open_access or settings.token_file or settings.tls_client_ca:
        return
    # An address of a link may carry its zone behind a percent sign.
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return
    raise StartupError(
        f"refusing to serve everyone who reaches {host}: name a token file (RANCAST_TOKEN_FILE) or "
        "a client CA (RANCAST_TLS_CLIENT_CA), listen on 127.0.0.1, or say that anyone may call: "
        "RANCAST_OPEN_ACCESS=true",
        exit_code=2,
    )
