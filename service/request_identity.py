"""Which request this is: its own id, and the trace that it belongs to.

A client, or a proxy before us, may name both: `X-Request-Id`, and `traceparent` after the W3C's
Trace Context (Recommendation, section 3.2). What is not sound is not taken, because both end up in
logs and in answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REQUEST_ID_HEADER = "X-Request-Id"
_SCOPE_KEY = "rancast.identity"
_INSTANCE = "urn:rancast:request:"
# Characters that stand in a URN as they are.
_SOUND_ID = re.compile(rb"[A-Za-z0-9._~:@=+-]{1,128}")
# Version, trace-id, parent-id, trace-flags; later versions may add fields behind.
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE = b"0" * 32
_NO_PARENT = b"0" * 16
_SAMPLED_BIT = 0x01


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace that a request belongs to, with ours as its newest part.

    Attributes:
        trace_id: 32 hexadecimal digits, as they came.
        span_id: 16 hexadecimal digits, of this request here.
        sampled: Whether the caller recorded it.
    """

    trace_id: str
    span_id: str
    sampled: bool

    @property
    def header(self) -> bytes:
        """The value of `traceparent` that continues the trace."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}".encode()


@dataclass(slots=True)
class RequestIdentity:
    """Which request this is, and who asks.

    Attributes:
        request_id: As the client named it, else one of ours.
        trace: Where the client named one that is sound.
        token_name: Of the token that let it in, once that is known.
    """

    request_id: str
    trace: TraceContext | None
    token_name: str | None = None


def identify(headers: Sequence[tuple[bytes, bytes]]) -> RequestIdentity:
    """The identity that a request's headers give it.

    Args:
        headers: As ASGI has them, names in lower case.
    """
    request_id: str | None = None
    parents = 0
    trace: TraceContext | None = None
    for name, value in headers:
        if name == b"x-request-id":
            if request_id is None and _SOUND_ID.fullmatch(value):
                request_id = value.decode("ascii")
        elif name == b"traceparent":
            parents += 1
            trace = parse_traceparent(value) if parents == 1 else None
    return RequestIdentity(request_id or os.urandom(12).hex(), trace)


def parse_traceparent(value: bytes) -> TraceContext | None:
    """The context that a `traceparent` names, with a new span of ours; None if it is not sound."""
    found = _TRACEPARENT.fullmatch(value.strip())
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    if version == b"ff" or (version == b"00" and more is not None):
        return None
    if trace_id == _NO_TRACE or parent_id == _NO_PARENT:
        return None
    sampled = bool(int(flags, 16) & _SAMPLED_BIT)
    return TraceContext(trace_id.decode("ascii"), os.urandom(8).hex(), sampled)


def keep_identity(scope: Any, identity: RequestIdentity) -> None:
    """Put the identity where the rest of this request finds it."""
    scope[_SCOPE_KEY] = identity


def identity_of(scope: Mapping[str, Any]) -> RequestIdentity | None:
    """The identity of a request, None where nothing has identified it."""
    identity: RequestIdentity | None = scope.get(_SCOPE_KEY)
    return identity


def request_id_of(scope: Mapping[str, Any]) -> str | None:
    """The id of a request, None where nothing has identified it."""
    identity = identity_of(scope)
    return None if identity is None else identity.request_id


def instance_of(scope: Mapping[str, Any]) -> str | None:
    """The request as the `instance` of a problem document (RFC 9457, section 3.1.5)."""
    request_id = request_id_of(scope)
    return None if request_id is None else instance_of_id(request_id)


def instance_of_id(request_id: str) -> str:
    """The request of this id, likewise."""
    return _INSTANCE + request_id
