"""Cases of the rules on accuracy; samples are ten minutes apart, since a day is looked at."""

from __future__ import annotations

from service.observability.accuracy import COVERAGE, INTERVALS, NOMINAL, SHARE, WQL
from tests.monitoring.rule_case import (
    POD,
    SERVICE_LABELS,
    Case,
    Firing,
    Recorded,
    Series,
    Silent,
    Told,
    series,
)

OTHER_POD = POD.replace("rancast-0", "rancast-1").replace("10.0.0.1", "10.0.0.2")
STEP = "10m"
AT = "1600m"
SOON = "1030m"
"""A thousand observations have been scored for half an hour."""

LEVELS = "0.1,0.5,0.9"


def scored(
    version: str = "1",
    *,
    samples: float = 10,
    covered: float = 8,
    loss: float = 20,
    rung: str = "full",
    levels: str = LEVELS,
    nominal: str = "0.8x200",
    target: str = POD,
) -> list[Series]:
    """Sums of the scores of a version, so much more every ten minutes; targets sum up to 100."""
    labels = (
        f'kpi_kind="percent",horizon="1",model="m",version="{version}",digest="d{version}",'
        f'rung="{rung}",levels="{levels}"'
    )
    growing = {
        "rancast_realised_samples_total": samples,
        "rancast_realised_covered_total": covered,
        "rancast_realised_quantile_loss_total": loss,
        "rancast_realised_absolute_target_total": 100,
    }
    found = [series(name, f"0+{growth:g}x200", labels, target) for name, growth in growing.items()]
    return [*found, series("rancast_nominal_coverage_ratio", nominal, labels, target)]


def shares(target: str = POD, **by_version: float) -> list[Series]:
    return [
        series(
            "rancast_model_share_ratio", f"{share:g}x200", f'model="m",version="{v[1:]}"', target
        )
        for v, share in by_version.items()
    ]


def of(version: str, extra: str = "") -> str:
    """Labels of a recorded series, as promtool writes them."""
    return f'{{namespace="ran", job="rancast", model="m", version="{version}"{extra}}}'


KIND = ', kpi_kind="percent"'
BY_LEVELS = f'{KIND}, levels="{LEVELS}"'


def labels(version: str, severity: str = "warning") -> dict[str, str]:
    own = {"model": "m", "version": version, "kpi_kind": "percent"}
    return {**SERVICE_LABELS, **own, "severity": severity}


MIXED = [
    *scored("1"),
    *scored("2", covered=6),
    # One level has no interval; a lesser rung has an accuracy of its own.
    *scored("1", covered=0, levels="0.5", nominal="_x200")[:1],
    *scored("1", covered=0, rung="short"),
    # A replica that has gone: what its counters grew by has no nominal coverage any more.
    *scored("2", covered=10, nominal="0.8x20 _x180", target=OTHER_POD),
]

