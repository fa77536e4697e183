"""Public holidays: national, regional and movable ones, and countries that nobody knows."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from model.errors import ModelError
from model.holidays import are_holidays, check_country


def holidays_of(country: str, year: int) -> set[str]:
    """The dates of a year, as months and days."""
    first = date(year, 1, 1)
    days = np.arange(365) + (first - date(1970, 1, 1)).days
    flags = are_holidays(days, country)
    return {f"{first + timedelta(int(i)):%m-%d}" for i in np.flatnonzero(flags)}


def test_a_country_has_its_national_holidays():
    spain = holidays_of("ES", 2026)
    assert {"01-01", "01-06", "05-01", "08-15", "10-12", "12-08", "12-25"} <= spain
    assert not {"06-24", "09-11", "12-26"} & spain


def test_a_subdivision_has_holidays_of_its_own_besides():
    assert holidays_of("ES-CT", 2026) - holidays_of("ES", 2026) >= {"06-24", "09-11", "12-26"}


@pytest.mark.parametrize(("year", "monday"), [(2024, "04-01"), (2025, "04-21"), (2026, "04-06")])
def test_a_movable_holiday_moves(year, monday):
    assert monday in holidays_of("ES-CT", year)
    assert {"04-01", "04-06", "04-21"} & holidays_of("ES-CT", year) == {monday}


@pytest.mark.parametrize(
    "country", ["XX", "es", "Spain", "ES-XX", "ES-", "-", "", "ES-CT-1", "HolidayBase", "utils"]
)
def test_an_unknown_country_is_refused_with_what_was_expected(country):
    with pytest.raises(ModelError, match="expected a country such as ES or ES-CT") as refused:
        check_country(country)
    assert repr(country) in str(refused.value)
    with pytest.raises(ModelError, match="expected a country"):
        are_holidays(np.arange(20_000, 20_001), country)


@pytest.mark.parametrize("country", ["ES", "ES-CT", "US-CA", "DE-BY", "GB-SCT", "JP"])
def test_a_known_country_is_not_refused(country):
    check_country(country)


def test_no_country_is_let_pass():
    check_country(None)


@pytest.mark.parametrize("day", [-(10**9), -400, 60_000, 10**9])
def test_dates_far_outside_are_no_holidays(day):
    assert not are_holidays(np.arange(day, day + 400), "US").any()


def test_flags_have_the_shape_of_the_days():
    new_year = (date(2026, 1, 1) - date(1970, 1, 1)).days
    days = new_year + np.array([[0, 1], [2, 365]])
    assert are_holidays(days, "FR").tolist() == [[True, False], [False, True]]
