"""Cases on either side of each limit: a little less is silent, a little more fires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.monitoring.accuracy_cases import ACCURACY, AT, STEP, scored, shares
from tests.monitoring.arrivals_cases import ARRIVALS, CELLS, aging, arriving
from tests.monitoring.availability_cases import AVAILABILITY
from tests.monitoring.capacity_cases import CAPACITY, forecasts, inferring, limited
from tests.monitoring.rule_case import WATCHED, Case, Firing, Series, Silent, Told, series

OTHERS: Sequence[Case] = (*AVAILABILITY, *CAPACITY, *ARRIVALS, *ACCURACY)


@dataclass(frozen=True)
class Limit:
    """What lies on either side of a limit.

    Attributes:
        name: The alert's name.
        less: In words and as series, what is not enough.
        more: What is.
        at: When it is looked at.
        figure: What the alert tells of `more`, instead of `was`.
        was: What it tells in the case beside its rule.
        step: Time from sample to sample.
    """

    name: str
    less: tuple[str, Sequence[Series]]
    more: tuple[str, Sequence[Series]]
    at: str
    figure: str
    was: str
    step: str = "1m"

    def cases(self) -> Iterator[Case]:
        """Both."""
        yield Silent(self.name, *self.less, self.at, self.step)
        told = [
            Told(each.labels, each.description.replace(self.was, self.figure))
            for each in told_of(self.name)
        ]
        yield Firing(self.name, *self.more, self.at, told, self.step)


def told_of(name: str) -> Sequence[Told]:
    """What an alert tells in the first case in which it fires."""
    return next(case.told for case in OTHERS if isinstance(case, Firing) and case.name == name)


def aged(profile: str, age_s: int) -> list[Series]:
    """Data that are always of one age."""
    return [series("rancast_data_age_seconds", f"{age_s}x100"), aging(profile)[1]]


def refused(share_pct: int) -> list[Series]:
    """Observations of which so many are too old."""
    return [
        arriving("accepted", f"0+{100 - share_pct}x200"),
        arriving("expired", f"0+{share_pct}x200"),
    ]


def left(share_pct: int) -> list[Series]:
    """Of a thousand observations in ten minutes so many are left after a day."""
    return [arriving("accepted", f"0+1000x160 {160_000 + 10 * share_pct}+{10 * share_pct}x40")]


def rivals(**canary: float) -> list[Series]:
    """A model and its canary, which answers a little less than half."""
    return [*scored("1", covered=7.8), *scored("2", **canary), *shares(v1=0.55, v2=0.45)]  # type: ignore[arg-type]


LIMITS = (
    Limit(
        "RancastDataStale",
        ("120 s all the while", aged("near-rt", 120)),
        ("121 s all the while", aged("near-rt", 121)),
        "60m",
        "2m 1s",
        "10m 0s",
    ),
    Limit(
        "RancastObservationsRefused",
        ("4 % are too old", refused(4)),
        ("6 % are too old", refused(6)),
        "100m",
        "6%",
        "10%",
    ),
    Limit(
        "RancastSourcesThinned",
        ("55 % are left", left(55)),
        ("45 % are left", left(45)),
        "1800m",
        "750m",
        "333.3m",
        "10m",
    ),
    Limit(
        "RancastForecastsDegraded",
        ("19 % are", forecasts(81, 19, 0)),
        ("21 % are", forecasts(79, 21, 0)),
        "40m",
        "21%",
        "33.33%",
    ),
    Limit(
        "RancastForecastsFromBaseline",
        ("49 % are", forecasts(51, 0, 49)),
        ("51 % are", forecasts(49, 0, 51)),
        "40m",
        "51%",
        "75%",
    ),
    Limit(
        "RancastSaturated",
        ("50 seconds of a minute", inferring(50)),
        ("52 seconds of a minute", inferring(52)),
        "40m",
        "86.67%",
        "90%",
    ),
    Limit(
        "RancastClientsRateLimited",
        ("4 % are", limited(4)),
        ("6 % are", limited(6)),
        "40m",
        "6%",
        "10%",
    ),
    Limit(
        "RancastCoverageLow",
        ("71 % are inside", scored(covered=7.1)),
        ("69 % are inside", scored(covered=6.9)),
        AT,
        "-11%",
        "-20%",
        STEP,
    ),
    Limit(
        "RancastCoverageHigh",
        ("89 % are inside", scored(covered=8.9)),
        ("91 % are inside", scored(covered=9.1)),
        AT,
        "11%",
        "20%",
        STEP,
    ),
    Limit(
        "RancastCoverageLow",
        ("994 were scored", scored(samples=6.9, covered=4.14)),
        ("1008 were scored", scored(samples=7, covered=4.2)),
        AT,
        "-20%",
        "-20%",
        STEP,
    ),
    Limit(
        "RancastCanaryLessAccurate",
        ("its loss is 9 % larger", rivals(loss=21.8)),
        ("its loss is 11 % larger", rivals(loss=22.2)),
        AT,
        "222m",
        "250m",
        STEP,
    ),
    Limit(
        "RancastCanaryCoverageOff",
        ("it is off by 6 %, its rival by 2 %", rivals(covered=8.6)),
        ("it is off by 8 %, its rival by 2 %", rivals(covered=8.8)),
        AT,
        "8%",
        "15%",
        STEP,
    ),
    Limit(
        "RancastCanaryCoverageOff",
        ("994 were scored", rivals(samples=6.9, covered=6.555)),
        ("1008 were scored", rivals(samples=7, covered=6.65)),
        AT,
        "15%",
        "15%",
        STEP,
    ),
)


def rare(name: str, counter: str, labels: str, window_m: int) -> Iterator[Case]:
    """When a counter of rare events says that there was one within a window."""
    told, start = told_of(name), "process_start_time_seconds"
    unwatched = f"_x{window_m + 20}"
    yield Firing(
        name, "it rises", [series(counter, f"4x{window_m} 5x9", labels)], f"{window_m + 5}m", told
    )
    yield Silent(
        name,
        "it rose before",
        [WATCHED, series(counter, f"4x{window_m + 40}", labels)],
        f"{window_m + 20}m",
    )
    yield Silent(
        name,
        "it rose before Prometheus was away",
        [
            series(counter, f"5x5 {unwatched} 5x30", labels),
            series("rancast_ready", f"1x5 {unwatched} 1x30"),
            series(start, f"0x5 {unwatched} 0x30"),
        ],
        f"{window_m + 32}m",
    )
    yield Firing(
        name,
        "it rose before the first scrape, in a process that is a little younger than the window",
        [
            series(counter, f"_x{window_m - 5} 1x30", labels),
            series(start, f"_x{window_m - 5} 0x30"),
        ],
        f"{window_m - 2}m",
        told,
    )
    yield Silent(
        name,
        "it rose some time before the first scrape, in a process that is older",
        [
            series(counter, f"_x{window_m + 5} 1x30", labels),
            series(start, f"_x{window_m + 5} 0x30"),
        ],
        f"{window_m + 8}m",
    )


BOUNDARIES: tuple[Case, ...] = (
    *(case for limit in LIMITS for case in limit.cases()),
    *rare("RancastInternalErrors", "rancast_requests_rejected_total", 'reason="bug"', 15),
    *rare("RancastFilesFailing", "rancast_ingested_files_total", 'result="failed"', 60),
    Silent("RancastDataStale", "45 minutes all the while", aged("non-rt", 2700), "60m"),
    Silent(
        "RancastDataAhead",
        "the clock was set back, ten minutes ago",
        [series("rancast_data_age_seconds", "60x10 0x30")],
        "20m",
    ),
    Silent(
        "RancastSourcesThinned",
        "nothing comes any more, which another alert says",
        [CELLS, arriving("accepted", "0+1000x160 160000x60")],
        "1800m",
        "10m",
    ),
    Silent(
        "RancastRestarting",
        "it was updated twice",
        [
            series("process_start_time_seconds", "100x3 400x3 700x9"),
            series("rancast_ready", "1x20"),
        ],
        "15m",
    ),
    Silent(
        "RancastCanaryLessAccurate",
        "the worse one has a share of nothing",
        [*scored("1"), *scored("2", loss=25), *shares(v1=1, v2=0)],
        AT,
        STEP,
    ),
)
