"""How a client reaches its server."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from ssl import SSLContext

Token = str | Callable[[], str]

DEFAULT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the server is, and how calls are made.

    Attributes:
        base_url: Address of the service, such as `https://rancast.example/`.
        timeout_s: Seconds that a call may take, all tries together, where it states none; None: 10,
            of which the server is not told.
        token: Bearer token, or what gives the newest one before each try; not shown anywhere.
        tls: Certificates, the client's own among them; None: those that the machine trusts.
        most_attempts: Tries of one call.
        most_budget_ms: Largest latency budget that is stated to the server, which refuses one
            over its profile's bound; a longer timeout leaves room for tries.
    """

    base_url: str
    timeout_s: float | None = None
    token: Token | None = field(default=None, repr=False)
    tls: SSLContext | None = None
    most_attempts: int = 5
    most_budget_ms: float = 60_000.0

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"expected an address with http:// or https://, got {self.base_url!r}")
        for name in ("timeout_s", "most_budget_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"expected a positive {name}, got {value}")
        if self.most_attempts < 1:
            raise ValueError(f"expected at least one attempt, got {self.most_attempts}")

    def authorization(self) -> dict[str, str]:
        """The header that carries the token, if there is one."""
        token = self.token() if callable(self.token) else self.token
        return {} if token is None else {"Authorization": f"Bearer {token}"}
