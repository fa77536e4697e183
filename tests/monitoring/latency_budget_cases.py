"""Cases of the rules on the latency budget.

Recorded values are compared over each window with samples that are a fifth of it apart, so that
windows are full.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from service.observability.objectives import BURN_WINDOWS, WINDOWS, objectives
from service.observability.thresholds import Thresholds
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

ROUTE = 'route="/v1/forecast",profile="near-rt"'
USED = "rancast_latency_budget_used_ratio"
OTHER_POD = POD.replace("rancast-0", "rancast-1").replace("10.0.0.1", "10.0.0.2")
OTHER_SERVICE = POD.replace("rancast", "other").replace("10.0.0.1", "10.0.0.3")
IN_TIME, ANSWERED = objectives(Thresholds())
STEP_MINUTES = {"5m": 1, "30m": 6, "1h": 12, "2h": 24, "6h": 72, "1d": 288, "3d": 864}


def budgeted(all_: str, in_time: str, target: str = POD) -> list[Series]:
    """Accepted requests with a budget, and those of them that were in time."""
    return [
        series(f"{USED}_count", all_, ROUTE, target),
        series(f"{USED}_bucket", in_time, f'{ROUTE},le="1.0"', target),
    ]


def rejected(reason: str, values: str, route: str = "/v1/forecast", target: str = POD) -> Series:
    labels = f'route="{route}",reason="{reason}"'
    return series("rancast_requests_rejected_total", values, labels, target)


def requests(values: str, route: str = "/v1/forecast", target: str = POD) -> Series:
    labels = f'route="{route}",profile="near-rt"'
    return series("rancast_request_duration_seconds_count", values, labels, target)


def late(share: str, *windows: str) -> list[Told]:
    return [_told("are late or get 504", "0.5%", share, window) for window in windows]


def refused(share: str, *windows: str) -> list[Told]:
    return [_told("are refused or fail", "1%", share, window) for window in windows]


def _told(failing: str, spare: str, share: str, window: str) -> Told:
    (burn,) = [each for each in BURN_WINDOWS if each.long == window]
    return Told(
        {**SERVICE_LABELS, "long_window": window, "severity": burn.severity.value},
        f"{share} of the requests to rancast {failing}, over {window}; the objective leaves "
        f"{spare}. At this rate, {burn.rate:g} times what can be kept up or more, what is left of "
        "a month is soon spent.",
    )


def recorded() -> Iterator[Case]:
    labels = '{namespace="ran", job="rancast"}'
    for window in WINDOWS:
        minutes = STEP_MINUTES[window]

        def grows(per_second: float, minutes: int = minutes) -> str:
            return f"0+{per_second * 60 * minutes:g}x10"

        given = [
            *budgeted(grows(1), grows(0.95)),
            rejected("budget", grows(0.5)),
            rejected("full", grows(0.1)),
            rejected("invalid", grows(0.1)),
            rejected("full", grows(5), "/v1/observations"),
            requests(grows(1.5)),
            requests(grows(0.5), "/v2/models/{model}/versions/{version}/infer"),
            requests(grows(9), "/v2/health/ready"),
            requests(grows(9), "/v1/observations"),
        ]
        others = {
            IN_TIME.ratio_series(window): {labels: 0.05},
            ANSWERED.requests_series(window): {labels: 2.0},
            ANSWERED.ratio_series(window): {labels: 0.3},
        }
        # One a second is accepted, 0.05 a second are late; two a second are asked for.
        yield Recorded(
            IN_TIME.requests_series(window),
            "a steady load",
            given,
            f"{10 * minutes}m",
            {labels: 1.0},
            f"{minutes}m",
            others,
        )


def around_limits() -> Iterator[Case]:
    """A steady share of errors a little below, or above, what each window waits for."""
    for burn, factor in itertools.product(BURN_WINDOWS, (0.95, 1.05)):
        for objective, tell in ((IN_TIME, late), (ANSWERED, refused)):
            share = factor * burn.rate * (1 - objective.ratio)
            all_, failed = 100_000, round(100_000 * share)
            if objective is IN_TIME:
                given = budgeted(f"0+{all_}x80", f"0+{all_ - failed}x80")
            else:
                given = [requests(f"0+{all_}x80"), rejected("budget", f"0+{failed}x80")]
            over = [each.long for each in BURN_WINDOWS if factor * burn.rate > each.rate]
            why = f"{factor:g} of a burn rate of {burn.rate:g}"
            if over:
                told = tell(f"{100 * failed / all_:.4g}%", *over)
                yield Firing(objective.alert, why, given, "390m", told, "5m")
            else:
                yield Silent(objective.alert, why, given, "390m", "5m")


LATENCY_BUDGET: tuple[Case, ...] = (
    *recorded(),
    *around_limits(),
    Recorded(
        ANSWERED.ratio_series("5m"),
        "nothing was ever refused",
        [requests("0+60x10")],
        "10m",
        {'{namespace="ran", job="rancast"}': 0},
    ),
    Firing(
        "RancastInTimeBurn",
        "all is late since ten minutes, after half a day without",
        budgeted("0+300x146", "0+300x144 43200x1"),
        "730m",
        late("16.67%", "1h"),
        "5m",
    ),
    Silent(
        "RancastInTimeBurn",
        "all is late, since five minutes",
        budgeted("0+300x146", "0+300x144 43200x1"),
        "725m",
        "5m",
    ),
    Firing(
        "RancastInTimeBurn",
        "4 % have been late for less than half an hour",
        budgeted("0+5000x40", "0+4800x40"),
        "25m",
        late("4%", "6h"),
        "5m",
    ),
    Firing(
        "RancastInTimeBurn",
        "4 % have been late for less than an hour",
        budgeted("0+5000x40", "0+4800x40"),
        "55m",
        late("4%", "6h", "1d"),
        "5m",
    ),
    Silent(
        "RancastInTimeBurn",
        "4 % have been late for five minutes",
        budgeted("0+5000x40", "0+4800x40"),
        "5m",
        "5m",
    ),
    Firing(
        "RancastInTimeBurn",
        "4 % have been late for hours",
        budgeted("0+5000x40", "0+4800x40"),
        "150m",
        late("4%", "6h", "1d", "3d"),
        "5m",
    ),
    Firing(
        "RancastInTimeBurn",
        "a little more is late than can be kept up",
        budgeted("0+5000x40", "0+4970x40"),
        "150m",
        late("0.6%", "3d"),
        "5m",
    ),
    Firing(
        "RancastInTimeBurn",
        "many refusals hide nothing: 1 in 10 accepted ones is late",
        [*budgeted("0+60x100", "0+54x100"), rejected("budget", "0+500x100")],
        "20m",
        late("10%", "1h", "6h"),
    ),
    Silent(
        "RancastInTimeBurn",
        "as much is late as the objective leaves",
        budgeted("0+5000x80", "0+4975x80"),
        "390m",
        "5m",
    ),
    Silent(
        "RancastInTimeBurn",
        "it is over: the short windows are clean",
        budgeted("0+300x150", "0+300x144 43200x1 43500+300x3"),
        "745m",
        "5m",
    ),
    Silent(
        "RancastInTimeBurn",
        "one of 144 requests in three days was late, which is no trend",
        budgeted("0+2x100", "0+2x90 181+2x9"),
        "94h",
        "1h",
    ),
    Silent(
        "RancastInTimeBurn",
        "all are late, and there were only four",
        budgeted("0+1x4 4x30", "0x34"),
        "300m",
        "15m",
    ),
    Firing(
        "RancastInTimeBurn",
        "a loop that asks every quarter of an hour gets every answer too late",
        budgeted("0+1x24", "0x24"),
        "300m",
        late("100%", "6h", "1d", "3d"),
        "15m",
    ),
    Silent(
        "RancastInTimeBurn",
        "a replica was replaced, and its counters begin anew",
        [
            *budgeted("0+5000x40 _x40", "0+5000x40 _x40"),
            *budgeted("_x40 0+5000x40", "_x40 0+5000x40", OTHER_POD),
        ],
        "390m",
        "5m",
    ),
    Firing(
        "RancastInTimeBurn",
        "the process starts again and again, and 1 in 10 is late all the while",
        budgeted("0+600x10 0+600x10 0+600x10", "0+540x10 0+540x10 0+540x10"),
        "30m",
        late("10%", "1h", "6h"),
    ),
    Firing(
        "RancastInTimeBurn",
        "one of two services is late",
        [
            *budgeted("0+60x100", "0+54x100"),
            *budgeted("0+6000x100", "0+6000x100", OTHER_SERVICE),
        ],
        "20m",
        late("10%", "1h", "6h"),
    ),
    Silent(
        "RancastInTimeBurn",
        "what is refused at the door is not late",
        [*budgeted("0+25x20", "0+25x20"), rejected("budget", "0+275x20")],
        "90m",
        "5m",
    ),
    Firing(
        "RancastAnsweredBurn",
        "every third request is refused, which neither probes nor observations hide",
        [
            requests("0+300x20"),
            requests("0+9000x20", "/v2/health/ready"),
            requests("0+9000x20", "/v1/observations"),
            rejected("budget", "0+100x20"),
        ],
        "90m",
        refused("33.33%", "1h", "6h", "1d", "3d"),
        "5m",
    ),
    Silent(
        "RancastAnsweredBurn",
        "every third request was refused, and all are answered again",
        [requests("0+300x150"), rejected("budget", "0x144 300 600x5")],
        "745m",
        "5m",
    ),
    Silent(
        "RancastAnsweredBurn",
        "all were refused, and there were only four",
        [requests("0+1x4 4x30"), rejected("budget", "0+1x4 4x30")],
        "300m",
        "15m",
    ),
    Silent(
        "RancastAnsweredBurn",
        "observations are refused, which other alerts tell of",
        [requests("0+300x20"), rejected("full", "0+300x20", "/v1/observations")],
        "90m",
        "5m",
    ),
    Firing(
        "RancastAnsweredBurn",
        "one of two services refuses every third request",
        [
            requests("0+300x20"),
            rejected("budget", "0+100x20"),
            requests("0+30000x20", target=OTHER_SERVICE),
        ],
        "90m",
        refused("33.33%", "1h", "6h", "1d", "3d"),
        "5m",
    ),
    Silent(
        "RancastAnsweredBurn",
        "every third request is refused, since five minutes",
        [requests("0+300x20"), rejected("budget", "0+100x20")],
        "5m",
        "5m",
    ),
    Silent(
        "RancastAnsweredBurn",
        "clients send nonsense",
        [requests("0+300x20"), rejected("invalid", "0+150x20")],
        "90m",
        "5m",
    ),
    Silent(
        "RancastAnsweredBurn",
        "fewer are refused than the objective leaves",
        [requests("0+5000x20"), rejected("full", "0+45x20")],
        "90m",
        "5m",
    ),
)
