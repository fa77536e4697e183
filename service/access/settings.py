"""Settings of the door and the lock: tokens, TLS, limits of clients and connections."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from service.access.scopes import OpenPaths

# Whoever runs the service reaches these without a token.
PLATFORM_PATHS = ("/healthz", "/readyz", "/metrics", "/v2/health/*", "/ric/v1/*", "/dme/*")


class AccessSettings(BaseSettings):
    """The part of the settings that decides who comes in."""

    token_file: Path | None = Field(
        None,
        description="File of bearer tokens, read again when it changes; unset: no token is asked "
        "for.",
    )
    open_access: bool = Field(
        False,
        description="Let in whoever reaches the port. Without it, and without a token file or a "
        "client CA, the service starts on loopback addresses only.",
    )
    open_paths: Annotated[tuple[str, ...], NoDecode] = Field(
        PLATFORM_PATHS,
        description="Paths that need no token, separated by commas; a * at the end stands for any "
        "rest.",
    )
    tls_certificate: Path | None = Field(
        None,
        description="Certificate chain (PEM) to serve HTTPS with, read again when it changes; "
        "unset: HTTP.",
    )
    tls_key: Path | None = Field(
        None, description="Its private key (PEM, no passphrase); unset: in the certificate's file."
    )
    tls_client_ca: Path | None = Field(
        None,
        description="CA certificates (PEM) of clients: a client whose certificate none of them "
        "signed cannot connect. Unset: clients need no certificate.",
    )
    reload_poll_seconds: float = Field(
        5.0,
        gt=0,
        description="Time between two looks at the files of tokens, certificates and models.",
    )
    rate_limit_per_second: float | None = Field(
        None,
        gt=0,
        description="Requests a second that one client (its token, else its address or IPv6 "
        "network) may make; "
        "more are refused with 429. Unset: no limit.",
    )
    rate_limit_burst: int | None = Field(
        None,
        ge=1,
        description="Requests that one client may make at once; unset: what it may make in a "
        "second.",
    )
    rate_limit_clients: int = Field(
        10_000,
        ge=1,
        description="Clients whose requests are counted each by itself; further ones together.",
    )
    access_log: bool = Field(
        True, description="Write one line of JSON a request to standard output."
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Addresses or networks of proxies whose X-Forwarded-For names the client, "
        "separated by commas; unset: the client is whoever connects.",
    )
    max_connections: int = Field(
        16_384,
        ge=1,
        description="Connections at a time; more are closed at once. The process needs as many "
        "file descriptors.",
    )
    keep_alive_seconds: int = Field(
        75, ge=1, description="Time after which a connection that asks nothing more is closed."
    )
    head_seconds: int = Field(
        20,
        ge=1,
        description="Time for a TLS handshake, for the first request of a connection, and for the "
        "head of each, to arrive; and for the rest of one that was answered before it was whole.",
    )
    answer_seconds: float = Field(
        120.0,
        gt=0,
        description="Time that a client has to take what was written for it; a slower one is cut "
        "off.",
    )
    max_head_bytes: int = Field(
        32 * 1024,
        ge=1024,
        description="Bytes of a request's line and headers; more are refused with 431.",
    )
    max_headers: int = Field(
        100, ge=8, description="Headers of one request; more are refused with 431."
    )

    @field_validator("open_paths", "trusted_proxies", mode="before")
    @classmethod
    def _list_of_words(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator(
        "token_file",
        "tls_certificate",
        "tls_key",
        "tls_client_ca",
        "rate_limit_per_second",
        "rate_limit_burst",
        mode="before",
    )
    @classmethod
    def _nothing_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("open_paths")
    @classmethod
    def _sound_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        OpenPaths(value)
        return value

    @model_validator(mode="after")
    def _tls_is_whole(self) -> AccessSettings:
        if self.tls_certificate is None and (self.tls_key or self.tls_client_ca):
            raise ValueError(
                "RANCAST_TLS_KEY and RANCAST_TLS_CLIENT_CA need RANCAST_TLS_CERTIFICATE; set it too"
            )
        return self

    def burst(self) -> int:
        """Requests that one client may make at once."""
        return self.rate_limit_burst or max(1, math.ceil(self.rate_limit_per_second or 1))
