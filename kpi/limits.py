"""What the store may hold, what that costs in memory, and what it answers to a merge."""

from __future__ import annotations

from dataclasses import dataclass, fields

# KPI numbers are kept as uint16: half of them for the catalogue's, half for others.
MAX_KPI_NAMES = 32_767

# One entry of a dictionary, its string of NAME_CHARS characters, its integer, and its place in the
# list of names and in the sorted list of names (CPython 3.11 to 3.14, 64 bit).
NAME_CHARS = 96
NAME_BYTES = 100 + (49 + NAME_CHARS) + 32 + 8 + 8
SAMPLE_BYTES = 4
CUMULATIVE_SAMPLE_BYTES = 8
ROW_INDEX_BYTES = 8
STEP_BYTES = 8 + 4
SLOT_BYTES = 2 + 4


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Bounds of a `KpiStore`; together they bound its memory.

    Attributes:
        max_cells: Greatest number of cells.
        history_steps: Samples kept of each KPI of a cell at each step.
        max_kpis_per_cell: Greatest number of KPIs of a cell at one step. At most half of them,
            rounded down, may be KPIs that the catalogue does not know (a name without an entry or
            alias of its own): a vendor's hundreds of counters leave room for what forecasts are
            made of, whichever comes first.
        snap_tolerance_ratio: Greatest distance of a stamp to the grid, as a share of its period.
        keep_suspect: Store values that their source doubts instead of masking them.
        max_steps_per_cell: Greatest number of different granularity periods of a cell.
        max_kpi_names: Greatest number of different KPI names over all cells, not counting those
            of the catalogue.
        max_name_chars: Longest name of a cell or KPI.
        max_future_seconds: How far a period may end after its batch arrived and after the time of
            the merge; sources further ahead have a wrong clock.
    """

    max_cells: int = 10_000
    history_steps: int = 1440
    max_kpis_per_cell: int = 16
    snap_tolerance_ratio: float = 0.5
    keep_suspect: bool = False
    max_steps_per_cell: int = 4
    max_kpi_names: int = 4096
    max_name_chars: int = 1024
    max_future_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "keep_suspect" and not value > 0:
                raise ValueError(f"expected a positive {field.name}, got {value}")
        if self.snap_tolerance_ratio > 0.5:
            raise ValueError(
                "expected a snap_tolerance_ratio of at most 0.5 (half a period), got "
                f"{self.snap_tolerance_ratio}"
            )
        if self.max_kpi_names > MAX_KPI_NAMES:
            raise ValueError(
                f"expected max_kpi_names of at most {MAX_KPI_NAMES}, got {self.max_kpi_names}"
            )

    @property
    def max_unknown_kpis_per_cell(self) -> int:
        """Greatest number of KPIs of a cell at one step that the catalogue does not know."""
        return self.max_kpis_per_cell // 2

    def stated_bytes_per_cell(self, kpis: int, *, cumulative_kpis: int = 0, steps: int = 1) -> int:
        """Memory of one cell, which follows from the configuration alone.

        Rows of samples, the index of each row's newest sample, the tables from names to rows, and
        the dictionary entry of a name of 96 characters.

        Args:
            kpis: Number of KPIs of the cell at each step.
            cumulative_kpis: How many of them are running totals, which are kept in double
                precision: their differences would drown in the rounding of float32.
            steps: Number of granularity periods at which the cell is reported.
        """
        return self.stated_bytes(
            cells=1,
            series=steps,
            rows=steps * (kpis - cumulative_kpis),
            cumulative_rows=steps * cumulative_kpis,
        )

    def stated_bytes(self, *, cells: int, series: int, rows: int, cumulative_rows: int) -> int:
        """Memory of so many cells with what they hold; see `stated_bytes_per_cell`.

        Args:
            cells: Number of cells.
            series: Number of pairs of a cell and a granularity period.
            rows: Number of KPIs of all series, without running totals.
            cumulative_rows: Number of running totals of all series.
        """
        row_bytes = self.history_steps * SAMPLE_BYTES + ROW_INDEX_BYTES
        cumulative_row_bytes = self.history_steps * CUMULATIVE_SAMPLE_BYTES + ROW_INDEX_BYTES
        return (
            cells * (NAME_BYTES + self.max_steps_per_cell * STEP_BYTES)
            + series * self.max_kpis_per_cell * SLOT_BYTES
            + rows * row_bytes
            + cumulative_rows * cumulative_row_bytes
        )


@dataclass(frozen=True, slots=True)
class Rejection:
    """Samples of a batch that were refused for one reason.

    Attributes:
        path: Cell of the first of them.
        reason: What was expected, what came, and how to mend it.
        count: Number of samples.
    """

    path: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What became of the samples of a batch: accepted + expired + rejected is all of them.

    Attributes:
        accepted: Samples that were stored.
        merged: Those of the accepted that replaced a value (or were replaced by a later sample of
            the same batch).
        late: Samples older than the newest one of their KPI before the merge.
        rejected: What was refused, an entry for each reason.
        expired: Those that were older than the kept history, and dropped.
    """

    accepted: int
    merged: int
    late: int
    rejected: tuple[Rejection, ...] = ()
    expired: int = 0


@dataclass(frozen=True, slots=True)
class CellSummary:
    """What the store holds of one cell at one step.

    Attributes:
        cell: Distinguished name.
        kpis: KPI names, ordered.
        step_ms: Granularity period.
        first_ms: Begin of the oldest sample with a value.
        last_ms: End of the newest sample.
    """

    cell: str
    kpis: tuple[str, ...]
    step_ms: int
    first_ms: int
    last_ms: int
