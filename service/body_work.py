"""How many samples a body is likely to hold, told from its length before it is read.

A request that is let in and refused once its body was read and decoded has cost most of what an
answer costs. What bodies of its length have held lately tells beforehand, with few exceptions, that
it would be.
"""

from __future__ import annotations

from service.clock import Clock
from service.engine.recent import Recent

_KEPT, _MEMORY_S, _LEAST_KNOWN = 256, 60.0, 16
_LEVEL = 0.05
"""So few bodies hold fewer samples than is told."""
_BITS = 3
"""Numbers are rounded down to so many, so that what is told of like bodies is the same."""


class BodyWork:
    """Learns from bodies that were read.

    Args:
        clock: What is old is forgotten.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples_per_byte = Recent(_KEPT, _MEMORY_S)

    def observe(self, body_bytes: int, samples: int) -> None:
        """A body of so many bytes held so many samples."""
        self._samples_per_byte.append(samples / body_bytes, self._clock.monotonic_s())

    def least_samples(self, body_bytes: int) -> int | None:
        """What a body of this length holds at least, mostly; None where nothing is known.

        Args:
            body_bytes: 0 where the length says nothing.
        """
        if not body_bytes or len(self._samples_per_byte) < _LEAST_KNOWN:
            return None
        samples = int(self._samples_per_byte.quantile(_LEVEL) * body_bytes)
        dropped = max(0, samples.bit_length() - _BITS)
        return max(1, samples >> dropped << dropped)
