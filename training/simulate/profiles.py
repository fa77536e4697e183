"""Classes of cells: what a day, a week and a year look like where people live, work or travel.

All of it is data. A day is a floor and a few bumps over the hours of the local clock; weekdays and
weekends have their own bumps; planned events (matches, concerts) and unplanned bursts come on top.
Load is offered traffic as a share of what the cell can carry, so 1 is a cell at its limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bump:
    """A daily rise: `height` at local `hour`, with `width_hours` as its standard deviation."""

    hour: float
    width_hours: float
    height: float


@dataclass(frozen=True, slots=True)
class EventHabit:
    """Planned events of a cell.

    Attributes:
        weekday_probability: Chance of an event on a day from Monday to Friday.
        weekend_probability: Chance on a Saturday or Sunday.
        start_hour: Earliest and latest begin, local clock.
        length_hours: Shortest and longest event.
        load_ratio: Typical additional load.
    """

    weekday_probability: float
    weekend_probability: float
    start_hour: tuple[float, float]
    length_hours: tuple[float, float]
    load_ratio: float


@dataclass(frozen=True, slots=True)
class Profile:
    """One class of cells.

    Attributes:
        name: What it is called on the command line.
        weight: Share of such cells in a mixed network, relative to the others.
        peak_load_ratio: Lowest and highest busy-hour load of such cells.
        floor: Load of the quietest hour as a share of the busy hour.
        weekday: Bumps from Monday to Friday; the highest reach about 1.
        weekend: Bumps on Saturday and Sunday.
        noise_ratio: Standard deviation of the log load, period by period.
        bursts_per_day: Mean number of unplanned bursts.
        burst_load_ratio: Typical additional load of a burst.
        growth_per_year: Growth of the log load between two capacity upgrades.
        uplink_ratio: Uplink load as a share of downlink load.
        users_at_capacity: Connected users of a cell at its limit.
        session_seconds: Mean time that a user stays connected.
        event: Planned events, None where there are none.
    """

    name: str
    weight: float
    peak_load_ratio: tuple[float, float]
    floor: float
    weekday: tuple[Bump, ...]
    weekend: tuple[Bump, ...]
    noise_ratio: float
    bursts_per_day: float
    burst_load_ratio: float
    growth_per_year: float
    uplink_ratio: float
    users_at_capacity: float
    session_seconds: float
    event: EventHabit | None = None


_ALL = (
    Profile(
        name="residential",
        weight=4,
        peak_load_ratio=(0.35, 1.05),
        floor=0.08,
        weekday=(Bump(8.0, 1.2, 0.35), Bump(13.5, 2.5, 0.40), Bump(21.2, 2.1, 1.0)),
        weekend=(Bump(12.5, 2.8, 0.65), Bump(21.0, 2.6, 0.95)),
        noise_ratio=0.10,
        bursts_per_day=0.3,
        burst_load_ratio=0.2,
        growth_per_year=0.25,
        uplink_ratio=0.35,
        users_at_capacity=240,
        session_seconds=45,
    ),
    Profile(
        name="business",
        weight=3,
        peak_load_ratio=(0.35, 0.95),
        floor=0.05,
        weekday=(Bump(10.6, 1.6, 0.95), Bump(12.9, 0.9, 0.25), Bump(15.6, 1.8, 0.95)),
        weekend=(Bump(13.0, 3.5, 0.16),),
        noise_ratio=0.09,
        bursts_per_day=0.4,
        burst_load_ratio=0.2,
        growth_per_year=0.20,
        uplink_ratio=0.55,
        users_at_capacity=320,
        session_seconds=40,
    ),
    Profile(
        name="mixed",
        weight=3,
        peak_load_ratio=(0.30, 0.95),
        floor=0.10,
        weekday=(Bump(9.5, 1.8, 0.6), Bump(14.0, 2.6, 0.65), Bump(19.8, 2.6, 0.95)),
        weekend=(Bump(13.2, 2.8, 0.7), Bump(20.3, 3.0, 0.75)),
        noise_ratio=0.10,
        bursts_per_day=0.5,
        burst_load_ratio=0.2,
        growth_per_year=0.22,
        uplink_ratio=0.45,
        users_at_capacity=280,
        session_seconds=40,
    ),
    Profile(
        name="stadium",
        weight=1,
        peak_load_ratio=(0.10, 0.22),
        floor=0.10,
        weekday=(Bump(13.0, 3.0, 0.6), Bump(19.0, 2.5, 0.9)),
        weekend=(Bump(14.0, 3.5, 0.75), Bump(19.0, 2.5, 0.7)),
        noise_ratio=0.14,
        bursts_per_day=0.2,
        burst_load_ratio=0.15,
        growth_per_year=0.15,
        uplink_ratio=0.8,
        users_at_capacity=600,
        session_seconds=60,
        event=EventHabit(0.12, 0.45, (16.0, 20.5), (1.8, 3.2), 1.1),
    ),
    Profile(
        name="highway",
        weight=2,
        peak_load_ratio=(0.25, 0.75),
        floor=0.06,
        weekday=(Bump(7.8, 1.1, 1.0), Bump(13.0, 3.0, 0.45), Bump(17.6, 1.5, 0.95)),
        weekend=(Bump(11.5, 2.0, 0.55), Bump(18.5, 2.2, 0.75)),
        noise_ratio=0.13,
        bursts_per_day=0.8,
        burst_load_ratio=0.3,
        growth_per_year=0.15,
        uplink_ratio=0.4,
        users_at_capacity=200,
        session_seconds=25,
    ),
    Profile(
        name="rural",
        weight=2,
        peak_load_ratio=(0.06, 0.30),
        floor=0.12,
        weekday=(Bump(12.5, 3.0, 0.6), Bump(20.5, 2.4, 1.0)),
        weekend=(Bump(12.0, 3.2, 0.8), Bump(20.0, 2.8, 1.0)),
        noise_ratio=0.22,
        bursts_per_day=0.3,
        burst_load_ratio=0.2,
        growth_per_year=0.12,
        uplink_ratio=0.4,
        users_at_capacity=90,
        session_seconds=45,
    ),
)

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in _ALL}
