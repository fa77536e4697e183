"""The one way by which observations enter the store, whichever source they come from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from kpi.catalogue import Catalogue
from kpi.limits import MergeResult, Rejection
from kpi.observation import ObservationBatch
from kpi.store import KpiStore
from service.errors import OverloadedError
from service.logs import log_event
from service.metrics import Metrics, Outcome, StoreFigures

_LOGGER = logging.getLogger(__name__)
# The store needs some 150 bytes a sample while it merges; a larger batch goes in by pieces.
_PIECE_SAMPLES = 1 << 20
# An endless supply of made-up names must not fill memory; past this many they are only counted.
_MOST_REMEMBERED = 10_000


class Ingestion:
    """Merges batches and counts what became of them; `merge` may be called from any thread.

    Args:
        store: Keeps the observations; has locks of its own.
        catalogue: Tells known KPIs from unknown ones.
        metrics: Told of outcomes and unknown names.
        queue_limit: Requests that may wait for their turn to merge.
        on_stored: Told of every batch that the store has taken, before it is acknowledged; returns
            at once.
    """

    def __init__(
        self,
        store: KpiStore,
        catalogue: Catalogue,
        metrics: Metrics,
        *,
        queue_limit: int,
        on_stored: Callable[[ObservationBatch], None] | None = None,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._metrics = metrics
        self._named: set[str] = set()
        self._queue_limit = queue_limit
        self._on_stored = on_stored
        self._waiting = 0
        self._turn = asyncio.Lock()

    @property
    def store(self) -> KpiStore:
        """Where the observations go."""
        return self._store

    def figures(self) -> StoreFigures:
        """What the metrics show of the store."""
        return StoreFigures(
            cells=len(self._store),
            stored_bytes=self._store.stored_bytes,
            newest_ms=self._store.newest_ms,
        )

    async def merge_in_turn(self, batch: ObservationBatch) -> MergeResult:
        """As `merge`, from the event loop: off it, and one request at a time.

        The store merges one batch at a time anyway; waiting here keeps the threads free for those
        who read.

        Raises:
            JournalError: The journal cannot be written; see `merge`.
            OverloadedError: As many requests as the limit allows are waiting.
        """
        if self._waiting >= self._queue_limit:
            raise OverloadedError(
                f"{self._waiting} requests wait for the store, which is the limit", 1
            )
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self.merge, batch)
        finally:
            self._waiting -= 1

    def merge(self, batch: ObservationBatch) -> MergeResult:
        """Take a batch into the store; returns when the journal holds it.

        A batch of more than a million samples goes in by pieces, each of them wholly or not at all.

        Raises:
            JournalError: The journal cannot be written; the piece and those after it were not kept.
        """
        self._note_unknown(batch)
        results = []
        for begin in range(0, max(1, len(batch)), _PIECE_SAMPLES):
            piece = batch
            if len(batch) > _PIECE_SAMPLES:
                piece = batch.take(np.arange(begin, min(begin + _PIECE_SAMPLES, len(batch))))
            results.append(self._store.merge(piece))
            self._count(results[-1])
            if self._on_stored is not None:
                self._on_stored(piece)
        return results[0] if len(results) == 1 else _total(results)

    def _count(self, result: MergeResult) -> None:
        self._metrics.count_observations(Outcome.ACCEPTED, result.accepted)
        self._metrics.count_observations(Outcome.MERGED, result.merged)
        self._metrics.count_observations(Outcome.LATE, result.late)
        self._metrics.count_observations(Outcome.EXPIRED, result.expired)
        rejected = sum(rejection.count for rejection in result.rejected)
        self._metrics.count_observations(Outcome.REJECTED, rejected)

    def _note_unknown(self, batch: ObservationBatch) -> None:
        unknown = [name for name in batch.kpis if name not in self._catalogue]
        self._metrics.count_unknown_kpis(len(unknown))
        news = [name for name in unknown if name not in self._named]
        if news and len(self._named) < _MOST_REMEMBERED:
            self._named.update(news[: _MOST_REMEMBERED - len(self._named)])
            log_event(_LOGGER, logging.INFO, "unknown_kpis", count=len(news), first=news[0])


def _total(results: Sequence[MergeResult]) -> MergeResult:
    """What became of all pieces of a batch; rejections for one reason become one."""
    rejected: dict[str, Rejection] = {}
    for one in (rejection for result in results for rejection in result.rejected):
        known = rejected.setdefault(one.reason, replace(one, count=0))
        rejected[one.reason] = replace(known, count=known.count + one.count)
    return MergeResult(
        accepted=sum(result.accepted for result in results),
        merged=sum(result.merged for result in results),
        late=sum(result.late for result in results),
        rejected=tuple(rejected.values()),
        expired=sum(result.expired for result in results),
    )
