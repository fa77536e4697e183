"""What a failure of the cluster's tests is shown with. The fixture `cluster` is every test's."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show the ends of the logs of pods and control plane beside a failure."""
    report = yield
    found = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(found, Cluster) and found.node and found.plane:
        report.sections.append(("pods", found.node.logs()))
        report.sections.append(("control plane", found.plane.logs()))
    return report
