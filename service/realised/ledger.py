"""The ledger of realised accuracy: forecasts of stored cells meet what came.

Requests and ingestion hand their parts over and go on; one thread of the ledger's own does the
work, in their order. What an observation is, and whether it is sound, is decided as the store
decides it; only values that the store would show a model are scored. Only the time of the data
counts, no clock.

Axis legend: n samples, K KPIs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kpi.admission import admit
from kpi.catalogue import Catalogue
from kpi.errors import UnknownCellError
from kpi.grid import grid_end_ms
from kpi.observation import ObservationBatch
from kpi.store import KpiStore
from model.predictor import Forecast
from service.logs import log_failure
from service.realised.accounts import Account, Accounts
from service.realised.kept import Fate, KeptForecasts, Samples
from service.realised.scores import SLOTS, AccountKey, ScoreRow

_LOGGER = logging.getLogger(__name__)

DAY_MS = 86_400_000
# What may wait for the ledger's thread: samples that concern kept forecasts (some 40 bytes each)
# and forecasts. Beyond it ingestion waits its turn, and forecasts are not kept.
_MOST_WAITING_SAMPLES = 1 << 18
_MOST_WAITING_FORECASTS = 1 << 10

_MOST_REFRESH_S = 1.0

_UNKNOWN = -2


@dataclass(frozen=True, slots=True)
class Statement:
    """What one account has come to.

    Attributes:
        key: Model, rung and levels.
        since_ms: End of the earliest scored period.
        until_ms: End of the latest one.
        recent_since_ms: Begin of the recent past.
        rows: Scores by kind and bucket of steps ahead; never empty.
    """

    key: AccountKey
    since_ms: int
    until_ms: int
    recent_since_ms: int
    rows: tuple[ScoreRow, ...]


@dataclass(frozen=True, slots=True)
class LedgerFigures:
    """What the ledger holds.

    Attributes:
        forecasts: Kept forecasts.
        waiting: Their values that wait for an observation.
        lost: Values that were never scored, by reason.
        statements: Accounts with at least one scored value.
    """

    forecasts: int
    waiting: int
    lost: dict[Fate, int]
    statements: tuple[Statement, ...]


class AccuracyLedger:
    """Keeps forecasts until their observations arrive, and scores them; safe from any thread.

    Args:
        store: Where observations go before the ledger hears of them.
        catalogue: Kinds, limits and spellings of the KPIs.
        most_bytes: Memory of kept forecasts; 0 keeps none.
        recent_days: Length of the recent past.
        max_kpis: KPIs of a forecast, at most.
        default_levels: Levels that always have an account.
        now_ms: The wall clock by which senders' clocks are checked, as in the store.
    """

    def __init__(
        self,
        store: KpiStore,
        catalogue: Catalogue,
        *,
        most_bytes: int,
        recent_days: int,
        max_kpis: int,
        default_levels: tuple[float, ...],
        now_ms: Callable[[], int],
    ) -> None:
        self.recent_days = recent_days
        self._store = store
        self._catalogue = catalogue
        self._now_ms = now_ms
        self._kept = KeptForecasts(most_bytes, max_kpis)
        self._accounts = Accounts(recent_days * DAY_MS // SLOTS, default_levels)
        self._kpis: dict[str, int] = {}
        self._counting = threading.Lock()
        self._waiting_forecasts = 0
        self._waiting_samples = 0
        self._refused_values = 0
        self._asked: Future[LedgerFigures] | None = None
        self._latest = self._figures()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="accuracy")

    @property
    def most_forecasts(self) -> int:
        """Forecasts that can be kept, whatever their size."""
        return self._kept.most_records

    @property
    def most_bytes(self) -> int:
        """Memory of kept forecasts and of all sums that there can be."""
        kept = self._kept
        return kept.most_records * kept.record_bytes + kept.most_values * 4 + Accounts.most_bytes

    def keep(self, forecasts: Sequence[Forecast]) -> None:
        """Keep forecasts of stored cells; returns at once.

        Where too many wait for the ledger already, they are counted as refused instead.
        """
        if not self._kept.most_records:
            return
        with self._counting:
            has_room = self._waiting_forecasts + len(forecasts) <= _MOST_WAITING_FORECASTS
            if has_room:
                self._waiting_forecasts += len(forecasts)
            else:
                self._refused_values += sum(map(_size, forecasts))
        if has_room:
            self._hand_over(partial(self._keep, forecasts))

    def observe(self, batch: ObservationBatch) -> None:
        """Hear of a batch that the store has taken; returns at once unless very many wait."""
        cells = np.array([self._kept.holds(name) for name in batch.cells], dtype=np.bool_)
        if not cells.any():
            return
        concerned = batch.take(cells[batch.cell_index])
        with self._counting:
            self._waiting_samples += len(concerned)
            must_wait = self._waiting_samples > _MOST_WAITING_SAMPLES
        done = self._hand_over(partial(self._observe, concerned))
        if must_wait and done is not None:
            done.result()

    @property
    def latest(self) -> LedgerFigures:
        """What the ledger held when it was last asked; at once."""
        return self._latest

    def figures(self) -> LedgerFigures:
        """What the ledger holds, after everything that it has heard of so far.

        Waits for the ledger's thread: not to be called on the event loop.
        """
        return self._ask().result()

    async def current(self) -> LedgerFigures:
        """As `figures`, from the event loop: no thread waits, however many ask."""
        return await asyncio.shield(asyncio.wrap_future(self._ask()))

    async def refresh(self) -> None:
        """Have `latest` be current, unless the ledger is busy for longer than a scrape may wait."""
        await asyncio.wait({asyncio.wrap_future(self._ask())}, timeout=_MOST_REFRESH_S)

    def close(self) -> None:
        """Finish what waits and end the thread; later calls are not heard."""
        self._thread.shutdown(wait=True)

    def _hand_over(self, work: Callable[[], None]) -> Future[None] | None:
        try:
            return self._thread.submit(_logged, work)
        except RuntimeError:  # closed: the service stops
            return None

    def _ask(self) -> Future[LedgerFigures]:
        """The figures to come; whoever asks before the thread comes to it shares one question."""
        with self._counting:
            if self._asked is not None:
                return self._asked
            try:
                self._asked = self._thread.submit(self._answer)
            except RuntimeError:  # closed, so that nobody else is at work
                done: Future[LedgerFigures] = Future()
                done.set_result(self._figures())
                return done
            return self._asked

    def _answer(self) -> LedgerFigures:
        with self._counting:
            # Whoever asks from now on may know of more than this answer will hold.
            self._asked = None
        self._latest = self._figures()
        return self._latest

    def _keep(self, forecasts: Sequence[Forecast]) -> None:
        with self._counting:
            self._waiting_forecasts -= len(forecasts)
        for forecast in forecasts:
            model, account, closed = self._accounts.open(forecast)
            for number in closed:
                self._kept.drop_account(number)
            if account is None:
                with self._counting:
                    self._refused_values += _size(forecast)
                continue
            # There are no more names than the store holds.
            for name in forecast.kpis:
                self._kpis.setdefault(name, len(self._kpis))
            kpis = self._numbers(forecast.kpis)
            if self._kept.keep(forecast, kpis, model=model, account=account.number):
                self._catch_up(forecast)

    def _catch_up(self, forecast: Forecast) -> None:
        """Score what arrived between the forecast's window and now."""
        if (self._store.newest_ms or 0) <= forecast.start_ms:
            return
        samples = self._stored(forecast.cell, forecast.kpis, forecast.step_ms, forecast.start_ms)
        if samples is not None:
            self._score(samples)

    def _observe(self, batch: ObservationBatch) -> None:
        with self._counting:
            self._waiting_samples -= len(batch)
        index, sound, _ = admit(batch, self._store.limits, self._catalogue, now_ms=self._now_ms())
        names = self._catalogue.canonical_names(batch.kpis)
        totals = np.array([self._catalogue.resolve(name).cumulative for name in names])
        is_total = totals[batch.kpi_index]
        at = _last_of_equal(batch, index, np.flatnonzero(sound & ~is_total), names)
        unknown = np.isnan(batch.values[at])
        if not self._store.limits.keep_suspect:
            unknown |= batch.suspect[at]
        at = at[~unknown]
        if len(at):
            kpi = batch.kpi_index[at]
            self._score(
                Samples(
                    cells=batch.cells,
                    cell_index=batch.cell_index[at],
                    kpi=self._numbers(names)[kpi],
                    kind=self._kinds(names)[kpi],
                    end_ms=grid_end_ms(index[at], batch.period_ms[at]),
                    step_ms=batch.period_ms[at],
                    values=batch.values[at],
                )
            )
        self._observe_totals(batch, np.flatnonzero(sound & is_total), names)

    def _observe_totals(
        self, batch: ObservationBatch, at: NDArray[np.intp], names: Sequence[str]
    ) -> None:
        """Running totals: the store knows the amounts, one of which needs two readings."""
        rows = zip(
            batch.cell_index[at].tolist(),
            batch.kpi_index[at].tolist(),
            batch.period_ms[at].tolist(),
            strict=True,
        )
        for cell, kpi, step_ms in set(rows):
            samples = self._stored(batch.cells[cell], [names[kpi]], step_ms, None)
            if samples is not None:
                self._score(samples)

    def _stored(
        self, cell: str, kpis: Sequence[str], step_ms: int, after_ms: int | None
    ) -> Samples | None:
        """What the store holds of a cell's KPIs, after a point in time; None for nothing."""
        try:
            window = self._store.window(cell, kpis=kpis, step_ms=step_ms)
        except UnknownCellError:
            return None
        first = 0 if after_ms is None else max(0, (after_ms - window.start_ms) // step_ms)
        if first >= window.steps:
            return None
        kpi, step = np.nonzero(~np.isnan(window.values[:, first:]))
        step += first
        if not len(step):
            return None
        return Samples(
            cells=[cell],
            cell_index=np.zeros(len(step), dtype=np.int32),
            kpi=self._numbers(window.kpis)[kpi],
            kind=self._kinds(window.kpis)[kpi],
            end_ms=window.start_ms + (step + 1) * step_ms,
            step_ms=np.full(len(step), step_ms),
            values=window.values[kpi, step],
        )

    def _score(self, samples: Samples) -> None:
        position = 0
        while position < len(samples):
            matches, position = self._kept.take(samples, position)
            for match in matches:
                at = match.sample
                account = self._accounts[match.account]
                account.scores.add(
                    samples.values[at],
                    match.quantiles,
                    account.key.levels,
                    samples.kind[at],
                    match.steps,
                    samples.end_ms[at],
                )
            # Whoever waits for the interpreter gets it now, not after the 5 ms that a busy thread
            # may otherwise hold it.
            time.sleep(0)

    def _numbers(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Number of each KPI, one that no forecast has where none was ever forecast."""
        return np.array([self._kpis.get(name, _UNKNOWN) for name in names], dtype=np.int32)

    def _kinds(self, names: Sequence[str]) -> NDArray[np.int32]:
        return np.array([self._catalogue.resolve(n).kind.number for n in names], dtype=np.int32)

    def _figures(self) -> LedgerFigures:
        lost = dict(self._kept.lost)
        lost[Fate.REFUSED] += self._refused_values
        statements = (_statement(account) for account in self._accounts)
        return LedgerFigures(
            forecasts=len(self._kept),
            waiting=self._kept.waiting_values,
            lost=lost,
            statements=tuple(each for each in statements if each is not None),
        )


def _statement(account: Account) -> Statement | None:
    scores = account.scores
    since_ms, until_ms, recent_ms = scores.first_ms, scores.last_ms, scores.recent_since_ms
    if since_ms is None or until_ms is None or recent_ms is None:
        return None
    return Statement(account.key, since_ms, until_ms, recent_ms, tuple(scores.rows()))


def _last_of_equal(
    batch: ObservationBatch,
    index: NDArray[np.int64],
    at: NDArray[np.intp],
    names: Sequence[str],
) -> NDArray[np.intp]:
    """Of samples of the same cell, KPI and period the last one, as in the store."""
    # Two spellings of one KPI are one KPI.
    number = {name: position for position, name in enumerate(names)}
    spelling = np.array([number[name] for name in names], dtype=np.int32)
    columns = (index[at], batch.period_ms[at], spelling[batch.kpi_index[at]], batch.cell_index[at])
    order = np.lexsort(columns)  # stable: the last arrival stays last
    differs = np.zeros(max(len(at) - 1, 0), dtype=np.bool_)
    for column in columns:
        differs |= np.diff(column[order]) != 0
    return np.sort(at[order[np.append(differs, True)[: len(at)]]])


def _size(forecast: Forecast) -> int:
    """Values that it forecasts, whatever the levels."""
    return int(forecast.values[..., 0].size)


def _logged(work: Callable[[], None]) -> None:
    """Nobody waits for the ledger; what goes wrong in it is told to the log."""
    try:
        work()
    except Exception as error:
        log_failure(_LOGGER, "accuracy_failed", error)
