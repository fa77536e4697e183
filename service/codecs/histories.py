"""Histories of cells as a request brings them, whatever its form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kpi.catalogue import Catalogue
from service.schemas import Series
from service.series import (
    NamedWindow,
    SentObservations,
    SeriesLimits,
    to_observations,
    to_windows,
)


class Histories(Protocol):
    """Regular samples of cells."""

    def __len__(self) -> int:
        """Series, or rows where KPIs have rows of their own: a measure of the work to be done."""

    def windows(
        self,
        limits: SeriesLimits,
        catalogue: Catalogue,
        time_zone: str,
        country: str | None = None,
    ) -> list[NamedWindow]:
        """One window a series, in order; see `service.series.to_windows`.

        Raises:
            TooLargeError: More series than the limit.
            InvalidRequestError: A series that cannot be put on a grid.
        """

    def observations(
        self, limits: SeriesLimits, catalogue: Catalogue, *, arrival_ms: int
    ) -> SentObservations:
        """All samples as one batch; see `service.series.to_observations`.

        Raises:
            TooLargeError: More series than the limit.
            InvalidRequestError: A series that cannot be put on a grid.
        """


@dataclass(frozen=True, slots=True)
class ListedHistories:
    """Histories that are listed in JSON.

    Attributes:
        series: As they were sent.
    """

    series: Sequence[Series]

    def __len__(self) -> int:
        """Number of series."""
        return len(self.series)

    def windows(
        self,
        limits: SeriesLimits,
        catalogue: Catalogue,
        time_zone: str,
        country: str | None = None,
    ) -> list[NamedWindow]:
        """One window a series, in order."""
        return to_windows(self.series, limits, catalogue, time_zone, country)

    def observations(
        self, limits: SeriesLimits, catalogue: Catalogue, *, arrival_ms: int
    ) -> SentObservations:
        """All samples as one batch."""
        return to_observations(self.series, limits, catalogue, arrival_ms=arrival_ms)
