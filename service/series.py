"""From series on the wire to windows and observations; checks what only settings can bound.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpi.catalogue import Catalogue
from kpi.observation import ObservationBatch
from kpi.window import KpiWindow, PlannedEvent, checked_window
from model.errors import ModelError
from model.holidays import check_country
from service.errors import InvalidRequestError, TooLargeError
from service.schemas import Event, Series
from service.timestamps import EARLIEST_MS, LATEST_MS, is_time_zone, to_ms, to_rfc3339

_LARGEST = float(np.finfo(np.float32).max)
# Samples that are put together in one go, which lets no other thread run: a tenth of a millisecond.
_RUN_SAMPLES = 131_072
# KPIs under the catalogue's names, and the client's spelling of each.
_Names = tuple[tuple[str, ...], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class SeriesLimits:
    """What one request may hold.

    Attributes:
        max_series: Series in a request.
        max_kpis: KPIs in a series.
    """

    max_series: int
    max_kpis: int


class NamedWindow(NamedTuple):
    """A window, and what the client calls its KPIs.

    Attributes:
        window: Samples under the catalogue's names.
        names: The client's spelling by catalogue name.
    """

    window: KpiWindow
    names: Mapping[str, str]

    def spell(self, kpis: Sequence[str]) -> list[str]:
        """The client's spelling of these KPIs of the window."""
        return [self.names[kpi] for kpi in kpis]


@dataclass(frozen=True, slots=True)
class SentObservations:
    """A batch, and where each of its cells stands in the request.

    Attributes:
        batch: n samples; unknown values are NaN.
        first_series: Position of the first series of each cell, by the cell's name.
        place: Where the request has them: the list of series, or a column with a row for each.
    """

    batch: ObservationBatch
    first_series: Mapping[str, int]
    place: str = "series"

    def pointer(self, cell: str) -> str:
        """JSON Pointer to the first series of a cell."""
        position = self.first_series.get(cell)
        return pointer(self.place) if position is None else pointer(self.place, position)


