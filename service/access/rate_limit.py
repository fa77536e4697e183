"""How often one client may ask: a token bucket each, and a bounded number of buckets."""

from __future__ import annotations

import math
from collections import OrderedDict

from service.clock import Clock


class RateLimiter:
    """Token buckets by client; used from the event loop only.

    A bucket holds `burst` requests and is refilled at `per_second`. A client that was forgotten
    begins with a full bucket, as does one that was never seen: forgetting is to the client's
    favour, and it hits those that have been silent for longest.

    Args:
        clock: Its monotonic side refills the buckets.
        per_second: Requests a second that a client may make in the long run, more than 0.
        burst: Requests that it may make at once, at least 1.
        most_clients: Buckets that are kept.
    """

    def __init__(self, clock: Clock, per_second: float, burst: int, most_clients: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = float(burst)
        self._most_clients = most_clients
        # Client to what its bucket held, and when; the one that asked last is at the end.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def admit(self, client: str) -> float:
        """Take one request out of a client's bucket.

        Args:
            client: Name of its token, or its address.

        Returns:
            0 where it may go on, else the seconds until its bucket holds one request; a refusal
            takes nothing out.
        """
        now_s = self._clock.monotonic_s()
        held, then_s = self._buckets.get(client, (self._burst, now_s))
        held = min(self._burst, held + (now_s - then_s) * self._per_second)
        admitted = held >= 1.0
        self._buckets[client] = (held - 1.0 if admitted else held, now_s)
        self._buckets.move_to_end(client)
        if len(self._buckets) > self._most_clients:
            self._buckets.popitem(last=False)
        return 0.0 if admitted else (1.0 - held) / self._per_second


def retry_after_s(wait_s: float) -> int:
    """A wait as `Retry-After` says it: whole seconds, at least one, never too early."""
    return max(1, math.ceil(wait_s))
