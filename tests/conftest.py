"""Fixtures that every package's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine is slow, and no test measures time.
settings.register_profile("rancast", deadline=None)
settings.load_profile("rancast")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real samples and traces that do not ship; tests skip where they are missing."""
    path = REPOSITORY.parent / "shared"
    if not (path / "samples").is_dir():
        pytest.skip("the real samples and traces lie beside the checkout, and are not there")
    return path
