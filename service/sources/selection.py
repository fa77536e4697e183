"""Which KPIs of a batch are taken, and which come first where not all have room.

A network reports hundreds of counters for a cell, and the store keeps a bounded number of KPIs of
it. Those that the catalogue knows, which are what forecasts are made of, must not lose their place
to counters that merely stand earlier in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpi.catalogue import Catalogue
from kpi.observation import ObservationBatch


@dataclass(frozen=True)
class KpiSelection:
    """Which KPIs are taken from files.

    Attributes:
        catalogue: Tells known KPIs from unknown ones, and resolves aliases.
        names: KPIs to take, in any spelling; empty for all.
        unknown: Whether to take KPIs that the catalogue does not hold and `names` does not name.
    """

    catalogue: Catalogue
    names: Sequence[str] = ()
    unknown: bool = True

    def of(self, batch: ObservationBatch) -> ObservationBatch:
        """The samples of the KPIs that are taken."""
        named = {self.catalogue.canonical(name) for name in self.names}
        return with_kpis(
            batch,
            [
                position
                for position, name in enumerate(batch.kpis)
                if (self.catalogue.canonical(name) in named)
                or (not named and (self.unknown or name in self.catalogue))
            ],
        )


def known_first(batch: ObservationBatch, catalogue: Catalogue) -> ObservationBatch:
    """The same samples, with the KPIs that the catalogue knows at the front of `kpis`."""
    positions = range(len(batch.kpis))
    return with_kpis(batch, sorted(positions, key=lambda i: batch.kpis[i] not in catalogue))


def with_kpis(batch: ObservationBatch, positions: Sequence[int]) -> ObservationBatch:
    """The samples of the KPIs at these positions of `kpis`, in this order of the KPIs."""
    if list(positions) == list(range(len(batch.kpis))):
        return batch
    moved = np.full(len(batch.kpis), -1, dtype=np.int32)
    moved[list(positions)] = np.arange(len(positions), dtype=np.int32)
    index = moved[batch.kpi_index]
    kept = batch if len(positions) == len(batch.kpis) else batch.take(index >= 0)
    return replace(kept, kpis=tuple(batch.kpis[i] for i in positions), kpi_index=index[index >= 0])
