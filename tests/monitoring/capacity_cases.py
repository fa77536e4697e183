"""Cases of the rules on capacity."""

from __future__ import annotations

from service.observability.capacity import BASELINE, BUSY, DEGRADED, RATE_LIMITED
from tests.monitoring.rule_case import (
    POD_LABELS,
    SERVICE_LABELS,
    WATCHED,
    Case,
    Firing,
    Recorded,
    Series,
    Silent,
    Told,
    series,
)

SERVICE = '{namespace="ran", job="rancast"}'
CLOSED = "rancast_connections_closed_total"


def forecasts(full: int, short: int, baseline: int) -> list[Series]:
    """Forecasts by rung, so many a minute."""
    rungs = {"full": full, "short": short, "baseline": baseline}
    return [
        series("rancast_forecasts_total", f"0+{number}x60", f'model="m",version="1",rung="{rung}"')
        for rung, number in rungs.items()
    ]


def inferring(seconds: int) -> list[Series]:
    """So many seconds of a minute in the model."""
    stages = {"infer": seconds, "queue": 600}
    return [
        series("rancast_stage_duration_seconds_sum", f"0+{number}x60", f'stage="{stage}"')
        for stage, number in stages.items()
    ]


def limited(number: int) -> list[Series]:
    """A hundred calls a minute, of which so many are beyond their client's limit."""
    routes = {"/v1/forecast": 100 - number, "unmatched": number, "/v2/health/ready": 500}
    return [
        *(
            series("rancast_request_duration_seconds_count", f"0+{each}x60", f'route="{route}"')
            for route, each in routes.items()
        ),
        rejected("unmatched", "rate_limited", number),
        rejected("/v1/forecast", "budget", 50),
    ]


def rejected(route: str, reason: str, number: int) -> Series:
    """So many errors a minute."""
    labels = f'route="{route}",reason="{reason}"'
    return series("rancast_requests_rejected_total", f"0+{number}x60", labels)


CAPACITY: tuple[Case, ...] = (
    Recorded(DEGRADED, "half are", forecasts(20, 15, 5), "40m", {SERVICE: 0.5}),
    Recorded(DEGRADED, "none ever was", forecasts(20, 15, 5)[:1], "40m", {SERVICE: 0}),
    Recorded(DEGRADED, "nobody asks, which is no share", forecasts(0, 0, 0), "40m", {}),
    Recorded(BASELINE, "an eighth is", forecasts(20, 15, 5), "40m", {SERVICE: 0.125}),
    Recorded(
        BUSY,
        "three quarters of a minute",
        inferring(45),
        "20m",
        {'{namespace="ran", job="rancast", pod="rancast-0", instance="10.0.0.1:8080"}': 0.75},
    ),
    Recorded(RATE_LIMITED, "one in ten", limited(10), "40m", {SERVICE: 0.1}),
    Recorded(RATE_LIMITED, "nine in ten, which is no 900 %", limited(90), "40m", {SERVICE: 0.9}),
    Firing(
        "RancastForecastsDegraded",
        "a third is of the short rung",
        forecasts(20, 10, 0),
        "40m",
        [
            Told(
                {**SERVICE_LABELS, "severity": "warning"},
                "33.33% of the forecasts of rancast are not of the rung full: there is no time "
                "for it.",
            )
        ],
    ),
    Silent("RancastForecastsDegraded", "a tenth is", forecasts(90, 10, 0), "40m"),
    Silent("RancastForecastsDegraded", "a fifth is, and no more", forecasts(32, 8, 0), "40m"),
    Silent(
        "RancastForecastsDegraded",
        "it has only begun",
        forecasts(20, 10, 0),
        "10m",
    ),
    Firing(
        "RancastForecastsFromBaseline",
        "three quarters are",
        forecasts(10, 0, 30),
        "40m",
        [
            Told(
                {**SERVICE_LABELS, "severity": "critical"},
                "75% of the forecasts of rancast are not the model's.",
            )
        ],
    ),
    Silent("RancastForecastsFromBaseline", "only a while", forecasts(10, 0, 30), "12m"),
    Silent("RancastForecastsFromBaseline", "most are of short", forecasts(5, 60, 30), "40m"),
    Firing(
        "RancastSaturated",
        "54 seconds of each minute are spent in the model",
        inferring(54),
        "40m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "10.0.0.1:8080 of rancast spends 90% of the time in the model; 70% is what can be "
                "planned with.",
            )
        ],
    ),
    Silent("RancastSaturated", "only a while", inferring(54), "12m"),
    Silent("RancastSaturated", "it is as busy as planned", inferring(42), "40m"),
    Firing(
        "RancastClientsRateLimited",
        "one in ten requests is",
        limited(10),
        "40m",
        [
            Told(
                {**SERVICE_LABELS, "severity": "info"},
                "10% of the requests to rancast get 429 because their client is beyond its rate "
                "limit.",
            )
        ],
    ),
    Silent("RancastClientsRateLimited", "only a while", limited(10), "12m"),
    Silent("RancastClientsRateLimited", "only the service is full", limited(1), "40m"),
    Firing(
        "RancastConnectionsFull",
        "there are more than it may have",
        [WATCHED, series(CLOSED, "_x20 1x20", 'reason="full"')],
        "23m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "10.0.0.1:8080 of rancast closed connections at once: it has as many as it may, "
                "or as it has file descriptors for.",
            )
        ],
    ),
    Silent(
        "RancastConnectionsFull",
        "a client was slow",
        [WATCHED, series(CLOSED, "_x20 1x20", 'reason="slow"')],
        "23m",
    ),
    Firing(
        "RancastLogLinesDropped",
        "nobody reads",
        [WATCHED, series("rancast_log_lines_dropped_total", "_x20 9x20", 'log="access"')],
        "23m",
        [
            Told(
                {**POD_LABELS, "log": "access", "severity": "info"},
                "Whoever reads the log access of 10.0.0.1:8080 of rancast does not keep up.",
            )
        ],
    ),
    Silent(
        "RancastLogLinesDropped",
        "it was long ago",
        [series("rancast_log_lines_dropped_total", "9x60", 'log="access"')],
        "40m",
    ),
)
