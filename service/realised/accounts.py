"""Which sums a forecast's scores go to, bounded in number.

An account is a model, a rung and a set of levels: scores of different levels cannot be compared,
and a rung that does less work has an accuracy of its own. Clients choose levels freely, so each
model has a few sets besides the default one; of models the one that forecast longest ago makes room
for a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from model.predictor import Forecast, ModelIdentity, Rung
from service.realised.scores import SUMS_BYTES, AccountKey, Scores

MOST_MODELS = 8
MOST_LEVEL_SETS = 4
"""Sets of levels of one model, the default one always among them."""


@dataclass(frozen=True, slots=True)
class Account:
    """Sums under a number.

    Attributes:
        number: Never used again.
        key: What is summed.
        scores: The sums.
    """

    number: int
    key: AccountKey
    scores: Scores


class Accounts:
    """Accounts by model; not safe to use from several threads.

    Args:
        slot_ms: Length of a slot of the recent past.
        default_levels: The levels that always have an account.
    """

    most_bytes = MOST_MODELS * MOST_LEVEL_SETS * len(Rung) * SUMS_BYTES

    def __init__(self, slot_ms: int, default_levels: tuple[float, ...]) -> None:
        self._slot_ms = slot_ms
        self._default_levels = default_levels
        self._models: OrderedDict[ModelIdentity, tuple[int, dict[AccountKey, Account]]] = (
            OrderedDict()
        )
        self._by_number: dict[int, Account] = {}
        self._next_model = 0
        self._next_account = 0

    def __iter__(self) -> Iterator[Account]:
        """All accounts, by model, rung and levels."""
        return iter(sorted(self._by_number.values(), key=_order))

    def __getitem__(self, number: int) -> Account:
        """The account with this number."""
        return self._by_number[number]

    def open(self, forecast: Forecast) -> tuple[int, Account | None, list[int]]:
        """The account of a forecast, made where there is none.

        Returns:
            Number of the model; the account, None where the model has too many sets of levels; and
            the numbers of accounts that were closed to make room.
        """
        closed: list[int] = []
        if forecast.model not in self._models:
            if len(self._models) == MOST_MODELS:
                _, (_, old) = self._models.popitem(last=False)
                closed = [account.number for account in old.values()]
                for number in closed:
                    del self._by_number[number]
            self._models[forecast.model] = self._next_model, {}
            self._next_model += 1
        self._models.move_to_end(forecast.model)
        model, known = self._models[forecast.model]
        key = AccountKey(forecast.model, forecast.rung, forecast.levels)
        if key not in known:
            sets = {each.levels for each in known} | {self._default_levels}
            if key.levels not in sets and len(sets) == MOST_LEVEL_SETS:
                return model, None, closed
            known[key] = Account(self._next_account, key, Scores(self._slot_ms))
            self._by_number[self._next_account] = known[key]
            self._next_account += 1
        return model, known[key], closed


def _order(account: Account) -> tuple[str, str, str, int, tuple[float, ...]]:
    model, rung, levels = account.key
    return model.name, model.version, model.digest, list(Rung).index(rung), levels
