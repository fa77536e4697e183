"""Where promtool and prometheus are: on PATH, or where `fetch_prometheus.py` put them."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.monitoring.fetch_prometheus import cache_folder

HINT = "Debian's package prometheus brings it, and so does `make tools` where there is apt"


def find(name: str) -> str:
    """The program's path; skips where there is none, and fails where CI is to have all."""
    cached = cache_folder() / name
    found = shutil.which(name) or (str(cached) if cached.exists() else None)
    if found is None:
        reason = f"no {name} on PATH or in {cached.parent}; {HINT}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found
