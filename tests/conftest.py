"""Fixtures that every package's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine is slow, and no test measures time. Developers get new examples in every run;
# an integration run that fails has to fail again.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", UNHURRIED)
settings.register_profile("repeat", UNHURRIED, derandomize=True)
settings.load_profile("repeat" if os.environ.get("CI") else "explore")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real samples and traces that do not ship; tests skip where they are missing."""
    path = REPOSITORY.parent / "shared"
    if not (path / "samples").is_dir():
        pytest.skip("the real samples and traces lie beside the checkout, and are not there")
    return path
