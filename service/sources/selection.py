"""Which KPIs of a file are taken.

A network reports hundreds of counters for a cell, most of which nobody forecasts. What is taken of
them is kept within the store's own limits, which give the KPIs of the catalogue their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

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
        taken = np.array(
            [
                self.catalogue.canonical(name) in named
                or (not named and (self.unknown or name in self.catalogue))
                for name in batch.kpis
            ],
            dtype=np.bool_,
        )
        if taken.all():
            return batch
        kept = batch.take(taken[batch.kpi_index])
        position = (np.cumsum(taken) - 1).astype(np.int32)
        return replace(
            kept,
            kpis=tuple(compress(batch.kpis, taken)),
            kpi_index=position[kept.kpi_index],
        )
