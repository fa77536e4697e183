"""The dashboard of the forecasts: are they right, as sure as they should be, do the data come?"""

from __future__ import annotations

from service.metric_families import (
    DATA_AGE,
    INGESTED_FILES,
    OBSERVATIONS,
    STORE_CELLS,
    UNKNOWN_KPIS,
    Family,
)
from service.observability.accuracy import COVERAGE, INTERVALS, NOMINAL, SHARE, WQL
from service.observability.arrivals import ACCEPTED, REFUSED
from service.observability.dashboard import INTERVAL, Dashboard, Row, chosen, recorded
from service.observability.panel import Panel, PanelKind, Query, Unit
from service.observability.promql import number
from service.observability.thresholds import Thresholds
from service.realised import exposition
from service.realised.exposition import (
    ABSOLUTE_TARGET,
    KEPT,
    NOMINAL_COVERAGE,
    QUANTILE_LOSS,
    SCORED,
    UNSCORED,
)

_VERSION = "{{model}} {{version}}"
_KIND = f"{_VERSION} {{{{kpi_kind}}}}"


def forecasts_dashboard(thresholds: Thresholds) -> Dashboard:
    """Realised accuracy, coverage, WQL, data age and observations."""
    return Dashboard(
        uid="rancast-forecasts",
        title="rancast / forecasts",
        description="Are the forecasts right, as sure as they should be, and do the data come?",
        rows=(
            Row("Overview", _overview(thresholds)),
            Row("Coverage", _coverage(thresholds)),
            Row("Accuracy", _accuracy()),
            Row("Data", _data(thresholds)),
            Row("Scoring", _scoring()),
        ),
        since="now-7d",
    )


def _overview(thresholds: Thresholds) -> tuple[Panel, ...]:
    def stat(
        title: str,
        description: str,
        expression: str,
        unit: Unit = Unit.NUMBER,
        limits: tuple[float, float] | None = None,
    ) -> Panel:
        queries = [Query(expression, "{{job}}")]
        return Panel(
            title, description, queries, unit, PanelKind.STAT, width=4, height=4, limits=limits
        )

    most = thresholds.coverage_difference
    off = f"abs({recorded(COVERAGE)} - {recorded(NOMINAL)})"
    enough = f"{recorded(INTERVALS)} >= {number(thresholds.least_scored)}"
    return (
        stat(
            "Coverage is off by",
            "Distance of realised from nominal coverage over a day, of the model and kind of KPI "
            f"that are worst off; red beyond {most:g}, where there is an alert.",
            f"max by (job) ({off} and {enough})",
            Unit.SHARE,
            (most / 2, most),
        ),
        stat(
            "WQL",
            "Weighted quantile loss of a day, of the model and kind of KPI that are worst off.",
            f"max by (job) ({recorded(WQL)})",
            Unit.SHARE,
        ),
        stat(
            "Age of the newest sample",
            "Of the replica that is worst off; yellow is too old for a near-RT loop, red for any.",
            f"max by (job) ({chosen(DATA_AGE)})",
            Unit.SECONDS,
            _ages(thresholds),
        ),
        stat("Cells", "Cells in all stores.", f"sum by (job) ({chosen(STORE_CELLS)})"),
        stat(
            "Observations",
            "Accepted a second, over the last hour.",
            recorded(ACCEPTED),
            Unit.PER_SECOND,
        ),
        stat(
            "Forecasts that wait",
            "For the observations that they are scored against.",
            f"sum by (job) ({chosen(KEPT)})",
        ),
    )


def _coverage(thresholds: Thresholds) -> tuple[Panel, ...]:
    recent = "avg by (model, version, horizon) "
    limit = f"{thresholds.coverage_difference:g}"
    return (
        Panel(
            "Coverage of a day",
            "Share of the observations between the outermost levels, for the rung full, by model "
            "version and kind of KPI; dashed lines are what it should be.",
            [
                Query(recorded(COVERAGE), f"{_KIND} realised"),
                Query(recorded(NOMINAL), f"{_KIND} nominal", dashed=True),
            ],
            Unit.SHARE,
            most=1,
        ),
        Panel(
            "Realised less nominal coverage",
            f"Below 0 forecasts are too sure of themselves; beyond ±{limit} there is an alert.",
            [Query(f"{recorded(COVERAGE)} - {recorded(NOMINAL)}", _KIND)],
            Unit.SHARE,
            signed=True,
        ),
        Panel(
            "Recent coverage by steps ahead",
            "Of the rung full, over RANCAST_ACCURACY_DAYS days of the data's own time, less what "
            "it should be.",
            [
                Query(
                    f"{recent}({_full(exposition.COVERAGE)} - {_full(NOMINAL_COVERAGE)})",
                    f"{_VERSION} {{{{horizon}}}}",
                )
            ],
            Unit.SHARE,
            signed=True,
        ),
    )


