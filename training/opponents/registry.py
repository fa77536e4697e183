"""Opponents by name. An opponent's module and library are loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from training.opponents.errors import MissingExtraError, UnknownOpponentError

if TYPE_CHECKING:
    from kpi.catalogue import Catalogue
    from model.predictor import Predictor

OPPONENTS = {
    "last-value": ("seasonal:last_value", None),
    "daily-naive": ("seasonal:daily_naive", None),
    "weekly-naive": ("seasonal:weekly_naive", None),
    "daily-mean": ("seasonal:daily_mean", None),
    "weekly-mean": ("seasonal:weekly_mean", None),
    "seasonal-baseline": ("seasonal:seasonal_baseline", None),
    "auto-theta": ("auto_theta:AutoThetaOpponent", "statsforecast"),
    "mstl": ("mstl:MstlOpponent", "statsforecast"),
    "lightgbm": ("lightgbm_untuned:LightGbmOpponent", "lightgbm"),
    "lightgbm-tuned": ("lightgbm_tuned:TunedLightGbmOpponent", "lightgbm"),
}
"""By name: where it is made (module of this package and maker), and the library that it needs."""

DEFAULT_OPPONENTS = (
    "last-value",
    "daily-naive",
    "weekly-naive",
    "daily-mean",
    "weekly-mean",
    "seasonal-baseline",
)


def make_opponents(names: Sequence[str], catalogue: Catalogue) -> list[Predictor]:
    """The named opponents, each once, in the order in which they are named first.

    Args:
        names: Keys of `OPPONENTS`.
        catalogue: KPI catalogue.

    Raises:
        UnknownOpponentError: No opponent has such a name.
        MissingExtraError: A library is not installed; raised before any opponent is made.
    """
    for name in names:
        if name not in OPPONENTS:
            raise UnknownOpponentError(name, OPPONENTS)
        library = OPPONENTS[name][1]
        if library is not None and find_spec(library) is None:
            raise MissingExtraError(name, library)
    return [_maker(name)(catalogue) for name in dict.fromkeys(names)]


def _maker(name: str) -> Callable[[Catalogue], Predictor]:
    module, _, maker = OPPONENTS[name][0].partition(":")
    found: Callable[[Catalogue], Predictor] = getattr(
        import_module(f"training.opponents.{module}"), maker
    )
    return found
