"""From an Arrow IPC stream to windows and observations: one row a cell and KPI.

Rows of the same cell, start, step, length, zone and country are one series. Samples stay where they
came: a window is a view of the body wherever the samples are float32 and none is null.

Axis legend: n rows, K KPIs of a series, T samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from kpi.catalogue import Catalogue
from kpi.observation import ObservationBatch
from kpi.window import PlannedEvent, checked_window
from model.errors import ModelError
from model.holidays import check_country
from service.codecs.arrow_columns import (
    Lists,
    Names,
    check_span,
    column_types,
    instants_ms,
    lists_of,
    names_of,
    steps_ms,
)
from service.codecs.arrow_events import events_of
from service.codecs.arrow_stream import read_stream, refusing_damage
from service.errors import InvalidRequestError, TooLargeError
from service.faults import body_faults
from service.schemas import ForecastOptions
from service.series import NamedWindow, SentObservations, SeriesLimits, pointer
from service.timestamps import is_time_zone

METADATA_KEY = "rancast"
_REQUIRED = ("cell", "kpi", "start", "step_seconds", "values")
_Events = tuple[PlannedEvent, ...]


@dataclass(frozen=True, slots=True)
class ArrowHistories:
    """Histories in columns.

    Attributes:
        cells: The cell of each row.
        kpis: The KPI of each row, as the client spells it.
        start_ms: int64 (n,), begin of the first sample of each row.
        step_ms: int64 (n,), length of its samples.
        lists: The samples of each row.
        zones: Its time zone, where the column is there.
        countries: Its country, where the column is there.
        events: Planned events by row, of those that have some.
    """

    cells: Names
    kpis: Names
    start_ms: NDArray[np.int64]
    step_ms: NDArray[np.int64]
    lists: Lists
    zones: Names | None
    countries: Names | None
    events: dict[int, _Events]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.start_ms)

    def windows(
        self,
        limits: SeriesLimits,
        catalogue: Catalogue,
        time_zone: str,
        country: str | None = None,
    ) -> list[NamedWindow]:
        """One window a series, in the order of their first rows.

        Raises:
            TooLargeError: More series than the limit.
            InvalidRequestError: A series with too many KPIs, or with one KPI twice.
        """
        rows, begins = self._series()
        if len(begins) - 1 > limits.max_series:
            raise TooLargeError(
                f"expected at most {limits.max_series} series in one request, got "
                f"{len(begins) - 1}; divide them over several"
            )
        _check_counts(rows, begins, limits)
        values = self.lists.values.astype(np.float32, copy=False)
        firsts = rows[begins[:-1]]
        known: dict[tuple[int, ...], tuple[tuple[str, ...], dict[str, str]]] = {}
        codes, order, edges = self.kpis.codes[rows].tolist(), rows.tolist(), begins.tolist()
        blocks = self._blocks(values, rows, begins)
        none: _Events = ()
        series = zip(
            edges[:-1],
            edges[1:],
            firsts.tolist(),
            self.cells.codes[firsts].tolist(),
            self.start_ms[firsts].tolist(),
            self.step_ms[firsts].tolist(),
            blocks,
            _chosen(self.zones, firsts, time_zone),
            _chosen(self.countries, firsts, country),
            strict=True,
        )
        distinct = self.cells.distinct
        named = []
        for begin, end, first, cell, start_ms, step_ms, block, zone, land in series:
            kpis = tuple(codes[begin:end])
            names = known.get(kpis)
            if names is None:
                names = known[kpis] = self._names(kpis, order[begin:end], catalogue)
            # Steps were checked column by column, and a block has a row for each of these codes.
            window = checked_window(
                distinct[cell],
                names[0],
                start_ms,
                step_ms,
                block,
                zone or time_zone,
                self.events.get(first, none),
                land,
            )
            named.append(NamedWindow(window, names[1]))
        return named

    def observations(
        self,
        limits: SeriesLimits,  # noqa: ARG002 - rows are bounded when they are read
        catalogue: Catalogue,
        *,
        arrival_ms: int,
    ) -> SentObservations:
        """All samples as one batch, row by row."""
        kpis: dict[str, int] = {}
        names = catalogue.canonical_names(self.kpis.distinct)
        canonical = np.array([kpis.setdefault(name, len(kpis)) for name in names], dtype=np.int32)
        lengths = self.lists.lengths
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        number = np.arange(1, total + 1) - np.repeat(ends - lengths, lengths)  # 1 is a row's first
        step_ms = np.repeat(self.step_ms, lengths)
        first = int(self.lists.begins[0])
        batch = ObservationBatch(
            cells=tuple(self.cells.distinct),
            kpis=tuple(kpis),
            cell_index=np.repeat(self.cells.codes.astype(np.int32), lengths),
            kpi_index=np.repeat(canonical[self.kpis.codes], lengths),
            period_end_ms=np.repeat(self.start_ms, lengths) + number * step_ms,
            period_ms=step_ms,
            values=self.lists.values[first : first + total].astype(np.float64),
            suspect=np.zeros(total, dtype=np.bool_),
            arrival_ms=arrival_ms,
        )
        codes, rows = np.unique(self.cells.codes, return_index=True)
        first_rows = {
            self.cells.distinct[code]: int(row) for code, row in zip(codes, rows, strict=True)
        }
        return SentObservations(batch, first_rows, "cell")

    def _series(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows in the order of their series, and where each series begins among them (and ends)."""
        n = len(self)
        if len(self.cells.distinct) == n:
            return np.arange(n), np.arange(n + 1)
        key = self.cells.codes
        for column in (self.start_ms, self.step_ms, self.lists.lengths):
            key = _refined(key, column)
        for names in (self.zones, self.countries):
            if names is not None:
                key = _refined(key, names.codes)
        _, first, series = np.unique(key, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        series = rank[series]
        begins = np.concatenate([[0], np.cumsum(np.bincount(series))])
        return np.argsort(series, kind="stable"), begins

    def _blocks(
        self, values: NDArray[np.float32], rows: NDArray[np.int64], begins: NDArray[np.int64]
    ) -> list[NDArray[np.float32]]:
        """Samples (K, T) of each series: views, save where a series' rows lie apart.

        Args:
            values: All samples.
            rows: Rows in the order of their series.
            begins: Where each series begins among them (and ends).
        """
        counts, lengths = np.diff(begins), self.lists.lengths
        count, steps = int(counts[0]), int(lengths[0])
        at = self.lists.begins
        if (
            (counts == count).all()
            and (lengths == steps).all()
            and (rows == np.arange(len(rows))).all()
            # Rows of a sliced table may lie apart even so.
            and (np.diff(at) == steps).all()
        ):
            end = int(at[0]) + len(rows) * steps
            return list(values[int(at[0]) : end].reshape(len(counts), count, steps))
        order, edges, ats = rows.tolist(), begins.tolist(), at.tolist()
        return [
            _block(values, ats, order[begin:end], int(lengths[order[begin]]))
            for begin, end in pairwise(edges)
        ]

    def _names(
        self, kpis: tuple[int, ...], rows: list[int], catalogue: Catalogue
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Catalogue names of a series' KPIs, and the client's spelling of each."""
        spelt: dict[str, str] = {}
        for code, row in zip(kpis, rows, strict=True):
            sent = self.kpis.distinct[code]
            name = catalogue.canonical(sent)
            if name in spelt:
                raise InvalidRequestError(
                    pointer("kpi", row),
                    f"expected each KPI of a series once, but this is {spelt[name]!r} again",
                )
            spelt[name] = sent
        return tuple(spelt), spelt


def decode_arrow_forecast(
    body: bytes, limits: SeriesLimits
) -> tuple[ForecastOptions, ArrowHistories]:
    """Options and histories of a `POST /v1/forecast`; may be called from any thread.

    The options are a JSON object in the schema's metadata, under the key `rancast`.

    Raises:
        MalformedBodyError: It is no Arrow stream, or a damaged one.
        TooLargeError: It has more rows than the limits allow.
        InvalidRequestError: A column or an option cannot be used.
    """
    table = read_stream(body, limits.max_series * limits.max_kpis)
    text = (table.schema.metadata or {}).get(METADATA_KEY.encode(), b"{}")
    try:
        options = ForecastOptions.model_validate_json(text)
    except ValidationError as error:
        first, *others = body_faults(error.errors(include_url=False))
        raise InvalidRequestError(
            first.path,
            f"{first.reason} (options are JSON in the schema's metadata {METADATA_KEY!r})",
            tuple(others),
        ) from error
    with refusing_damage():
        return options, _histories(table)


def decode_arrow_observations(body: bytes, limits: SeriesLimits) -> ArrowHistories:
    """Histories of a `POST /v1/observations`; may be called from any thread.

    Raises:
        MalformedBodyError: It is no Arrow stream, or a damaged one.
        TooLargeError: It has more rows than the limits allow.
        InvalidRequestError: A column cannot be used.
    """
    with refusing_damage():
        return _histories(read_stream(body, limits.max_series * limits.max_kpis))


def _histories(table: pa.Table) -> ArrowHistories:
    _check_columns(table.schema)
    if not table.num_rows:
        raise InvalidRequestError(pointer("cell"), "expected at least one row")
    columns = {name: table.column(name).chunk(0) for name in table.column_names}
    zones = _optional_names("time_zone", columns)
    for row, zone in _each_once(zones):
        if not is_time_zone(zone):
            raise InvalidRequestError(
                pointer("time_zone", row),
                f"expected an IANA name such as Europe/Madrid, got {zone!r}",
            )
    countries = _optional_names("country", columns)
    for row, country in _each_once(countries):
        try:
            check_country(country)
        except ModelError as error:
            raise InvalidRequestError(pointer("country", row), str(error)) from error
    histories = ArrowHistories(
        cells=names_of("cell", columns["cell"]),
        kpis=names_of("kpi", columns["kpi"]),
        start_ms=instants_ms("start", columns["start"]),
        step_ms=steps_ms("step_seconds", columns["step_seconds"]),
        lists=lists_of("values", columns["values"]),
        zones=zones,
        countries=countries,
        events=events_of("events", columns["events"]) if "events" in columns else {},
    )
    check_span(histories.start_ms, histories.step_ms, histories.lists.lengths)
    return histories


def _check_columns(schema: pa.Schema) -> None:
    names = schema.names
    for name in _REQUIRED:
        if name not in names:
            raise InvalidRequestError(pointer(name), "expected this column, but it is missing")
    allowed = {name for name, _ in column_types()}
    for name in names:
        if name not in allowed:
            raise InvalidRequestError(
                pointer(name), "unknown column; remove it or correct its name"
            )
        if names.count(name) > 1:
            raise InvalidRequestError(pointer(name), "expected this column once")


def _optional_names(name: str, columns: dict[str, pa.Array]) -> Names | None:
    return names_of(name, columns[name], optional=True) if name in columns else None


def _each_once(names: Names | None) -> list[tuple[int, str]]:
    """Each name that some row has, with the first of these rows."""
    if names is None:
        return []
    codes, rows = np.unique(names.codes, return_index=True)
    return [
        (int(row), names.distinct[code]) for code, row in zip(codes, rows, strict=True) if code >= 0
    ]


def _chosen(names: Names | None, rows: NDArray[np.int64], default: str | None) -> list[str | None]:
    """The name in each of these rows, `default` where there is none."""
    if names is None:
        return [default] * len(rows)
    with_default = [*names.distinct, default]  # a code of -1 is the last
    return [with_default[code] for code in names.codes[rows].tolist()]


def _block(
    values: NDArray[np.float32], begins: list[int], rows: list[int], steps: int
) -> NDArray[np.float32]:
    """Samples (K, T) of a series' rows: a view where the rows follow one another."""
    at = begins[rows[0]]
    if rows[-1] - rows[0] == len(rows) - 1:
        return values[at : at + len(rows) * steps].reshape(len(rows), steps)
    return np.stack([values[begins[row] : begins[row] + steps] for row in rows])


def _refined(key: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """A key of rows that also tells apart what differs in another column."""
    if (column == column[0]).all():
        return key
    distinct, number = np.unique(column, return_inverse=True)
    _, dense = np.unique(key * len(distinct) + number, return_inverse=True)
    return np.asarray(dense, dtype=np.int64)


def _check_counts(rows: NDArray[np.int64], begins: NDArray[np.int64], limits: SeriesLimits) -> None:
    counts = np.diff(begins)
    if (counts > limits.max_kpis).any():
        series = int(np.argmax(counts > limits.max_kpis))
        raise InvalidRequestError(
            pointer("kpi", int(rows[begins[series]])),
            f"expected at most {limits.max_kpis} KPIs in a series, got {counts[series]}",
        )