def _accuracy() -> tuple[Panel, ...]:
    return (
        Panel(
            "WQL of a day by model version",
            "Weighted quantile loss of the rung full; a canary is beside its rival here.",
            [Query(recorded(WQL), f"{_KIND} {{{{levels}}}}")],
            Unit.SHARE,
            width=12,
        ),
        Panel(
            "Who answers requests that name no model",
            "Share of default and canary, over all replicas.",
            [Query(recorded(SHARE), _VERSION)],
            Unit.SHARE,
            width=12,
            most=1,
        ),
        Panel(
            "WQL of a day by steps ahead",
            "Of the rung full, by kind of KPI.",
            [Query(_wql("horizon", 'rung="full"'), f"{_KIND} {{{{horizon}}}}")],
            Unit.SHARE,
        ),
        Panel(
            "WQL of a day by rung",
            "What the lesser rungs cost in accuracy, by kind of KPI.",
            [Query(_wql("rung"), f"{_KIND} {{{{rung}}}}")],
            Unit.SHARE,
        ),
        Panel(
            "Recent WQL by kind of KPI",
            "Of the rung full, over RANCAST_ACCURACY_DAYS days of the data's own time.",
            [Query(f"avg by (model, version, kpi_kind) ({_full(exposition.WQL)})", _KIND)],
            Unit.SHARE,
        ),
    )


def _data(thresholds: Thresholds) -> tuple[Panel, ...]:
    return (
        Panel(
            "Age of the newest sample by replica",
            "The lines are the limits of near-RT and non-RT loops.",
            [Query(chosen(DATA_AGE), "{{pod}} {{instance}}")],
            Unit.SECONDS,
            limits=_ages(thresholds),
        ),
        Panel(
            "Observations by outcome",
            "A second; merged and late ones are accepted ones as well.",
            [Query(_rate(OBSERVATIONS, "outcome"), "{{outcome}}")],
            Unit.PER_SECOND,
        ),
        Panel(
            "Observations of an hour beside the day's median",
            "Far below the median, part of the network has fallen silent.",
            [
                Query(recorded(ACCEPTED), "last hour"),
                Query(f"quantile_over_time(0.5, {recorded(ACCEPTED)}[1d])", "median", dashed=True),
            ],
            Unit.PER_SECOND,
        ),
        Panel(
            "Observations that are not stored",
            "Share of all, over an hour.",
            [Query(recorded(REFUSED), "{{job}} {{outcome}}")],
            Unit.SHARE,
        ),
        Panel(
            "Files by result",
            "Files of the watched directory a second.",
            [Query(_rate(INGESTED_FILES, "result"), "{{result}}")],
            Unit.PER_SECOND,
        ),
        Panel(
            "Unknown KPIs",
            "Names that the catalogue does not hold, a second, once a batch and name.",
            [Query(_rate(UNKNOWN_KPIS, "job"), "{{job}}")],
            Unit.PER_SECOND,
        ),
    )


def _scoring() -> tuple[Panel, ...]:
    return (
        Panel(
            "Observations scored",
            "A second, once for each forecast of them.",
            [Query(_rate(SCORED, "kpi_kind"), "{{kpi_kind}}")],
            Unit.PER_SECOND,
            width=12,
            stacked=True,
        ),
        Panel(
            "Forecast values never scored",
            "A second, by reason; evicted: more memory is needed (RANCAST_ACCURACY_BYTES).",
            [Query(_rate(UNSCORED, "reason"), "{{reason}}")],
            Unit.PER_SECOND,
            width=12,
        ),
    )


def _ages(thresholds: Thresholds) -> tuple[float, float]:
    """From where on data are too old, in the order in which Grafana wants limits."""
    near, far = sorted((thresholds.near_rt_data_age_s, thresholds.non_rt_data_age_s))
    return near, far


def _full(family: Family) -> str:
    return chosen(family, 'rung="full"')


def _rate(family: Family, labels: str) -> str:
    return f"sum by ({labels}) (rate({chosen(family)}[{INTERVAL}]))"


def _wql(label: str, matchers: str = "") -> str:
    """By one more label than kinds, whose losses have units of their own and make no sum."""
    loss, target = (
        f"sum by (model, version, kpi_kind, {label}) (increase({chosen(family, matchers)}[1d]))"
        for family in (QUANTILE_LOSS, ABSOLUTE_TARGET)
    )
    return f"{loss}\n/ ({target} > 0)"
