"""All that is generated: rule files and dashboards, by where they lie in the chart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from service.observability.accuracy import accuracy_rules
from service.observability.arrivals import arrivals_rules
from service.observability.availability import availability_rules
from service.observability.capacity import capacity_rules
from service.observability.dashboard import Dashboard
from service.observability.forecasts_dashboard import forecasts_dashboard
from service.observability.models import models_rules
from service.observability.objectives import latency_budget_rules
from service.observability.rule import RUNBOOK, RuleFile
from service.observability.service_dashboard import service_dashboard
from service.observability.thresholds import Thresholds

CHART = Path(__file__).resolve().parents[2] / "helm" / "rancast"
FOLDERS = {"rules": ".yaml", "dashboards": ".json"}
"""Folders that hold nothing else, and the suffix of what is in them."""


def rule_files(thresholds: Thresholds) -> tuple[RuleFile, ...]:
    """All rule files."""
    return tuple(
        make(thresholds)
        for make in (
            availability_rules,
            latency_budget_rules,
            capacity_rules,
            arrivals_rules,
            models_rules,
            accuracy_rules,
        )
    )


def dashboards(thresholds: Thresholds) -> tuple[Dashboard, ...]:
    """All dashboards."""
    return service_dashboard(thresholds), forecasts_dashboard(thresholds)


def texts(thresholds: Thresholds, runbook: str = RUNBOOK) -> Mapping[str, str]:
    """Content of every generated file by its path in the chart.

    Args:
        thresholds: From where on something is worth an alert.
        runbook: Where `docs/monitoring.md` can be read: a path or a URL.
    """
    rules = {f"rules/{each.name}.yaml": each.text(runbook) for each in rule_files(thresholds)}
    boards = {
        f"dashboards/{each.uid.removeprefix('rancast-')}.json": each.text()
        for each in dashboards(thresholds)
    }
    return rules | boards


def differences(wanted: Mapping[str, str], folder: Path) -> list[str]:
    """Paths of files that are missing, stale, or not among those wanted."""
    there = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for name, suffix in FOLDERS.items()
        for path in (folder / name).glob(f"*{suffix}")
    }
    return sorted(path for path in {*wanted, *there} if wanted.get(path) != there.get(path))


def write(wanted: Mapping[str, str], folder: Path) -> list[str]:
    """Write what differs and remove what is not wanted; returns the paths of both."""
    changed = differences(wanted, folder)
    for path in changed:
        target = folder / path
        if path in wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(wanted[path], encoding="utf-8")
        else:
            target.unlink()
    return changed
