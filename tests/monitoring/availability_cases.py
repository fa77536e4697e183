"""Cases of the rules on availability."""

from __future__ import annotations

from tests.monitoring.rule_case import (
    POD_LABELS,
    SERVICE_LABELS,
    TARGET,
    WATCHED,
    Case,
    Firing,
    Silent,
    Told,
    series,
)

OTHER_POD = f'{TARGET},pod="rancast-1",instance="10.0.0.2:8080"'
STRANGER = 'namespace="db",job="postgres",pod="postgres-0",instance="10.0.0.9:9187"'

NONE_READY = Told(
    {**SERVICE_LABELS, "severity": "critical"},
    "No replica of rancast is ready; every request fails.",
)
ERRORS = "rancast_requests_rejected_total"
BUG = Told(
    {**POD_LABELS, "reason": "bug", "severity": "warning"},
    "10.0.0.1:8080 of rancast answered well-formed requests with 500 (bug) within the last 15 "
    "minutes.",
)
STORAGE = Told(
    {**POD_LABELS, "severity": "critical"},
    "10.0.0.1:8080 of rancast cannot write its journal and answers observations with 503.",
)

AVAILABILITY: tuple[Case, ...] = (
    Firing(
        "RancastUnavailable",
        "the only replica is not ready any more",
        [series("rancast_ready", "1x5 0x20")],
        "15m",
        [NONE_READY],
    ),
    Firing(
        "RancastUnavailable",
        "all replicas have gone",
        [
            series("rancast_ready", "1x5 _x20"),
            series("rancast_ready", "1x5 _x20", target=OTHER_POD),
        ],
        "20m",
        [NONE_READY],
    ),
    Firing(
        "RancastUnavailable",
        "all replicas have been down for hours",
        [series("up", "1x5 0x200"), series("rancast_ready", "1x5 _x200")],
        "3h",
        [NONE_READY],
    ),
    Firing(
        "RancastUnavailable",
        "a new pod took the old one's place hours ago, and never came up",
        [
            series("up", "1x5 _x200"),
            series("rancast_ready", "1x5 _x200"),
            series("up", "_x5 0x200", target=OTHER_POD),
        ],
        "3h",
        [NONE_READY],
    ),
    Silent(
        "RancastUnavailable",
        "what is down is another service",
        [series("up", "0x200", target=STRANGER), series("rancast_ready", "1x5 _x200")],
        "3h",
    ),
    Silent(
        "RancastUnavailable",
        "it was taken away hours ago",
        [series("up", "1x5 _x200"), series("rancast_ready", "1x5 _x200")],
        "3h",
    ),
    Silent(
        "RancastUnavailable",
        "another replica is ready",
        [series("rancast_ready", "1x5 0x20"), series("rancast_ready", "1x25", target=OTHER_POD)],
        "20m",
    ),
    Silent(
        "RancastUnavailable",
        "it starts, which takes minutes",
        [series("rancast_ready", "0x20")],
        "4m",
    ),
    Firing(
        "RancastDown",
        "a replica does not answer any more",
        [series("up", "1x5 0x20"), series("rancast_ready", "1x5 _x20")],
        "15m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "Prometheus gets no answer from 10.0.0.1:8080 of rancast.",
            )
        ],
    ),
    Silent(
        "RancastDown",
        "what is down is not ours",
        [series("up", "1x5 0x20", target=STRANGER), series("rancast_ready", "1x25")],
        "20m",
    ),
    Silent(
        "RancastDown",
        "only a few scrapes have failed",
        [series("up", "1x5 0x20"), series("rancast_ready", "1x5 _x20")],
        "9m",
    ),
    Firing(
        "RancastNotReady",
        "the start does not come to an end",
        [series("rancast_ready", "0x30"), series("rancast_ready", "1x30", target=OTHER_POD)],
        "15m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "10.0.0.1:8080 of rancast is not ready: it still starts, or its engine has "
                "stopped. GET /readyz says why.",
            )
        ],
    ),
    Silent("RancastNotReady", "it is ready in time", [series("rancast_ready", "0x5 1x30")], "20m"),
    Silent("RancastNotReady", "it has just begun", [series("rancast_ready", "0x30")], "8m"),
    Firing(
        "RancastNotScraped",
        "nothing is scraped",
        [series("up", "1x30", target=STRANGER)],
        "20m",
        [
            Told(
                {"severity": "warning"},
                "These rules are loaded, and no instance of rancast is scraped: nothing that they "
                "watch can be seen.",
            )
        ],
    ),
    Silent(
        "RancastNotScraped", "Prometheus starts", [series("up", "1x30", target=STRANGER)], "10m"
    ),
    Silent("RancastNotScraped", "one is scraped", [series("rancast_ready", "0x30")], "20m"),
    Firing(
        "RancastRestarting",
        "three starts after the first",
        [
            series("process_start_time_seconds", "100x3 400x3 700x3 1000x9"),
            series("rancast_ready", "1x20"),
        ],
        "15m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "10.0.0.1:8080 of rancast has started 3 times within an hour.",
            )
        ],
    ),
    Silent(
        "RancastRestarting",
        "it was updated once",
        [series("process_start_time_seconds", "100x3 400x15"), series("rancast_ready", "1x20")],
        "15m",
    ),
    Silent(
        "RancastRestarting",
        "what starts again is not ours",
        [
            series("process_start_time_seconds", "100x3 400x3 700x3 1000x9", target=STRANGER),
            series("rancast_ready", "1x20"),
        ],
        "15m",
    ),
    Firing(
        "RancastInternalErrors",
        "the counter appears with its first error",
        [WATCHED, series(ERRORS, "_x20 1x20", 'reason="bug"')],
        "22m",
        [BUG],
    ),
    Firing(
        "RancastInternalErrors",
        "a new process had its first error before it was ever scraped",
        [
            series(ERRORS, "_x20 1x20", 'reason="bug"'),
            series("process_start_time_seconds", "_x20 1200x20"),
        ],
        "22m",
        [BUG],
    ),
    Silent(
        "RancastInternalErrors",
        "Prometheus was away, and the errors are long ago",
        [
            series(ERRORS, "5x5 _x15 5x30", 'reason="bug"'),
            series("rancast_ready", "1x5 _x15 1x30"),
            series("process_start_time_seconds", "0x5 _x15 0x30"),
        ],
        "32m",
    ),
    Firing(
        "RancastInternalErrors",
        "the counter rises",
        [series(ERRORS, "4x30 5x30", 'reason="bug"')],
        "35m",
        [BUG],
    ),
    Silent(
        "RancastInternalErrors",
        "the errors are long ago",
        [WATCHED, series(ERRORS, "_x10 1x50", 'reason="bug"')],
        "40m",
    ),
    Silent(
        "RancastInternalErrors",
        "the client's request was wrong",
        [series(ERRORS, "0+9x30", 'reason="invalid"')],
        "20m",
    ),
    Firing(
        "RancastJournalFailing",
        "the disk is full",
        [WATCHED, series(ERRORS, "_x20 1x20", 'reason="storage"')],
        "22m",
        [STORAGE],
    ),
    Silent(
        "RancastJournalFailing",
        "there is room again",
        [WATCHED, series(ERRORS, "_x10 1+5x20 101x40", 'reason="storage"')],
        "50m",
    ),
)
