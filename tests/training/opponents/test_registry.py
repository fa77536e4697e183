"""Opponents are had by name, and what is missing is said plainly."""

from __future__ import annotations

import numpy as np
import pytest

from training.opponents import (
    DEFAULT_OPPONENTS,
    OPPONENTS,
    MissingExtraError,
    UnknownOpponentError,
    make_opponents,
    registry,
)


def test_every_opponent_has_a_name_of_its_own(catalogue):
    names = [opponent.identity.name for opponent in make_opponents(tuple(OPPONENTS), catalogue)]
    assert len(set(names)) == len(OPPONENTS)


def test_the_default_needs_no_extra():
    assert {OPPONENTS[name][1] for name in DEFAULT_OPPONENTS} == {None}


def test_an_opponent_named_twice_is_there_once(catalogue):
    assert len(make_opponents(["last-value", "last-value"], catalogue)) == 1


def test_an_unknown_name_is_refused_with_those_that_are_known(catalogue):
    with pytest.raises(UnknownOpponentError, match=r"mstl.*'prophet'"):
        make_opponents(["last-value", "prophet"], catalogue)


@pytest.mark.parametrize("name", ["auto-theta", "mstl", "lightgbm", "lightgbm-tuned"])
def test_a_missing_library_is_told_with_extra_and_command(catalogue, monkeypatch, name):
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"opponents.*pip install .*\[opponents\]"):
        make_opponents([name], catalogue)


@pytest.mark.parametrize("name", DEFAULT_OPPONENTS)
def test_seasonal_opponents_forecast_what_their_name_says(catalogue, make_window, name):
    window = make_window(steps=24 * 35)
    series = window.values[0].astype(np.float64)
    (opponent,) = make_opponents([name], catalogue)
    (forecast,) = opponent.predict([window], 3, (0.1, 0.5, 0.9))
    centre = {
        "last-value": np.repeat(series[-1], 3),
        "daily-naive": series[-24:-21],
        "weekly-naive": series[-168:-165],
        "daily-mean": np.mean([series[-24 * r :][:3] for r in range(1, 8)], axis=0),
        "weekly-mean": np.mean([series[-168 * r :][:3] for r in range(1, 5)], axis=0),
    }.get(name)
    low, high = forecast.values[0, :, 0], forecast.values[0, :, 2]
    assert (low < high).all()
    if centre is not None:
        assert ((low < centre) & (centre < high)).all()
