"""The door: who asks, how often, and whether it may; before a byte of a body is read.

Pure ASGI, because it stands before every request: a dictionary look-up, a hash and a subtraction.
"""

from __future__ import annotations

import re

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.access.clients import client_of
from service.access.rate_limit import RateLimiter, retry_after_s
from service.access.scopes import Demands, OpenPaths
from service.access.scopes import Scope as TokenScope
from service.access.tokens import Token, TokenBook
from service.errors import (
    ForbiddenError,
    HeadTooLargeError,
    NotFoundError,
    RateLimitedError,
    RequestError,
    UnauthorizedError,
)
from service.problems import answer_error
from service.request_identity import identity_of

_SCHEME = b"bearer "
# Who has no address: a test's client, or a socket of the same machine.
_NOWHERE = "local"
# No route has one in its path, yet the router's expressions let a line break pass at the end.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Door:
    """Refuses what may not come in.

    Args:
        app: What answers.
        open_paths: Paths that need no token and are not counted against a client.
        book: The tokens, None where none are asked for.
        limiter: Counts requests, None where nothing limits them.
        max_headers: Headers of one request, at most.
        max_head_bytes: Bytes of their names and values, and of the path and query, at most.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        open_paths: OpenPaths,
        book: TokenBook | None,
        limiter: RateLimiter | None,
        max_headers: int,
        max_head_bytes: int,
    ) -> None:
        self._app = app
        self._open_paths = open_paths
        self._book = book
        self._limiter = limiter
        self._max_headers = max_headers
        self._max_head_bytes = max_head_bytes
        self._demands: Demands | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if scope["type"] == "http":
            try:
                self._admit(scope)
            except RequestError as error:
                response = answer_error(Request(scope), error)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._check_head(scope, headers)
        if self._book is not None or self._limiter is not None:
            self._check_client(scope, headers)
        if _CONTROL.search(scope["path"]):
            raise NotFoundError("expected a path without control characters; /docs lists the paths")

    def _check_client(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> None:
        demands = self._demands
        if demands is None:
            # Routes are complete when the first request comes, not when middleware is made.
            demands = self._demands = Demands(scope["app"].routes, self._open_paths)
        needed = demands.of(scope["method"], scope["path"])
        if scope["path"] in self._open_paths:
            return
        presented = _bearer(headers)
        token = None
        if self._book is not None and presented is not None:
            token = self._book.find(presented)
        self._limit(scope, token)
        if self._book is None or needed is None:
            return
        if token is None:
            raise _unknown(presented)
        identity = identity_of(scope)
        if identity is not None:
            identity.token_name = token.name
        if not needed & token.scopes:
            raise _lacking(token, needed)

    def _check_head(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> None:
        if len(headers) > self._max_headers:
            raise HeadTooLargeError(
                f"expected at most {self._max_headers} headers, got {len(headers)}"
            )
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        for name, value in headers:
            size += len(name) + len(value)
        if size > self._max_head_bytes:
            raise HeadTooLargeError(
                f"expected a path, a query and headers of at most {self._max_head_bytes} bytes "
                f"together, got {size}"
            )

    def _limit(self, scope: Scope, token: Token | None) -> None:
        """Count the request against its token, else against where it comes from."""
        if self._limiter is None:
            return
        if token is not None:
            client = f"token {token.name}"
        else:
            address = scope.get("client")
            client = client_of(address[0]) if address else _NOWHERE
        wait_s = self._limiter.admit(client)
        if wait_s > 0:
            after_s = retry_after_s(wait_s)
            raise RateLimitedError(
                f"this client asks more often than it may; ask again in {after_s} s", after_s
            )


def _bearer(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """The token of a request; None where there is none, or two headers leave it open which."""
    found: bytes | None = None
    for name, value in headers:
        if name == b"authorization":
            if found is not None:
                return None
            if value[: len(_SCHEME)].lower() != _SCHEME:
                return None
            found = value[len(_SCHEME) :].strip()
    return found


def _unknown(presented: bytes | None) -> UnauthorizedError:
    if presented is None:
        return UnauthorizedError(
            "expected the header Authorization: Bearer with a token, found none", presented=False
        )
    return UnauthorizedError(
        "expected a token that this service knows; this one is unknown or no longer holds",
        presented=True,
    )


def _lacking(token: Token, needed: frozenset[TokenScope]) -> ForbiddenError:
    scope = " ".join(sorted(needed))
    held = ", ".join(sorted(token.scopes))
    return ForbiddenError(
        f"expected a token with scope {scope}; the one of {token.name!r} has {held}", scope
    )