def pointer(*parts: str | int) -> str:
    """A JSON Pointer (RFC 6901) from its parts."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def to_windows(
    series: Sequence[Series],
    limits: SeriesLimits,
    catalogue: Catalogue,
    time_zone: str,
    country: str | None = None,
) -> list[NamedWindow]:
    """One window a series, in order.

    Args:
        series: What the client sent.
        limits: What a request may hold.
        catalogue: Resolves aliases.
        time_zone: Zone of series that name none.
        country: Country of series that name none.

    Raises:
        TooLargeError: More series than the limit.
        InvalidRequestError: A series that cannot be put on a grid.
    """
    _check_count(series, limits)
    names: dict[tuple[str, ...], _Names] = {}
    named: list[NamedWindow] = []
    for run in _runs(series):
        spelt = [
            _names_of(position, series[position], limits, catalogue, names) for position in run
        ]
        blocks = _blocks(run, series)
        for position, (kpis, spelling), values in zip(run, spelt, blocks, strict=True):
            one = series[position]
            start_ms, step_ms = _grid(position, one, values.shape[1])
            window = checked_window(
                one.cell,
                kpis,
                start_ms,
                step_ms,
                values,
                _zone(position, one) or time_zone,
                tuple(_event(position, number, e) for number, e in enumerate(one.events))
                if one.events
                else (),
                _country(position, one) or country,
            )
            named.append(NamedWindow(window, spelling))
    return named


def to_observations(
    series: Sequence[Series],
    limits: SeriesLimits,
    catalogue: Catalogue,
    *,
    arrival_ms: int,
) -> SentObservations:
    """All samples of a request as one batch.

    Raises:
        TooLargeError: More series than the limit.
        InvalidRequestError: A series that cannot be put on a grid.
    """
    _check_count(series, limits)
    cells: dict[str, int] = {}
    kpis: dict[str, int] = {}
    names: dict[tuple[str, ...], _Names] = {}
    first_series: dict[str, int] = {}
    blocks: list[_Block] = []
    for position, one in enumerate(series):
        canonical, _ = _names_of(position, one, limits, catalogue, names)
        values = _values(position, one)  # (K, T)
        start_ms, step_ms = _grid(position, one, values.shape[1])
        first_series.setdefault(one.cell, position)
        blocks.append(
            _Block(
                cell=cells.setdefault(one.cell, len(cells)),
                kpis=[kpis.setdefault(name, len(kpis)) for name in canonical],
                start_ms=start_ms,
                step_ms=step_ms,
                values=values,
            )
        )
    batch = ObservationBatch(
        cells=tuple(cells),
        kpis=tuple(kpis),
        cell_index=np.concatenate([block.cell_column() for block in blocks]),
        kpi_index=np.concatenate([block.kpi_column() for block in blocks]),
        period_end_ms=np.concatenate([block.end_column() for block in blocks]),
        period_ms=np.concatenate([block.period_column() for block in blocks]),
        values=np.concatenate([block.values.ravel() for block in blocks]),
        suspect=np.zeros(sum(block.values.size for block in blocks), dtype=np.bool_),
        arrival_ms=arrival_ms,
    )
    return SentObservations(batch, first_series)


@dataclass(frozen=True, slots=True)
class _Block:
    """One series as columns: KPI by KPI, sample by sample."""

    cell: int
    kpis: list[int]
    start_ms: int
    step_ms: int
    values: NDArray[np.float64]  # (K, T)

    def cell_column(self) -> NDArray[np.int32]:
        return np.full(self.values.size, self.cell, dtype=np.int32)

    def kpi_column(self) -> NDArray[np.int32]:
        return np.repeat(np.array(self.kpis, dtype=np.int32), self.values.shape[1])

    def end_column(self) -> NDArray[np.int64]:
        ends_ms = self.start_ms + np.arange(1, self.values.shape[1] + 1) * self.step_ms
        return np.tile(ends_ms.astype(np.int64), self.values.shape[0])

    def period_column(self) -> NDArray[np.int64]:
        return np.full(self.values.size, self.step_ms, dtype=np.int64)


def _check_count(series: Sequence[Series], limits: SeriesLimits) -> None:
    if len(series) > limits.max_series:
        raise TooLargeError(
            f"expected at most {limits.max_series} series in one request, got {len(series)}; "
            "divide them over several"
        )


def _runs(series: Sequence[Series]) -> Iterator[range]:
    """Positions of series that lie side by side and together are some work, but not much."""
    begin = samples = 0
    for position, one in enumerate(series):
        samples += sum(map(len, one.kpis.values()))
        if samples >= _RUN_SAMPLES:
            yield range(begin, position + 1)
            begin, samples = position + 1, 0
    if begin < len(series):
        yield range(begin, len(series))


def _blocks(run: range, series: Sequence[Series]) -> list[NDArray[np.float32]]:
    """Samples (K, T) of the series at these positions, which are views of one array."""
    rows: list[NDArray[np.float64]] = []
    for position in run:
        one = series[position]
        if len(one.kpis) > 1:
            _check_lengths(position, one)
        rows += one.kpis.values()
    with np.errstate(over="ignore"):  # is told below, with its place
        flat = np.concatenate(rows, dtype=np.float32, casting="same_kind")
    # Two numbers tell more quickly than a comparison of each; they pass over NaN. What is a little
    # too large for float32 is rounded to the largest, so that one is looked at more closely.
    if np.fmax.reduce(flat) >= _LARGEST or np.fmin.reduce(flat) <= -_LARGEST:
        for position in run:
            _values(position, series[position])
    blocks = []
    end = 0
    for position in run:
        kpis = series[position].kpis
        steps = len(next(iter(kpis.values())))
        begin, end = end, end + len(kpis) * steps
        blocks.append(flat[begin:end].reshape(len(kpis), steps))
    return blocks


def _names_of(
    position: int,
    one: Series,
    limits: SeriesLimits,
    catalogue: Catalogue,
    known: dict[tuple[str, ...], _Names],
) -> _Names:
    """Names of a series' KPIs; the series of a request mostly have the same, which are `known`."""
    sent = tuple(one.kpis)
    names = known.get(sent)
    if names is None:
        canonical = _canonical_names(position, one, limits, catalogue)
        names = known[sent] = canonical, dict(zip(canonical, sent, strict=True))
    return names


