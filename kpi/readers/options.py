"""What a caller can choose about reading, and the bounds that no file may break.

What a reader has to say without failing (values that are no numbers, a record of unequal lengths)
goes to `ReadOptions.on_warning`, or to the `kpi.readers` logger where there is none, as one
`key=value` line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from kpi.readers.times import LONGEST_PERIOD_MS, parse_zone

_log = logging.getLogger("kpi.readers")


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds of one file; a file beyond one is refused, not cut.

    Attributes:
        max_bytes: Size of the file and of what it decompresses to.
        max_samples: Number of samples, list values counted one by one.
        batch_samples: Most samples of one batch.
    """

    max_bytes: int = 256 * 2**20
    max_samples: int = 5_000_000
    batch_samples: int = 65_536

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_samples", "batch_samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Which column of a table means what.

    A table is long (one row a cell, time and KPI) where `kpi` and `value` are named, else wide:
    every numeric column that is not named here is a KPI. Names that are None are looked for among
    usual ones (`timestamp`, `cell_id`, `kpi`, `value`, …) without regard to case.

    Attributes:
        timestamp: Column of the time stamps.
        cell: Column of the cells' names.
        kpi: Column of the KPI names of a long table.
        value: Column of the values of a long table.
        suspect: Column of the source's own doubt.
        ignore: Columns that are no KPIs although they are numeric.
        stamp: Whether a stamp is the start of its period, as in most exports, or its end.
        period_seconds: Length of a period; None takes the median spacing of each cell's stamps.
    """

    timestamp: str | None = None
    cell: str | None = None
    kpi: str | None = None
    value: str | None = None
    suspect: str | None = None
    ignore: tuple[str, ...] = ()
    stamp: Literal["start", "end"] = "start"
    period_seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.kpi is None) != (self.value is None):
            raise ValueError(
                f"expected both kpi and value for a long table or neither for a wide one, got "
                f"kpi={self.kpi!r}, value={self.value!r}"
            )
        if self.stamp not in ("start", "end"):
            raise ValueError(f"expected stamp 'start' or 'end', got {self.stamp!r}")
        if self.period_seconds is not None and not (
            1 <= self.period_seconds * 1000 <= LONGEST_PERIOD_MS
        ):
            raise ValueError(
                f"expected period_seconds from 0.001 to 366 days, got {self.period_seconds}"
            )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        time_zone: IANA zone of time stamps without an offset.
        keep_suspect: Whether whoever masks suspect values shall keep them; readers always pass the
            flag on beside the value.
        include_dn_prefix: Put the file's `dnPrefix` in front of cell names.
        vectors: Comma-list counters become `name[0]`, `name[1]`, …, or are left out.
        columns: Meaning of a table's columns, None to look for usual names.
        limits: Bounds of one file.
        on_warning: Takes what is worth saying about a file that was read all the same; None logs
            it.
    """

    time_zone: str = "UTC"
    keep_suspect: bool = False
    include_dn_prefix: bool = False
    vectors: Literal["explode", "skip"] = "explode"
    columns: ColumnMapping | None = None
    limits: ReadLimits = field(default_factory=ReadLimits)
    on_warning: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        parse_zone(self.time_zone)
        if self.vectors not in ("explode", "skip"):
            raise ValueError(f"expected vectors 'explode' or 'skip', got {self.vectors!r}")

    def warn(self, event: str, **fields: object) -> None:
        """Say something about a file as one line: `event=… key=value …`."""
        line = " ".join([f"event={event}", *(f"{key}={value}" for key, value in fields.items())])
        if self.on_warning is None:
            _log.warning("%s", line)
        else:
            self.on_warning(line)
