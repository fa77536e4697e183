"""Has the service enough room? Lesser rungs, busy threads, clients beyond their limits."""

from __future__ import annotations

from service.metric_families import (
    CONNECTIONS_CLOSED,
    FORECASTS,
    LOG_LINES_DROPPED,
    REJECTED,
    REQUEST_DURATION,
    STAGE_DURATION,
)
from service.observability.promql import INSTANCE, has_risen, number, rate, select, share
from service.observability.rule import Alert, Recording, RuleFile, RuleGroup, Severity
from service.observability.thresholds import Thresholds

DEGRADED = "namespace_job:rancast_degraded_forecasts:ratio_rate15m"
BASELINE = "namespace_job:rancast_baseline_forecasts:ratio_rate15m"
BUSY = "namespace_job_pod_instance:rancast_inference_busy:ratio_rate5m"
RATE_LIMITED = "namespace_job:rancast_rate_limited_requests:ratio_rate15m"

CALLS = 'route=~"/v[12]/.*|unmatched",route!~"/v2/health/.*"'
"""Calls of the API; what is refused before the router, for its rate or its token, has no route."""


def capacity_rules(thresholds: Thresholds) -> RuleFile:
    """Shares that tell of too much work, and the alerts on them."""
    forecasts = rate(FORECASTS.name, "15m")
    calls = rate(select(REQUEST_DURATION, CALLS, part="_count"), "15m")
    degraded = rate(select(FORECASTS, 'rung!="full"'), "15m")
    baseline = rate(select(FORECASTS, 'rung="baseline"'), "15m")
    limited = rate(select(REJECTED, 'reason="rate_limited"'), "15m")
    inferring = select(STAGE_DURATION, 'stage="infer"', part="_sum")
    records = [
        Recording(DEGRADED, share(degraded, forecasts)),
        Recording(BASELINE, share(baseline, forecasts)),
        Recording(BUSY, rate(inferring, "5m", INSTANCE)),
        Recording(RATE_LIMITED, share(limited, calls)),
    ]
    alerts = [
        Alert(
            "RancastForecastsDegraded",
            f"{DEGRADED} > {number(thresholds.degraded_ratio)}",
            Severity.WARNING,
            "Many forecasts are made with less work",
            "{{ $value | humanizePercentage }} of the forecasts of {{ $labels.job }} are not of "
            "the rung full: there is no time for it.",
            "15m",
        ),
        Alert(
            "RancastForecastsFromBaseline",
            f"{BASELINE} > {number(thresholds.baseline_ratio)}",
            Severity.CRITICAL,
            "Most forecasts come from the seasonal baseline",
            "{{ $value | humanizePercentage }} of the forecasts of {{ $labels.job }} are not the "
            "model's.",
            "15m",
        ),
        Alert(
            "RancastSaturated",
            f"{BUSY} > {number(thresholds.busy_ratio)}",
            Severity.WARNING,
            "The model's threads have hardly any time left",
            "{{ $labels.instance }} of {{ $labels.job }} spends {{ $value | humanizePercentage }} "
            "of the time in the model; 70% is what can be planned with.",
            "15m",
        ),
        Alert(
            "RancastClientsRateLimited",
            f"{RATE_LIMITED} > {number(thresholds.rate_limited_ratio)}",
            Severity.INFO,
            "A client asks more often than it may",
            "{{ $value | humanizePercentage }} of the requests to {{ $labels.job }} get 429 "
            "because their client is beyond its rate limit.",
            "15m",
        ),
        Alert(
            "RancastConnectionsFull",
            has_risen(select(CONNECTIONS_CLOSED, 'reason="full"'), "15m", INSTANCE),
            Severity.WARNING,
            "Connections are closed because there are too many",
            "{{ $labels.instance }} of {{ $labels.job }} closed connections at once: it has as "
            "many as it may, or as it has file descriptors for.",
        ),
        Alert(
            "RancastLogLinesDropped",
            has_risen(LOG_LINES_DROPPED.name, "15m", (*INSTANCE, "log")),
            Severity.INFO,
            "Log lines are lost",
            "Whoever reads the log {{ $labels.log }} of {{ $labels.instance }} of "
            "{{ $labels.job }} does not keep up.",
        ),
    ]
    return RuleFile("capacity", [RuleGroup("rancast-capacity", [*records, *alerts])])
