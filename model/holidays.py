"""Public holidays by country: which days are free of work, from the `holidays` library.

Nothing heavy is imported here, so that settings and requests can be checked before a model loads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from model.errors import ModelError

EPOCH_ORDINAL = 719_163  # date(1970, 1, 1).toordinal()
FIRST_ORDINAL, END_ORDINAL = date(1971, 1, 1).toordinal(), date(2100, 1, 1).toordinal()
"""Outside of these years no holidays are known."""


def are_holidays(days: NDArray[np.int64], country: str) -> NDArray[np.bool_]:
    """Which days, counted from 1970-01-01, are public holidays of a country.

    Raises:
        ModelError: The country is not known.
    """
    distinct, index = np.unique(days, return_inverse=True)
    found = [_is_holiday(int(day), country) for day in distinct]
    return np.array(found, dtype=np.bool_)[index].reshape(days.shape)


def check_country(country: str | None) -> None:
    """Refuse a country or subdivision of which no holidays are known; None is let pass.

    Raises:
        ModelError: It is not known.
    """
    if country is None:
        return
    name, dash, subdivision = country.partition("-")
    known = known_countries()
    # Looked up, because the library would take any of its own attributes for a country.
    if name not in known or (dash and subdivision not in known[name]):
        raise ModelError(
            f"expected a country such as ES or ES-CT (ISO 3166) whose holidays are known, "
            f"got {country!r}"
        )


def known_countries() -> Mapping[str, Collection[str]]:
    """Subdivisions by country of which holidays are known; slow the first time."""
    import holidays  # takes a fifth of a second, and most command lines name no country

    return holidays.list_supported_countries(include_aliases=False)


def _is_holiday(day: int, country: str) -> bool:
    ordinal = day + EPOCH_ORDINAL
    if not FIRST_ORDINAL <= ordinal < END_ORDINAL:
        return False
    return ordinal in _holidays_of(country, date.fromordinal(ordinal).year)


@lru_cache(maxsize=1_024)
def _holidays_of(country: str, year: int) -> frozenset[int]:
    """Ordinals of a year's public holidays."""
    import holidays

    check_country(country)
    name, _, subdivision = country.partition("-")
    found = holidays.country_holidays(name, subdiv=subdivision or None, years=year)
    return frozenset(day.toordinal() for day in found)
