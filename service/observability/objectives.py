"""The latency budget as objectives, with alerts on how fast what they leave is spent.

An objective of 99.5 % leaves 0.5 % of the requests of 30 days. A burn rate of 1 spends just that.
An alert looks at the rate over a long window, so that it is worth acting, and over a short one, so
that it ends when the trouble does ("The Site Reliability Workbook", chapter 5, sixth approach).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.metric_families import BUDGET_USED, REJECTED, REQUEST_DURATION
from service.observability.promql import number, rate, seconds, select, share
from service.observability.rule import Alert, Recording, RuleFile, RuleGroup, Severity
from service.observability.thresholds import FASTEST_BURN, Thresholds

FORECAST_ROUTES = (
    'route=~"/v1/forecast|/v1/timeseries/forecast|/v1/cells/.+/forecast|/v1/models/.+:predict'
    '|/v2/models/.+/infer"'
)
"""Requests for forecasts, by any of the protocols. Whatever else is asked would hide that they are
refused: probes come every few seconds, and each cell may report by itself."""

UNANSWERED = f'{FORECAST_ROUTES},reason=~"budget|full|not_ready|inference|bug"'
"""Errors that are the service's: no time, no room, or a failure."""


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """A pair of windows and what is too fast over both.

    Attributes:
        long: Whether it matters.
        short: Whether it goes on.
        rate: How much faster than sustainable.
        holds: How long before it fires.
        severity: Who hears of it.
    """

    long: str
    short: str
    rate: float
    holds: str
    severity: Severity


BURN_WINDOWS = (
    BurnWindow("1h", "5m", FASTEST_BURN, "2m", Severity.CRITICAL),
    BurnWindow("6h", "30m", 6, "5m", Severity.CRITICAL),
    BurnWindow("1d", "2h", 3, "30m", Severity.WARNING),
    BurnWindow("3d", "6h", 1, "1h", Severity.WARNING),
)
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")


@dataclass(frozen=True, slots=True)
class Objective:
    """Something that nearly all requests are to have.

    Attributes:
        name: Part of the names of its series.
        alert: Name of its alert.
        ratio: The objective.
        summary: What is wrong when it is missed.
        failing: What failed requests do, for the description.
        errors: Failed requests a second, with `WINDOW` for the window.
        requests: All requests a second, with `WINDOW` for the window.
    """

    name: str
    alert: str
    ratio: float
    summary: str
    failing: str
    errors: str
    requests: str

    def ratio_series(self, window: str) -> str:
        """Name of the series with the share of failed requests."""
        return f"namespace_job:rancast_{self.name}_errors:ratio_rate{window}"

    def requests_series(self, window: str) -> str:
        """Name of the series with the requests a second."""
        return f"namespace_job:rancast_{self.name}_requests:rate{window}"


def objectives(thresholds: Thresholds) -> tuple[Objective, Objective]:
    """What is promised: that accepted requests are in time, and that forecasts are not refused."""
    measured = rate(select(BUDGET_USED, part="_count"), "WINDOW")
    in_budget = rate(select(BUDGET_USED, 'le="1.0"', part="_bucket"), "WINDOW")
    asked = rate(select(REQUEST_DURATION, FORECAST_ROUTES, part="_count"), "WINDOW")
    in_time = Objective(
        name="in_time",
        alert="RancastInTimeBurn",
        ratio=thresholds.in_time_ratio,
        summary="Forecasts come after their latency budget",
        failing="are late or get 504",
        errors=f"{measured}\n- {in_budget}",
        requests=measured,
    )
    answered = Objective(
        name="answered",
        alert="RancastAnsweredBurn",
        ratio=thresholds.answered_ratio,
        summary="Requests are refused for want of time or room, or fail",
        failing="are refused or fail",
        errors=rate(select(REJECTED, UNANSWERED), "WINDOW"),
        requests=asked,
    )
    return in_time, answered


def latency_budget_rules(thresholds: Thresholds) -> RuleFile:
    """Shares of failed requests over all windows, and the alerts on them."""
    found = objectives(thresholds)
    groups = [
        RuleGroup(f"rancast-{each.name.replace('_', '-')}", [*_records(each)]) for each in found
    ]
    alerts = [alert for each in found for alert in _alerts(each, thresholds)]
    return RuleFile("latency-budget", [*groups, RuleGroup("rancast-burn-rates", alerts)])


def _records(objective: Objective) -> Iterator[Recording]:
    for window in WINDOWS:
        errors, requests = (
            each.replace("WINDOW", window) for each in (objective.errors, objective.requests)
        )
        yield Recording(objective.requests_series(window), requests)
        yield Recording(
            objective.ratio_series(window), share(errors, objective.requests_series(window))
        )


def _alerts(objective: Objective, thresholds: Thresholds) -> Iterator[Alert]:
    spare = number(1 - objective.ratio)
    for window in BURN_WINDOWS:
        ratio = objective.ratio_series(window.long)
        limit = f"({number(window.rate)} * {spare})"
        yield Alert(
            objective.alert,
            f"{ratio} > {limit}\n"
            f"and {objective.ratio_series(window.short)} > {limit}\n"
            f"and {ratio} * {objective.requests_series(window.long)} * {seconds(window.long)}"
            f" >= {number(thresholds.least_failures)}",
            window.severity,
            objective.summary,
            f"{{{{ $value | humanizePercentage }}}} of the requests to {{{{ $labels.job }}}} "
            f"{objective.failing}, over {window.long}; the objective leaves "
            f"{number(100 * (1 - objective.ratio))}%. At this rate, {number(window.rate)} times "
            "what can be kept up or more, what is left of a month is soon spent.",
            window.holds,
            {"long_window": window.long},
        )
