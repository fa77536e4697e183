"""Every rule and every panel asks for what the application exports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.app import create_app
from service.budget import BUDGET_HEADER
from service.metric_families import FAMILIES
from service.observability.artefacts import dashboards, rule_files
from service.observability.objectives import FORECAST_ROUTES
from service.observability.panel import Query
from service.observability.rule import Alert, Recording
from service.observability.thresholds import Thresholds
from service.realised.exposition import ACCURACY_FAMILIES
from service.settings import Settings
from tests.monitoring.conftest import clean_settings, rules
from tests.monitoring.series import TARGET

REPOSITORY = Path(__file__).resolve().parents[2]
RUNBOOK = REPOSITORY / "docs" / "monitoring.md"
# The labels of a recorded series in the order in which its name lists them.
LEVEL = (
    *("namespace", "job", "pod", "instance", "model", "version", "kpi_kind", "levels"),
    "outcome",
)


def alerts() -> list[Alert]:
    return [rule for rule in rules() if isinstance(rule, Alert)]


def recordings() -> list[Recording]:
    return [rule for rule in rules() if isinstance(rule, Recording)]


def queries() -> Iterator[tuple[str, Query]]:
    for board in dashboards(Thresholds()):
        for row in board.rows:
            for panel in row.panels:
                for number, query in enumerate(panel.queries):
                    yield f"{board.uid}: {panel.title} {number}", query


def without_variables(expression: str) -> str:
    """An expression as Grafana sends it, but for the values of its matchers."""
    return expression.replace("$__rate_interval", "5m")


@pytest.mark.parametrize("rule", recordings(), ids=lambda rule: rule.record)
def test_a_recording_asks_for_what_is_exported_and_is_named_by_its_labels(rule, checker):
    labels = checker.labels(rule.expression)
    level, what, operation = rule.record.split(":")
    assert level == "_".join(label for label in LEVEL if label in labels)
    assert labels <= set(LEVEL)
    assert what.startswith("rancast_")
    assert operation


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: f"{rule.name} {rule.labels}")
def test_an_alert_asks_for_what_is_exported_and_tells_of_labels_that_it_has(rule, checker):
    labels = checker.labels(rule.expression) | set(rule.labels)
    told = set(re.findall(r"\$labels\.(\w+)", rule.description))
    assert told <= labels
    assert not re.search(r"\{\{(?! \$)", rule.description)


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in queries()])
def test_a_panel_asks_for_what_is_exported_and_names_series_by_labels(query, checker):
    labels = checker.labels(without_variables(query.expression))
    named = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
    assert named <= labels


def test_the_variables_of_a_dashboard_are_labels_that_are_there(checker):
    for board in dashboards(Thresholds()):
        variables = board.document()["templating"]["list"][1:]
        assert [each["name"] for each in variables] == ["namespace", "job", "pod"]
        for each in variables:
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", each["query"]["query"])
            assert found
            assert found[2] in checker.labels(found[1])


def test_the_objectives_look_at_every_route_that_has_a_budget_and_at_no_other():
    paths = create_app(clean_settings()).openapi()["paths"]
    budgeted = {
        path
        for path, item in paths.items()
        for operation in item.values()
        if any(each["name"] == BUDGET_HEADER for each in operation.get("parameters", ()))
    }
    pattern = FORECAST_ROUTES.removeprefix('route=~"').removesuffix('"')
    assert len(budgeted) > 4
    assert {path for path in paths if re.fullmatch(pattern, path)} == budgeted


def test_every_family_is_looked_at_somewhere():
    text = " ".join(
        [rule.expression for rule in rules()] + [query.expression for _, query in queries()]
    )
    unseen = [family.name for family in (*FAMILIES, *ACCURACY_FAMILIES) if family.name not in text]
    assert unseen == []


def test_no_label_is_one_that_a_scrape_adds():
    # Prometheus would rename it to exported_…, and no rule would find it.
    added = TARGET | {"service", "container", "endpoint", "node"}
    clashes = [f for f in (*FAMILIES, *ACCURACY_FAMILIES) if added & set(f.labels)]
    assert clashes == []


def test_every_recorded_series_is_used():
    text = " ".join(
        [rule.expression for rule in alerts()] + [query.expression for _, query in queries()]
    )
    others = [rule.expression for rule in recordings()]
    unused = [
        rule.record
        for rule in recordings()
        if rule.record not in text and not any(rule.record in each for each in others)
    ]
    assert unused == []


def test_no_series_is_recorded_twice_and_no_alert_looks_like_another():
    records = [rule.record for rule in recordings()]
    assert len(records) == len(set(records))
    told = [(rule.name, rule.severity, *rule.labels.items()) for rule in alerts()]
    assert len(told) == len(set(told))


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: f"{rule.name} {rule.labels}")
def test_an_alert_has_a_section_in_the_runbook(rule):
    headings = re.findall(r"^#+ (.+)$", RUNBOOK.read_text(encoding="utf-8"), flags=re.M)
    assert rule.name in headings
    assert rule.anchor == rule.name.lower()


def test_the_runbook_has_no_section_of_an_alert_that_is_not_there():
    headings = re.findall(r"^### (Rancast\w+)$", RUNBOOK.read_text(encoding="utf-8"), flags=re.M)
    assert sorted(headings) == sorted({rule.name for rule in alerts()})


def test_the_runbook_lists_every_threshold_with_its_value():
    text = RUNBOOK.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", text, flags=re.M))
    thresholds = Thresholds()
    stated = {name: f"{getattr(thresholds, name):g}" for name in thresholds.__slots__}
    assert rows == stated


def test_the_runbook_names_panels_that_there_are():
    text = RUNBOOK.read_text(encoding="utf-8").partition("## Runbook")[2]
    titles = {
        panel.title
        for board in dashboards(Thresholds())
        for row in board.rows
        for panel in row.panels
    }
    named = set(re.findall(r"(?<![*\w])\*([A-Z][^*\n]+)\*(?!\*)", text))
    assert len(named) > 8
    assert [each for each in named if not any(title.startswith(each) for title in titles)] == []


def test_the_runbook_names_settings_that_there_are():
    named = set(re.findall(r"`RANCAST_(\w+?)[=`]", RUNBOOK.read_text(encoding="utf-8")))
    assert named
    assert {each.lower() for each in named} <= set(Settings.model_fields)


def test_rules_of_one_file_stand_after_those_that_they_need():
    for file in rule_files(Thresholds()):
        known: set[str] = set()
        for group in file.groups:
            for rule in group.rules:
                needed = set(re.findall(r"\w+:rancast_\w+:\w+", rule.expression))
                if isinstance(rule, Recording):
                    known.add(rule.record)
                    assert needed <= known
