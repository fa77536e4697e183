"""How many bodies each fuzzer tries: few beside the other tests, many where only it runs."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES_VARIABLE = "RANCAST_TEST_FUZZ_EXAMPLES"
_EXAMPLES = 120


def effort() -> settings:
    """Bounded by a number of examples and not by a time, so that a run can be repeated."""
    return settings(
        max_examples=int(os.environ.get(EXAMPLES_VARIABLE, _EXAMPLES)),
        # Bodies of hundreds of kilobytes are slow to make, and the fixtures hold what is decoded.
        suppress_health_check=list(HealthCheck),
    )
