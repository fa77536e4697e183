"""Cases of rules, run by `promtool test rules` on the files that ship.

A case states series in promtool's own notation (`0+60x30`: 0, 60, 120, … 30 steps on; `_`: no
sample) and what is to come of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from service.observability.artefacts import CHART, rule_files
from service.observability.rule import Alert, Recording, RuleFile
from service.observability.thresholds import Thresholds

Series = tuple[str, str]
"""A series and its values."""

TARGET = 'namespace="ran",job="rancast"'
POD = f'{TARGET},pod="rancast-0",instance="10.0.0.1:8080"'
"""Labels that the scrape adds, as a selector has them."""

SERVICE_LABELS = {"namespace": "ran", "job": "rancast"}
POD_LABELS = {**SERVICE_LABELS, "pod": "rancast-0", "instance": "10.0.0.1:8080"}


def series(name: str, values: str, labels: str = "", target: str = POD) -> Series:
    """One input series of one replica."""
    parts = ",".join(part for part in (target, labels) if part)
    return f"{name}{{{parts}}}", values


WATCHED = series("rancast_ready", "1x200")
"""A replica that Prometheus has scraped all the while."""


@dataclass(frozen=True)
class Told:
    """One firing alert: its labels, the severity among them, and what it says."""

    labels: Mapping[str, str]
    description: str


@dataclass(frozen=True)
class Firing:
    """An alert that fires.

    Attributes:
        name: The alert's name.
        why: Why it does.
        given: Series and their values.
        at: When it is looked at.
        told: All that fires under this name.
        step: Time from sample to sample, and from evaluation to evaluation.
    """

    name: str
    why: str
    given: Sequence[Series]
    at: str
    told: Sequence[Told]
    step: str = "1m"


@dataclass(frozen=True)
class Silent:
    """An alert that does not fire; attributes as those of `Firing`."""

    name: str
    why: str
    given: Sequence[Series]
    at: str
    step: str = "1m"


@dataclass(frozen=True)
class Recorded:
    """What recording rules make of series; attributes as those of `Firing`.

    Attributes:
        values: Each value by its labels, as promtool writes them.
        others: The same of more recorded series, by their names.
    """

    name: str
    why: str
    given: Sequence[Series]
    at: str
    values: Mapping[str, float]
    step: str = "1m"
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All recorded series that are compared."""
        return [self.name, *self.others]


Case = Firing | Silent | Recorded


def alerts() -> list[Alert]:
    """All alerting rules."""
    groups = [group for file in rule_files(Thresholds()) for group in file.groups]
    return [rule for group in groups for rule in group.rules if isinstance(rule, Alert)]


def cases(every: Sequence[Case]) -> list[Any]:
    """Parameters of a test, with names that can be read."""
    return [
        pytest.param(case, id=f"{case.name} {type(case).__name__.lower()}: {case.why}")
        for case in every
    ]


def run(promtool: str, folder: Path, case: Case) -> str:
    """What promtool finds wrong with a case; nothing where it holds."""
    test: dict[str, Any] = {
        "interval": case.step,
        "input_series": [{"series": name, "values": values} for name, values in case.given],
    }
    match case:
        case Recorded():
            test["promql_expr_test"] = [
                _expected_samples(name, case.others.get(name, case.values), case.at)
                for name in case.names
            ]
        case Firing():
            test["alert_rule_test"] = [_expected_alerts(case, case.told)]
        case Silent():
            test["alert_rule_test"] = [_expected_alerts(case, ())]
    file = _file_of(case.name)
    document = {
        "rule_files": [str(CHART / "rules" / f"{file.name}.yaml")],
        "evaluation_interval": case.step,
        # Otherwise groups take turns in any order, and alerts see what was recorded a step ago.
        "group_eval_order": [group.name for group in file.groups],
        "tests": [test],
    }
    path = folder / "case.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    answer = subprocess.run(
        [promtool, "test", "rules", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return "" if answer.returncode == 0 else answer.stdout + answer.stderr


def _expected_samples(name: str, values: Mapping[str, float], at: str) -> dict[str, Any]:
    samples = [{"labels": labels, "value": value} for labels, value in values.items()]
    # Rounded, since promtool compares floating-point numbers to the last bit.
    return {"expr": f"round({name}, 1e-4)", "eval_time": at, "exp_samples": samples}


def _expected_alerts(case: Firing | Silent, told: Sequence[Told]) -> dict[str, Any]:
    (summary,) = {alert.summary for alert in alerts() if alert.name == case.name}
    expected = [
        {
            "exp_labels": dict(each.labels),
            "exp_annotations": {
                "summary": summary,
                "description": each.description,
                "runbook_url": f"docs/monitoring.md#{case.name.lower()}",
            },
        }
        for each in told
    ]
    return {"eval_time": case.at, "alertname": case.name, "exp_alerts": expected}


def _file_of(rule: str) -> RuleFile:
    """The file that holds a rule; others would only take time."""
    for file in rule_files(Thresholds()):
        for group in file.groups:
            for each in group.rules:
                if rule == (each.record if isinstance(each, Recording) else each.name):
                    return file
    raise AssertionError(f"there is no rule {rule}")
