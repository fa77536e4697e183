"""The check of expressions sees what would be empty for ever."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tests.monitoring.expression_check import Checker, ExpressionError
from tests.monitoring.series import TARGET, exported_by


@pytest.fixture(scope="module")
def small() -> Checker:
    registry = CollectorRegistry()
    Counter("errors_total", "Errors.", ("reason",), registry=registry)
    Gauge("ready", "Ready.", registry=registry)
    Histogram("took_seconds", "Time.", ("route",), registry=registry, buckets=(0.5, 1))
    recorded = {"job:errors:rate5m": frozenset({"job"})}
    values = {("errors_total", "reason"): {"full", "late"}}
    return Checker(exported_by(registry), recorded, values)


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("ready", TARGET),
        ("rate(errors_total[5m])", TARGET | {"reason"}),
        ("sum(ready)", frozenset()),
        ("sum by (reason) (rate(errors_total{reason=~'full|late'}[5m]))", {"reason"}),
        ("sum without (pod) (ready) > 1", TARGET - {"pod"}),
        ("histogram_quantile(0.9, sum by (le, route) (rate(took_seconds_bucket[5m])))", {"route"}),
        ("took_seconds_bucket{le='1.0'}", TARGET | {"route", "le"}),
        ("errors_total and on (job) ready", TARGET | {"reason"}),
        ("errors_total * on (job, instance) group_left () ready", TARGET | {"reason"}),
        ("ready * on (job) group_right () errors_total", TARGET | {"reason"}),
        ("errors_total / on (job) ready", {"job"}),
        ("sum by (job) (ready) / job:errors:rate5m", {"job"}),
        ("absent(ready)", frozenset()),
        ("-(ready) > 1 + 2", TARGET),
        ("max_over_time(ready[1h:5m])", TARGET),
    ],
)
def test_labels_are_those_that_prometheus_leaves(small, expression, labels):
    assert small.labels(expression) == labels


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("sum(ready", "no PromQL"),
        ("redy", "nobody exports redy"),
        ("errors", "nobody exports errors"),
        ("errors_total{cause='full'}", "errors_total has no label cause"),
        ("errors_total{reason='ful'}", "label reason is never 'ful'"),
        ("errors_total{reason=~'full|layte'}", "label reason is never 'layte'"),
        ("took_seconds_bucket{le='1'}", "label le is never '1'"),
        ("took_seconds_bucket{le='2.0'}", "label le is never '2.0'"),
        ("sum by (cause) (errors_total)", "grouped by labels that are not there: cause"),
        ("sum without (cause) (errors_total)", "grouped by labels that are not there: cause"),
        ("errors_total / ready", "never equal on both sides: labels that are not there: reason"),
        ("errors_total and ready", "never equal on both sides"),
        ("errors_total and on (reason) ready", "matched on labels that are not there: reason"),
        ("errors_total * on (job) group_left (route) ready", "taken over labels"),
        ("ready * on (job) group_right (route) errors_total", "taken over labels"),
        ("histogram_quantile(0.9, sum by (route) (took_seconds_bucket))", "without le"),
        ("label_replace(ready, 'a', 'b', 'job', '.*')", "not looked into: label_replace"),
        ("errors_total * ignoring (reason) ready", "not looked into: ignoring"),
    ],
)
def test_what_would_be_empty_for_ever_is_refused(small, expression, complaint):
    with pytest.raises(ExpressionError, match=complaint.replace("(", r"\(")):
        small.labels(expression)


def test_the_registry_of_the_application_is_seen_whole(exported):
    assert exported.labels["rancast_ready"] == TARGET
    assert exported.labels["rancast_requests_rejected_total"] == TARGET | {"route", "reason"}
    assert exported.labels["rancast_realised_wql"] >= {"kpi_kind", "horizon", "levels"}
    assert exported.labels["rancast_data_age_seconds"] == TARGET
    assert "1.0" in exported.buckets["rancast_latency_budget_used_ratio_bucket"]
    assert "process_cpu_seconds_total" in exported.labels
