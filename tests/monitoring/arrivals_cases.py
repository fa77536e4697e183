"""Cases of the rules on what arrives."""

from __future__ import annotations

from service.observability.arrivals import ACCEPTED, REFUSED
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
OBSERVATIONS = "rancast_observations_total"
FILES = "rancast_ingested_files_total"
CELLS = series("rancast_store_cells", "5x300")


def arriving(outcome: str, values: str) -> Series:
    return series(OBSERVATIONS, values, f'outcome="{outcome}"')


def aging(profile: str) -> list[Series]:
    """A network that has stopped to report at the beginning, in a loop of this profile."""
    labels = f'route="/v1/forecast",profile="{profile}"'
    return [
        series("rancast_data_age_seconds", "0+60x100"),
        series("rancast_request_duration_seconds_count", "1x100", labels),
    ]


def stale(profile: str, age: str, limit: str) -> Told:
    return Told(
        {**POD_LABELS, "profile": profile, "severity": "warning"},
        f"The newest sample of 10.0.0.1:8080 of rancast ended {age} ago; a {profile} loop should "
        f"have one of the last {limit} s.",
    )


ARRIVALS: tuple[Case, ...] = (
    Recorded(ACCEPTED, "one a second", [arriving("accepted", "0+60x200")], "100m", {SERVICE: 1}),
    Recorded(ACCEPTED, "none since the restart", [CELLS], "10m", {SERVICE: 0}),
    Recorded(
        REFUSED,
        "merged and late ones are accepted ones too",
        [
            arriving("accepted", "0+60x200"),
            arriving("merged", "0+60x200"),
            arriving("expired", "0+30x200"),
            arriving("rejected", "0+10x200"),
        ],
        "100m",
        {
            '{namespace="ran", job="rancast", outcome="expired"}': 0.3,
            '{namespace="ran", job="rancast", outcome="rejected"}': 0.1,
        },
    ),
    Recorded(REFUSED, "nothing came, which is no share", [arriving("expired", "7x90")], "80m", {}),
    Silent(
        "RancastDataStale",
        "two minutes, all the while",
        [series("rancast_data_age_seconds", "120x100"), aging("near-rt")[1]],
        "60m",
    ),
    Firing(
        "RancastDataStale",
        "ten minutes in a near-RT loop",
        aging("near-rt"),
        "10m",
        [stale("near-rt", "10m 0s", "120")],
    ),
    Firing(
        "RancastDataStale",
        "an hour in a near-RT loop, which is no non-RT one",
        aging("near-rt"),
        "60m",
        [stale("near-rt", "1h 0m 0s", "120")],
    ),
    Silent("RancastDataStale", "two minutes, since a minute", aging("near-rt"), "4m"),
    Silent("RancastDataStale", "45 minutes, since three minutes", aging("non-rt"), "48m"),
    Firing(
        "RancastDataStale",
        "an hour in a non-RT loop",
        aging("non-rt"),
        "60m",
        [stale("non-rt", "1h 0m 0s", "2700")],
    ),
    Silent("RancastDataStale", "files come every 15 minutes", aging("non-rt"), "20m"),
    Silent(
        "RancastDataStale",
        "nothing is stored, histories come with the requests",
        aging("near-rt")[1:],
        "60m",
    ),
    Firing(
        "RancastDataAhead",
        "a source is an hour ahead",
        [series("rancast_data_age_seconds", "0x30")],
        "20m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "The newest sample of 10.0.0.1:8080 of rancast ends in the future: a clock or an "
                "offset is wrong, and data that are too old do not show meanwhile.",
            )
        ],
    ),
    Silent(
        "RancastDataAhead",
        "samples come every second",
        [series("rancast_data_age_seconds", "0.3x10 0 0.2x60")],
        "60m",
    ),
    Silent(
        "RancastDataAhead",
        "the clock was set back by some minutes",
        [series("rancast_data_age_seconds", "60x10 0x10 0+60x30")],
        "30m",
    ),
    Firing(
        "RancastSourceSilent",
        "nothing has come for more than an hour",
        [CELLS, arriving("accepted", "0+60x60 3600x200")],
        "150m",
        [
            Told(
                {**SERVICE_LABELS, "severity": "warning"},
                "rancast holds cells, and none of them has reported within the last hour.",
            )
        ],
    ),
    Firing(
        "RancastSourceSilent",
        "nothing has come since a restart, and the journal has the cells",
        [CELLS],
        "20m",
        [
            Told(
                {**SERVICE_LABELS, "severity": "warning"},
                "rancast holds cells, and none of them has reported within the last hour.",
            )
        ],
    ),
    Silent("RancastSourceSilent", "it has just started again", [CELLS], "10m"),
    Silent(
        "RancastSourceSilent",
        "files come every 15 minutes",
        [CELLS, arriving("accepted", "0x14 900x14 1800x14 2700x14 3600x14 4500x14")],
        "85m",
    ),
    Silent(
        "RancastSourceSilent",
        "there is no cell, and nothing is to come",
        [series("rancast_store_cells", "0x100"), arriving("accepted", "0x100")],
        "90m",
    ),
    Firing(
        "RancastSourcesThinned",
        "two thirds of the cells are silent",
        [arriving("accepted", "0+600x160 96200+200x40")],
        "1800m",
        [
            Told(
                {**SERVICE_LABELS, "severity": "warning"},
                "rancast gets 333.3m observations a second, far fewer than in most hours of the "
                "last day: part of the network has fallen silent.",
            )
        ],
        "10m",
    ),
    Silent(
        "RancastSourcesThinned",
        "two thirds of the cells have been silent for an hour only",
        [arriving("accepted", "0+600x160 96200+200x40")],
        "1660m",
        "10m",
    ),
    Silent(
        "RancastSourcesThinned",
        "a backlog was read some hours ago",
        [arriving("accepted", "0+600x150 90600+60000x12 810600+600x40")],
        "1900m",
        "10m",
    ),
    Silent(
        "RancastSourcesThinned",
        "it has run for some hours only",
        [arriving("accepted", "0+60000x30 1800600+600x40")],
        "500m",
        "10m",
    ),
    Firing(
        "RancastFilesFailing",
        "the first file is half written",
        [
            WATCHED,
            series(FILES, "_x65 1x60", 'result="failed"'),
            series(FILES, "0+4x120", 'result="ok"'),
        ],
        "68m",
        [
            Told(
                {**POD_LABELS, "severity": "warning"},
                "10.0.0.1:8080 of rancast could not read files of the watched directory within "
                "the last hour.",
            )
        ],
    ),
    Silent(
        "RancastFilesFailing",
        "all can be read",
        [series(FILES, "0+4x60", 'result="ok"')],
        "50m",
    ),
    Firing(
        "RancastObservationsRefused",
        "one in ten is too old",
        [arriving("accepted", "0+90x200"), arriving("expired", "0+10x200")],
        "100m",
        [
            Told(
                {**SERVICE_LABELS, "outcome": "expired", "severity": "warning"},
                "10% of the observations that rancast gets are expired.",
            )
        ],
    ),
    Silent(
        "RancastObservationsRefused",
        "one late file",
        [arriving("accepted", "0+90x200"), arriving("expired", "0+10x200")],
        "10m",
    ),
    Silent(
        "RancastObservationsRefused",
        "many are revised, few are refused",
        [
            arriving("accepted", "0+98x200"),
            arriving("merged", "0+90x200"),
            arriving("late", "0+90x200"),
            arriving("rejected", "0+2x200"),
        ],
        "100m",
    ),
)