def _canonical_names(
    position: int, one: Series, limits: SeriesLimits, catalogue: Catalogue
) -> tuple[str, ...]:
    if len(one.kpis) > limits.max_kpis:
        raise InvalidRequestError(
            pointer("series", position, "kpis"),
            f"expected at most {limits.max_kpis} KPIs, got {len(one.kpis)}",
        )
    sent: dict[str, str] = {}
    for name in one.kpis:
        taken = sent.setdefault(catalogue.canonical(name), name)
        if taken != name:
            raise InvalidRequestError(
                pointer("series", position, "kpis", name),
                f"expected each KPI once, but this is another name of {taken!r}",
            )
    return tuple(sent)


def _values(position: int, one: Series) -> NDArray[np.float64]:
    if len(one.kpis) == 1:
        (only,) = one.kpis.values()
        values = only[np.newaxis]  # (1, T)
    else:
        _check_lengths(position, one)
        values = np.stack(list(one.kpis.values()))  # (K, T)
    # Two numbers tell more quickly than a comparison of each; they pass over NaN.
    if (
        np.fmax.reduce(values, axis=None) > _LARGEST
        or np.fmin.reduce(values, axis=None) < -_LARGEST
    ):
        row, column = (int(i) for i in np.argwhere(np.abs(values) > _LARGEST)[0])
        raise InvalidRequestError(
            pointer("series", position, "kpis", list(one.kpis)[row], column),
            f"expected a value within ±{_LARGEST:.3g}, got {values[row, column]:g}",
        )
    return values


def _check_lengths(position: int, one: Series) -> None:
    first, *others = one.kpis
    expected = len(one.kpis[first])
    for name in others:
        if len(one.kpis[name]) != expected:
            raise InvalidRequestError(
                pointer("series", position, "kpis", name),
                f"expected {expected} samples, as {first!r} has, got {len(one.kpis[name])}",
            )


def _grid(position: int, one: Series, steps: int) -> tuple[int, int]:
    """Start and step in milliseconds."""
    step_ms = round(one.step_seconds * 1000)
    if step_ms < 1 or abs(step_ms - one.step_seconds * 1000) > 1e-6:
        raise InvalidRequestError(
            pointer("series", position, "step_seconds"),
            f"expected a whole number of milliseconds, got {one.step_seconds * 1000:g}",
        )
    start_ms = to_ms(one.start)
    if start_ms < EARLIEST_MS or start_ms + steps * step_ms > LATEST_MS:
        raise InvalidRequestError(
            pointer("series", position, "start"),
            f"expected samples between {to_rfc3339(EARLIEST_MS)} and {to_rfc3339(LATEST_MS)}",
        )
    return start_ms, step_ms


def _zone(position: int, one: Series) -> str | None:
    if one.time_zone is not None and not is_time_zone(one.time_zone):
        raise InvalidRequestError(
            pointer("series", position, "time_zone"),
            f"expected an IANA name such as Europe/Madrid, got {one.time_zone!r}",
        )
    return one.time_zone


def _country(position: int, one: Series) -> str | None:
    try:
        check_country(one.country)
    except ModelError as error:
        raise InvalidRequestError(pointer("series", position, "country"), str(error)) from error
    return one.country


def _event(position: int, number: int, event: Event) -> PlannedEvent:
    if event.end <= event.start:
        raise InvalidRequestError(
            pointer("series", position, "events", number, "end"),
            "expected an end after the start",
        )
    return PlannedEvent(to_ms(event.start), to_ms(event.end), event.kind)
