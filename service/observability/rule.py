"""Prometheus rules as values, and the YAML file that Prometheus loads.

Every alert names its summary, what was found, and the section of `docs/monitoring.md` that says
what to do. Templates (`{{ $labels.job }}`) are Prometheus' own and stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

RUNBOOK = "docs/monitoring.md"


class Severity(StrEnum):
    """Who hears of an alert: somebody now, somebody today, whoever looks."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording rule.

    Attributes:
        record: Name of the new series: labels, what it is, operation, parted by colons.
        expression: What it is worked out from.
    """

    record: str
    expression: str


@dataclass(frozen=True, slots=True)
class Alert:
    """An alerting rule.

    Attributes:
        name: The alert's name; the runbook has a section of it.
        expression: It fires for each series of this.
        severity: Who should hear of it.
        summary: What is wrong, in a few words.
        description: What was found; a template of Prometheus.
        holds: How long it has to be so before it fires, as in `15m`; empty: at once.
        labels: More labels, beside the severity.
    """

    name: str
    expression: str
    severity: Severity
    summary: str
    description: str
    holds: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """Fragment of its section in the runbook."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are evaluated one after the other, at one time."""

    name: str
    rules: Sequence[Recording | Alert]


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A file that Prometheus loads.

    Attributes:
        name: Its name without a suffix.
        groups: What is in it.
    """

    name: str
    groups: Sequence[RuleGroup]

    def text(self, runbook: str = RUNBOOK) -> str:
        """The file as YAML.

        Args:
            runbook: Where `docs/monitoring.md` can be read: a path or a URL.
        """
        lines = [
            "# Written by `python -m service.observability`; change it there.",
            "groups:",
            *(line for group in self.groups for line in _group(group, runbook)),
        ]
        return "\n".join(lines) + "\n"


def _group(group: RuleGroup, runbook: str) -> Iterator[str]:
    yield f"  - name: {group.name}"
    yield "    rules:"
    for rule in group.rules:
        if isinstance(rule, Recording):
            yield f"      - record: {rule.record}"
            yield from _block("expr", rule.expression)
        else:
            yield from _alert(rule, runbook)


def _alert(alert: Alert, runbook: str) -> Iterator[str]:
    yield f"      - alert: {alert.name}"
    yield from _block("expr", alert.expression)
    if alert.holds:
        yield f"        for: {alert.holds}"
    yield "        labels:"
    for name, value in {**alert.labels, "severity": alert.severity.value}.items():
        yield f"          {name}: {_quoted(value)}"
    yield "        annotations:"
    annotations = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": f"{runbook}#{alert.anchor}",
    }
    for name, value in annotations.items():
        yield f"          {name}: {_quoted(value)}"


def _block(name: str, text: str) -> Iterator[str]:
    yield f"        {name}: |-"
    yield from (f"          {line}" for line in text.splitlines())


def _quoted(text: str) -> str:
    """A scalar of YAML; JSON's strings are ones."""
    return json.dumps(text, ensure_ascii=False)
