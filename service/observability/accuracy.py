"""Are the forecasts still as good as they say? Realised coverage against nominal, by model version.

All is worked out from counters over a day, for the rung `full`: lesser rungs have accuracies of
their own, and come and go with the load. A canary is compared with the model that answers more than
half of the requests that name none.
"""

from __future__ import annotations

from service.metric_families import MODEL_SHARE, Family
from service.observability.promql import SERVICE, names, number, select, total
from service.observability.rule import Alert, Recording, RuleFile, RuleGroup, Severity
from service.observability.thresholds import Thresholds
from service.realised.exposition import (
    ABSOLUTE_TARGET,
    COVERED,
    NOMINAL_COVERAGE,
    QUANTILE_LOSS,
    SCORED,
)

VERSION = (*SERVICE, "model", "version")
KIND = (*VERSION, "kpi_kind")
LEVELS = (*KIND, "levels")

_KIND = "namespace_job_model_version_kpi_kind"
INTERVALS = f"{_KIND}:rancast_scored_intervals:increase1d"
COVERAGE = f"{_KIND}:rancast_coverage:ratio_increase1d"
NOMINAL = f"{_KIND}:rancast_nominal_coverage:ratio_increase1d"
WQL = f"{_KIND}_levels:rancast_wql:ratio_increase1d"
SHARE = "namespace_job_model_version:rancast_model_share:ratio"


def accuracy_rules(thresholds: Thresholds) -> RuleFile:
    """Coverage and WQL of a day by model version, and the alerts on them."""
    return RuleFile(
        "accuracy",
        [RuleGroup("rancast-accuracy", [*_records(thresholds), *_alerts(thresholds)])],
    )


def _day(family: Family) -> str:
    selector = select(family, 'rung="full"')
    return f"increase({selector}[1d])"


def _records(thresholds: Thresholds) -> list[Recording]:
    nominal = select(NOMINAL_COVERAGE, 'rung="full"')
    share = total(MODEL_SHARE.name, VERSION)
    enough = f"{total(_day(SCORED), LEVELS)} >= {number(thresholds.least_scored)}"
    return [
        # Only what has an interval, and a nominal coverage to set against.
        Recording(INTERVALS, total(f"{_day(SCORED)} and {nominal}", KIND)),
        Recording(
            COVERAGE, f"{total(f'{_day(COVERED)} and {nominal}', KIND)}\n/ ({INTERVALS} > 0)"
        ),
        Recording(NOMINAL, f"{total(f'{_day(SCORED)} * {nominal}', KIND)}\n/ ({INTERVALS} > 0)"),
        Recording(
            WQL,
            f"{total(_day(QUANTILE_LOSS), LEVELS)}\n"
            f"/ ({total(_day(ABSOLUTE_TARGET), LEVELS)} > 0)\n"
            f"and {enough}",
        ),
        # The share of all replicas together: at most one model has more than half.
        Recording(
            SHARE,
            f"{share}\n/ on ({names(SERVICE)}) group_left () {total(MODEL_SHARE.name)}",
        ),
    ]


def _alerts(thresholds: Thresholds) -> list[Alert]:
    limit = number(thresholds.coverage_difference)
    enough = f"{INTERVALS} >= {number(thresholds.least_scored)}"
    difference = f"({COVERAGE} - {NOMINAL})"
    off = f"(abs{difference} and {enough})"
    what = "{{ $labels.model }} {{ $labels.version }} of {{ $labels.job }}"
    kind = "KPIs of the kind {{ $labels.kpi_kind }}"
    return [
        Alert(
            "RancastCoverageLow",
            f"{difference} < -{limit}\nand {enough}",
            Severity.WARNING,
            "Forecasts are too sure of themselves",
            f"The intervals of {what} hold fewer of the observed {kind} than they should: the "
            "difference is {{ $value | humanizePercentage }} of them over a day.",
            "1h",
        ),
        Alert(
            "RancastCoverageHigh",
            f"{difference} > {limit}\nand {enough}",
            Severity.INFO,
            "Forecasts are less sure than they could be",
            f"The intervals of {what} hold more of the observed {kind} than they should: the "
            "difference is {{ $value | humanizePercentage }} of them over a day.",
            "1h",
        ),
        Alert(
            "RancastCanaryLessAccurate",
            _beside(
                WQL, (*SERVICE, "kpi_kind", "levels"), f"{number(thresholds.canary_wql_ratio)} *"
            ),
            Severity.WARNING,
            "The canary forecasts worse than its rival",
            f"The weighted quantile loss of the canary {what} is {{{{ $value | humanize }}}} for "
            f"{kind} over a day, clearly above that of the model that it is to replace.",
            "1h",
        ),
        Alert(
            "RancastCanaryCoverageOff",
            _beside(
                off,
                (*SERVICE, "kpi_kind"),
                f"{number(thresholds.canary_coverage_difference)} +",
            ),
            Severity.WARNING,
            "The canary's intervals are worse than its rival's",
            f"Realised coverage of the canary {what} is {{{{ $value | humanizePercentage }}}} off "
            f"for {kind} over a day, clearly more than that of the model that it is to replace.",
            "1h",
        ),
    ]


def _beside(figure: str, labels: tuple[str, ...], allowance: str) -> str:
    """Where the canary's figure is larger than its rival's with an allowance."""
    at = f"on ({names(VERSION)})"
    return (
        f"({figure} and {at} ({SHARE} > 0 < 0.5))\n"
        f"> on ({names(labels)}) group_left ()\n"
        f"({allowance} ({figure} and {at} ({SHARE} > 0.5)))"
    )