ACCURACY: tuple[Case, ...] = (
    Recorded(INTERVALS, "by version", MIXED, AT, {of("1", KIND): 1440, of("2", KIND): 1440}, STEP),
    Recorded(COVERAGE, "by version", MIXED, AT, {of("1", KIND): 0.8, of("2", KIND): 0.6}, STEP),
    Recorded(
        NOMINAL,
        "of two sets of levels, by what was scored at each",
        [*scored("1"), *scored("1", levels="0.05,0.95", samples=30, covered=27, nominal="0.9x200")],
        AT,
        {of("1", KIND): 0.875},
        STEP,
    ),
    Recorded(
        WQL,
        "of what was scored often enough",
        [*scored("1"), *scored("2", loss=10), *scored("3", samples=5)],
        AT,
        {of("1", BY_LEVELS): 0.2, of("2", BY_LEVELS): 0.1},
        STEP,
    ),
    Recorded(
        SHARE,
        "of two replicas, one of which has no canary",
        [*shares(v1=0.8, v2=0.2), *shares(OTHER_POD, v1=1)],
        AT,
        {of("1"): 0.9, of("2"): 0.1},
        STEP,
    ),
    Firing(
        "RancastCoverageLow",
        "60 % are inside where 80 % should be",
        scored(covered=6),
        AT,
        [
            Told(
                labels("1"),
                "The intervals of m 1 of rancast hold fewer of the observed KPIs of the kind "
                "percent than they should: the difference is -20% of them over a day.",
            )
        ],
        STEP,
    ),
    Silent("RancastCoverageLow", "75 % are inside", scored(covered=7.5), AT, STEP),
    Silent("RancastCoverageLow", "too few to say", scored(samples=5, covered=2), AT, STEP),
    Silent(
        "RancastCoverageLow", "60 % are inside, since half an hour", scored(covered=6), SOON, STEP
    ),
    Silent(
        "RancastCoverageHigh", "all are inside, since half an hour", scored(covered=10), SOON, STEP
    ),
    Silent("RancastCoverageHigh", "too few to say", scored(samples=5, covered=5), AT, STEP),
    Firing(
        "RancastCoverageHigh",
        "all are inside where 80 % should be",
        scored(covered=10),
        AT,
        [
            Told(
                labels("1", "info"),
                "The intervals of m 1 of rancast hold more of the observed KPIs of the kind "
                "percent than they should: the difference is 20% of them over a day.",
            )
        ],
        STEP,
    ),
    Silent("RancastCoverageHigh", "85 % are inside", scored(covered=8.5), AT, STEP),
    Firing(
        "RancastCanaryLessAccurate",
        "its loss is a quarter larger",
        [*scored("1"), *scored("2", loss=25), *shares(v1=0.9, v2=0.1)],
        AT,
        [
            Told(
                {**labels("2"), "levels": LEVELS},
                "The weighted quantile loss of the canary m 2 of rancast is 250m for KPIs of the "
                "kind percent over a day, clearly above that of the model that it is to replace.",
            )
        ],
        STEP,
    ),
    Silent(
        "RancastCanaryLessAccurate",
        "its loss is larger, since half an hour",
        [*scored("1"), *scored("2", loss=25), *shares(v1=0.9, v2=0.1)],
        SOON,
        STEP,
    ),
    Silent(
        "RancastCanaryLessAccurate",
        "its loss is hardly larger",
        [*scored("1"), *scored("2", loss=21), *shares(v1=0.9, v2=0.1)],
        AT,
        STEP,
    ),
    Silent(
        "RancastCanaryLessAccurate",
        "the worse one is the rival",
        [*scored("1", loss=25), *scored("2"), *shares(v1=0.9, v2=0.1)],
        AT,
        STEP,
    ),
    Silent(
        "RancastCanaryLessAccurate",
        "the worse one answers nobody any more",
        [*scored("1"), *scored("2", loss=25), *shares(v1=1)],
        AT,
        STEP,
    ),
    Silent(
        "RancastCanaryLessAccurate",
        "both answer half, so neither is the canary",
        [*scored("1"), *scored("2", loss=25), *shares(v1=0.5, v2=0.5)],
        AT,
        STEP,
    ),
    Firing(
        "RancastCanaryCoverageOff",
        "it is off by 15 %, its rival by 2 %",
        [*scored("1", covered=7.8), *scored("2", covered=9.5), *shares(v1=0.9, v2=0.1)],
        AT,
        [
            Told(
                labels("2"),
                "Realised coverage of the canary m 2 of rancast is 15% off for KPIs of the kind "
                "percent over a day, clearly more than that of the model that it is to replace.",
            )
        ],
        STEP,
    ),
    Silent(
        "RancastCanaryCoverageOff",
        "it is off, since half an hour",
        [*scored("1", covered=7.8), *scored("2", covered=9.5), *shares(v1=0.9, v2=0.1)],
        SOON,
        STEP,
    ),
    Silent(
        "RancastCanaryCoverageOff",
        "both are off alike",
        [*scored("1", covered=6.5), *scored("2", covered=6.3), *shares(v1=0.9, v2=0.1)],
        AT,
        STEP,
    ),
)
