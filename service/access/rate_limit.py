"""How often one client may ask: a token bucket each, and a bounded number of buckets."""

from __future__ import annotations

import math
from collections import OrderedDict

from service.clock import Clock

# Buckets that are looked at for one that is full, for each newcomer that finds no place.
_LOOKS = 8


class RateLimiter:
    """Token buckets by client; used from the event loop only.

    A bucket holds `burst` requests and is refilled at `per_second`. One that is full again is as
    good as none, so it makes room where there are too many. Where none is full, newcomers share one
    bucket: whoever uses many names gains nothing by them, and takes nothing from those who have a
    bucket.

    Args:
        clock: Its monotonic side refills the buckets.
        per_second: Requests a second that a client may make in the long run, more than 0.
        burst: Requests that it may make at once, at least 1.
        most_clients: Buckets that are kept, beside the shared one.
    """

    def __init__(self, clock: Clock, per_second: float, burst: int, most_clients: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = float(burst)
        self._most_clients = most_clients
        # Client to what its bucket held, and when; the one to look at next comes first.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._shared = (self._burst, clock.monotonic_s())

    def __len__(self) -> int:
        return len(self._buckets)

    def admit(self, client: str) -> float:
        """Take one request out of a client's bucket.

        Args:
            client: Name of its token, or where it comes from.

        Returns:
            0 where it may go on, else the seconds until its bucket holds one request; a refusal
            takes nothing out.
        """
        now_s = self._clock.monotonic_s()
        bucket = self._buckets.get(client)
        is_shared = bucket is None and not self._has_place(now_s)
        if bucket is None:
            bucket = self._shared if is_shared else (self._burst, now_s)
        held = self._refilled(bucket, now_s)
        admitted = held >= 1.0
        left = (held - 1.0 if admitted else held, now_s)
        if is_shared:
            self._shared = left
        else:
            self._buckets[client] = left
            self._buckets.move_to_end(client)
        return 0.0 if admitted else (1.0 - held) / self._per_second

    def _has_place(self, now_s: float) -> bool:
        """Whether a newcomer gets a bucket; takes away one that is full again, where it has to."""
        if len(self._buckets) < self._most_clients:
            return True
        for _ in range(min(_LOOKS, len(self._buckets))):
            client, bucket = next(iter(self._buckets.items()))
            if self._refilled(bucket, now_s) >= self._burst:
                del self._buckets[client]
                return True
            self._buckets.move_to_end(client)
        return False

    def _refilled(self, bucket: tuple[float, float], now_s: float) -> float:
        held, then_s = bucket
        return min(self._burst, held + (now_s - then_s) * self._per_second)


def retry_after_s(wait_s: float) -> int:
    """A wait as `Retry-After` says it: whole seconds, at least one, never too early."""
    return max(1, math.ceil(wait_s))
