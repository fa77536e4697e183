"""Who a client is, where it shows no token: what one subscriber has, not one of its addresses."""

from __future__ import annotations

import socket

_MAPPED = bytes(10) + b"\xff\xff"
_NETWORK_BYTES = 8


def client_of(address: str) -> str:
    """A name for whoever asks from an address.

    A network of IPv6 hands a subscriber 2**64 addresses (RFC 7421), all of which it may use at
    once, so the first 64 bits say who it is. An IPv4 address within IPv6 is that address.

    Args:
        address: IPv4, IPv6, or anything else, which names itself.
    """
    if ":" not in address:
        return address
    try:
        # An address of a link may carry its zone behind a percent sign.
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_MAPPED) :])
    network = packed[:_NETWORK_BYTES] + bytes(16 - _NETWORK_BYTES)
    return f"{socket.inet_ntop(socket.AF_INET6, network)}/64"
