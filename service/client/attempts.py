"""The tries of one call: how long each may take, whether there is another, and when.

What may have arrived is sent again only where that does no harm. Calls are tried again where the
server is busy (429), not ready (503) or unreachable, and where the pause before the next try leaves
time for it. `Retry-After` is obeyed; where the server named no time, pauses double, each drawn at
random from its upper half, so that clients that were refused together do not come back together.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from service.client.connection import DEFAULT_TIMEOUT_S, Connection
from service.client.errors import (
    ApiError,
    ClientError,
    DeadlineExceededError,
    OverloadedError,
    UnavailableError,
    UnreachableError,
)

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
# The service refuses less; its own clock then ends the try.
_LEAST_BUDGET_MS = 1.0
_RETRIED = (OverloadedError, UnavailableError, UnreachableError)

BUDGET_HEADER = "X-Latency-Budget-Ms"


@dataclass(slots=True)
class Attempts:
    """The state of one call between its tries.

    Args:
        connection: How calls are made.
        timeout_s: Seconds that all tries have together; None: the connection's.
        budget_ms: Latency budget that was stated for the call, None where there is none.
        monotonic_s: The clock.
        draw: Gives a number of 0 to 1.
        may_resend: Whether what may have arrived is sent again.
    """

    connection: Connection
    timeout_s: float | None
    budget_ms: float | None
    monotonic_s: Callable[[], float]
    draw: Callable[[], float] = random.random
    may_resend: bool = True
    _expires_s: float = field(init=False)
    _tries: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.timeout_s is None:
            self.timeout_s = self.connection.timeout_s
        timeout_s = DEFAULT_TIMEOUT_S if self.timeout_s is None else self.timeout_s
        if not timeout_s > 0:
            raise ValueError(f"expected a positive timeout, got {timeout_s} s")
        self._expires_s = self.monotonic_s() + timeout_s

    def remaining_s(self) -> float:
        """Seconds that the call still has.

        Raises:
            DeadlineExceededError: None.
        """
        remaining_s = self._expires_s - self.monotonic_s()
        if remaining_s <= 0:
            raise DeadlineExceededError("the call's timeout has passed")
        return remaining_s

    def budget_header(self) -> dict[str, str]:
        """The latency budget of this try: no longer than the call still has.

        Where neither a budget nor a timeout was stated the server's own default holds: it would
        refuse a budget over its bound, which the client does not know.

        Raises:
            DeadlineExceededError: The call has no time any more.
        """
        if self.budget_ms is None and self.timeout_s is None:
            return {}
        most_ms = self.connection.most_budget_ms if self.budget_ms is None else self.budget_ms
        left_ms = max(_LEAST_BUDGET_MS, self.remaining_s() * 1000)
        return {BUDGET_HEADER: f"{min(most_ms, left_ms):.3f}"}

    def pause_s(self, error: ClientError) -> float:
        """Seconds to wait before the next try.

        Args:
            error: How the last one ended.

        Raises:
            ClientError: The error itself, where there is no next try.
        """
        self._tries += 1
        if not isinstance(error, _RETRIED) or self._tries >= self.connection.most_attempts:
            raise error
        if isinstance(error, UnreachableError) and error.is_sent and not self.may_resend:
            raise error
        told_s = error.problem.retry_after_s if isinstance(error, ApiError) else None
        pause_s = self._backoff_s() if told_s is None else told_s
        if self.monotonic_s() + pause_s >= self._expires_s:
            raise error
        return pause_s

    def _backoff_s(self) -> float:
        longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**self._tries)
        return longest_s * (1 + self.draw()) / 2
