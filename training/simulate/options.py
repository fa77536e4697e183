"""What a user can choose about a simulated network."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from training.simulate.dialects import DIALECTS, expressible
from training.simulate.errors import OptionError
from training.simulate.faults import FaultRates
from training.simulate.measurements import MEASUREMENTS
from training.simulate.network import NetworkSpec
from training.simulate.profiles import PROFILES

_SECONDS_PER_DAY = 86_400
_MOST_CELLS = 100_000
_MOST_DAYS = 3660
_MOST_SEED = 2**63 - 1

DEFAULT_KPIS = (
    "RRU.PrbTotDl",
    "RRU.PrbTotUl",
    "DRB.PdcpSduVolumeDL",
    "DRB.PdcpSduVolumeUL",
    "DRB.UEThpDl",
    "DRB.UEThpUl",
    "DRB.MeanActiveUeDl",
    "RRC.ConnMean",
    "RRC.ConnMax",
    "RRC.ConnEstabAtt",
    "RRC.ConnEstabSucc",
    "PEE.AvgPower",
    "PEE.Energy",
)


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Options of `rancast simulate`, checked when they are made.

    Attributes:
        out: Directory of the files: `history/` and `live/` below it.
        cells: Number of cells.
        cells_per_gnb: Cells of one gNB; each gNB writes files of its own.
        days: Length of the history in days.
        periods: Number of live periods of this run, None to go on until stopped, 0 for none.
        period_seconds: Granularity period: whole minutes that divide a day.
        speed: Live periods a second of wall time; `inf` does not wait at all.
        keep_days: Remove live files of this run when they are so many simulated days old, as a
            network element does; None keeps all.
        start: Begin of the history, floored to the period; None lets the history end now.
        seed: Seed of everything that is random.
        time_zone: IANA zone of the users' days and of the time stamps.
        kpis: Measurements to report, in TS 28.552 spelling.
        profiles: Classes of cells to draw from.
        dialects: How files are written; gNBs take turns where there are several.
        compact: Results as lists where the dialect has such a form.
        compress: Compress files with gzip.
        history_layout: One history file a gNB and local day, or one a gNB and period.
        faults: How often what goes wrong.

    Raises:
        OptionError: An option is out of its range; the message names it.
    """

    out: Path
    cells: int = 12
    cells_per_gnb: int = 3
    days: float = 14.0
    periods: int | None = None
    period_seconds: int = 900
    speed: float = 1.0
    keep_days: float | None = None
    start: datetime | None = None
    seed: int = 1
    time_zone: str = "UTC"
    kpis: tuple[str, ...] = DEFAULT_KPIS
    profiles: tuple[str, ...] = tuple(PROFILES)
    dialects: tuple[str, ...] = ("3gpp-28532", "3gpp-32435")
    compact: bool = False
    compress: bool = False
    history_layout: Literal["day", "period"] = "day"
    faults: FaultRates = field(default_factory=FaultRates)

    def __post_init__(self) -> None:
        _within("cells", self.cells, 1, _MOST_CELLS)
        _within("cells_per_gnb", self.cells_per_gnb, 1, _MOST_CELLS)
        _within("days", self.days, 0, _MOST_DAYS)
        _within("seed", self.seed, 0, _MOST_SEED)
        if self.periods is not None:
            _within("periods", self.periods, 0, math.inf)
        if self.keep_days is not None:
            _within("keep_days", self.keep_days, self.period_seconds / _SECONDS_PER_DAY, _MOST_DAYS)
        if not self.speed > 0:
            raise OptionError(f"speed: expected more than 0 periods a second, got {self.speed}")
        # TS 32.432 names state minutes, so two shorter periods would share a name.
        if self.period_seconds < 60 or self.period_seconds % 60:
            raise OptionError(
                f"period_seconds: expected whole minutes, got {self.period_seconds} s"
            )
        if _SECONDS_PER_DAY % self.period_seconds:
            raise OptionError(
                f"period_seconds: expected a divisor of a day such as 60, 300, 900 or 3600, got "
                f"{self.period_seconds}"
            )
        if self.start is not None and self.start.utcoffset() is None:
            raise OptionError(
                f"start: expected a time with its offset from UTC, got {self.start.isoformat()}"
            )
        if self.start is not None and self.start.timestamp() < 0:
            raise OptionError(f"start: expected 1970 or later, got {self.start.isoformat()}")
        if self.history_layout not in ("day", "period"):
            raise OptionError(
                f"history_layout: expected 'day' or 'period', got {self.history_layout!r}"
            )
        _zone(self.time_zone)
        _known("kpis", self.kpis, tuple(MEASUREMENTS))
        _known("profiles", self.profiles, tuple(PROFILES))
        _known("dialects", self.dialects, tuple(DIALECTS))
        for dialect in self.dialects:
            if not expressible(dialect) & set(self.kpis):
                raise OptionError(
                    f"kpis: expected at least one that dialect {dialect} has a counter for "
                    f"({', '.join(sorted(expressible(dialect)))}), got {', '.join(self.kpis)}"
                )

    @property
    def period_ms(self) -> int:
        """Granularity period in milliseconds."""
        return self.period_seconds * 1000

    @property
    def history_periods(self) -> int:
        """Number of whole periods in the history."""
        return math.floor(self.days * _SECONDS_PER_DAY / self.period_seconds + 1e-9)

    @property
    def kept_periods(self) -> float:
        """For how many periods live files are kept; infinite where all are."""
        if self.keep_days is None:
            return math.inf
        return math.floor(self.keep_days * _SECONDS_PER_DAY / self.period_seconds + 1e-9)

    def network(self) -> NetworkSpec:
        """The network that these options describe."""
        return NetworkSpec(
            cells=self.cells,
            seed=self.seed,
            cells_per_gnb=self.cells_per_gnb,
            period_ms=self.period_ms,
            time_zone=self.time_zone,
            kpis=self.kpis,
            profiles=self.profiles,
        )


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise OptionError(f"{name}: expected {least} to {most}, got {value}")


def _known(name: str, chosen: tuple[str, ...], known: tuple[str, ...]) -> None:
    unknown = [entry for entry in chosen if entry not in known]
    if unknown or not chosen or len(set(chosen)) != len(chosen):
        raise OptionError(
            f"{name}: expected one or more of {', '.join(known)}, each once, got "
            f"{', '.join(chosen) or 'none'}"
        )


def _zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise OptionError(
            f"time_zone: expected an IANA name such as Europe/Madrid, got {name!r}"
        ) from error
