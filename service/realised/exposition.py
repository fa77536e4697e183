"""Realised accuracy as metrics: figures that are read from the ledger, not kept beside it.

The gauges show the recent past. The counters only grow, so that a query can look at a span of its
own: WQL over a day is the increase of the loss over the increase of the targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.answers import level_key
from service.metric_families import Family
from service.realised.ledger import LedgerFigures, Statement
from service.realised.scores import ScoreRow

_LABELS = ("kpi_kind", "horizon", "model", "version", "digest", "rung", "levels")

COVERAGE = Family(
    "rancast_realised_coverage_ratio",
    "gauge",
    _LABELS,
    "Share of recent observations between the outermost levels of their forecast; absent where "
    "only one level was asked for.",
)
NOMINAL_COVERAGE = Family(
    "rancast_nominal_coverage_ratio",
    "gauge",
    _LABELS,
    "What the realised coverage should be: the distance of the outermost levels.",
)
WQL = Family(
    "rancast_realised_wql",
    "gauge",
    _LABELS,
    "Weighted quantile loss of forecasts against recent observations; absent where these are 0.",
)
SCORED = Family(
    "rancast_realised_samples_total",
    "counter",
    _LABELS,
    "Observations that were scored, once for each forecast of them.",
)
COVERED = Family(
    "rancast_realised_covered_total",
    "counter",
    _LABELS,
    "Of these, those between the outermost levels.",
)
QUANTILE_LOSS = Family(
    "rancast_realised_quantile_loss_total",
    "counter",
    _LABELS,
    "Sum over the scored observations of the mean over the levels of twice the pinball loss.",
)
ABSOLUTE_TARGET = Family(
    "rancast_realised_absolute_target_total",
    "counter",
    _LABELS,
    "Sum of the absolute values of the scored observations.",
)
UNSCORED = Family(
    "rancast_realised_unscored_total",
    "counter",
    ("reason",),
    "Forecast values that no observation met: evicted (no room), expired (none came), replaced (by "
    "a newer forecast from the same sample on) or refused (not kept).",
)
KEPT = Family("rancast_kept_forecasts", "gauge", (), "Forecasts that wait for their observations.")

ACCURACY_FAMILIES = (
    COVERAGE,
    NOMINAL_COVERAGE,
    WQL,
    SCORED,
    COVERED,
    QUANTILE_LOSS,
    ABSOLUTE_TARGET,
    UNSCORED,
    KEPT,
)


class AccuracyCollector(Collector):
    """Reads the ledger at every scrape.

    Args:
        figures: What the ledger holds; must not wait.
    """

    def __init__(self, figures: Callable[[], LedgerFigures]) -> None:
        self._figures = figures

    def describe(self) -> Iterable[Metric]:
        """The families without samples; nothing is read for it."""
        return [_metric(family) for family in ACCURACY_FAMILIES]

    def collect(self) -> Iterator[Metric]:
        """All families, by what the ledger holds now."""
        figures = self._figures()
        found = {family.name: _metric(family) for family in ACCURACY_FAMILIES}

        def add(family: Family, labels: list[str], value: float | None) -> None:
            if value is not None:
                found[family.name].add_metric(labels, value)

        for statement in figures.statements:
            for row in statement.rows:
                labels = _labels(statement, row)
                nominal = statement.key.nominal_coverage
                if nominal is not None:
                    add(COVERAGE, labels, row.recent.coverage)
                    add(COVERED, labels, row.total.covered)
                    add(NOMINAL_COVERAGE, labels, nominal)
                add(WQL, labels, row.recent.wql)
                add(SCORED, labels, row.total.samples)
                add(QUANTILE_LOSS, labels, row.total.quantile_loss)
                add(ABSOLUTE_TARGET, labels, row.total.absolute_target)
        for fate, number in figures.lost.items():
            add(UNSCORED, [fate.value], number)
        add(KEPT, [], figures.forecasts)
        yield from found.values()


def _metric(family: Family) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    return kind(family.name, family.text, labels=family.labels)


def _labels(statement: Statement, row: ScoreRow) -> list[str]:
    model, rung, levels = statement.key
    return [
        row.kind.value,
        row.horizon,
        model.name,
        model.version,
        model.digest,
        rung.value,
        ",".join(level_key(level) for level in levels),
    ]
