"""When requests arrive: a Poisson process, drawn before the run so that no answer can slow it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def poisson_arrivals(
    rate_per_second: float, seconds: float, seed: int | tuple[int, ...]
) -> NDArray[np.float64]:
    """Instants of independent requests, in seconds from the begin of the run, ascending.

    Given their number, the arrivals of a Poisson process are uniform draws in order.

    Args:
        rate_per_second: Requests expected in a second.
        seconds: Length of the run.
        seed: The same seed gives the same arrivals.

    Returns:
        float64 (n,) within [0, seconds).

    Raises:
        ValueError: The rate or the length is negative.
    """
    if rate_per_second < 0 or seconds < 0:
        raise ValueError(
            f"expected a rate and a length of at least 0, got {rate_per_second:g} per second "
            f"over {seconds:g} s"
        )
    random = np.random.default_rng(seed)
    number = random.poisson(rate_per_second * seconds)
    return np.sort(random.uniform(0.0, seconds, number))
