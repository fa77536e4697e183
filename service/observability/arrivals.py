"""Does the network still report? Old samples, silent sources, unreadable files.

The age of the data is that of the newest sample of all cells, so one live cell hides a thousand
silent ones: those show in the number of observations that arrive. One whose clock is ahead hides
them as well, and shows in an age of 0.
"""

from __future__ import annotations

from service.metric_families import (
    DATA_AGE,
    INGESTED_FILES,
    OBSERVATIONS,
    REQUEST_DURATION,
    STORE_CELLS,
)
from service.observability.promql import (
    INSTANCE,
    SERVICE,
    has_risen,
    names,
    number,
    rate,
    select,
    total,
)
from service.observability.rule import Alert, Recording, RuleFile, RuleGroup, Severity
from service.observability.thresholds import Thresholds

ACCEPTED = "namespace_job:rancast_accepted_observations:rate1h"
REFUSED = "namespace_job_outcome:rancast_refused_observations:ratio_rate1h"

_REFUSED = 'outcome=~"expired|rejected"'
_ALL = 'outcome=~"accepted|expired|rejected"'


def arrivals_rules(thresholds: Thresholds) -> RuleFile:
    """How many observations arrive, and the alerts on what does not."""
    accepted = rate(select(OBSERVATIONS, 'outcome="accepted"'), "1h")
    refused = rate(select(OBSERVATIONS, _REFUSED), "1h", (*SERVICE, "outcome"))
    arrived = rate(select(OBSERVATIONS, _ALL), "1h")
    records = [
        # After a restart with a journal there are cells, and nothing has arrived yet.
        Recording(ACCEPTED, f"{accepted}\nor {total(STORE_CELLS.name)} * 0"),
        Recording(REFUSED, f"{refused}\n/ on ({names(SERVICE)}) group_left () ({arrived} > 0)"),
    ]
    alerts = [
        _stale("near-rt", thresholds.near_rt_data_age_s),
        _stale("non-rt", thresholds.non_rt_data_age_s),
        # The age is never below 0, and one that is just 0 all the while has an end that lies ahead.
        Alert(
            "RancastDataAhead",
            f"{DATA_AGE.name} == 0",
            Severity.WARNING,
            "Samples end in the future",
            "The newest sample of {{ $labels.instance }} of {{ $labels.job }} ends in the future: "
            "a clock or an offset is wrong, and data that are too old do not show meanwhile.",
            "15m",
        ),
        Alert(
            "RancastSourceSilent",
            f"{ACCEPTED} == 0\nand {total(STORE_CELLS.name)} > 0",
            Severity.WARNING,
            "No observation arrives any more",
            "{{ $labels.job }} holds cells, and none of them has reported within the last hour.",
            "15m",
        ),
        Alert(
            "RancastSourcesThinned",
            f"{ACCEPTED} > 0\n"
            f"and {ACCEPTED} < {number(thresholds.arrivals_ratio)}"
            f" * quantile_over_time(0.5, {ACCEPTED}[1d])\n"
            f"and {ACCEPTED} offset 1d > 0",
            Severity.WARNING,
            "Far fewer observations arrive than usual",
            "{{ $labels.job }} gets {{ $value | humanize }} observations a second, far fewer than "
            "in most hours of the last day: part of the network has fallen silent.",
            "30m",
        ),
        Alert(
            "RancastFilesFailing",
            has_risen(select(INGESTED_FILES, 'result="failed"'), "1h", INSTANCE),
            Severity.WARNING,
            "Files of the network cannot be read",
            "{{ $labels.instance }} of {{ $labels.job }} could not read files of the watched "
            "directory within the last hour.",
        ),
        Alert(
            "RancastObservationsRefused",
            f"{REFUSED} > {number(thresholds.refused_observations_ratio)}",
            Severity.WARNING,
            "Many observations are not stored",
            "{{ $value | humanizePercentage }} of the observations that {{ $labels.job }} gets are "
            "{{ $labels.outcome }}.",
            "15m",
        ),
    ]
    return RuleFile("arrivals", [RuleGroup("rancast-arrivals", [*records, *alerts])])


def _stale(profile: str, age_s: float) -> Alert:
    # The age itself does not say which loop it is for; the requests of its instance do.
    requests = select(REQUEST_DURATION, f'profile="{profile}"', part="_count")
    return Alert(
        "RancastDataStale",
        f"{DATA_AGE.name} > {number(age_s)}\nand on ({names(INSTANCE)}) {requests}",
        Severity.WARNING,
        "The newest sample is too old for the control loop",
        f"The newest sample of {{{{ $labels.instance }}}} of {{{{ $labels.job }}}} ended "
        f"{{{{ $value | humanizeDuration }}}} ago; a {profile} loop should have one of the last "
        f"{number(age_s)} s.",
        "5m",
        {"profile": profile},
    )
