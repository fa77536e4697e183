"""Parameters of the Open Inference Protocol: texts, numbers and truth values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.checks import parse_levels
from service.demands import Choice, chosen
from service.errors import InvalidRequestError
from service.schemas import DEFAULT_LEVELS
from service.series import pointer


class Parameters:
    """Parameters of a request or an output, each checked as it is taken.

    Args:
        given: What was sent.
        where: Where in the request they stand, None of it where it is the request itself.
    """

    def __init__(self, given: Mapping[str, Any], *where: str | int) -> None:
        self._given = given
        self._where = where

    def check_known(self, known: Sequence[str]) -> None:
        """Refuse parameters of other names.

        Raises:
            InvalidRequestError: There is one.
        """
        for name in self._given:
            if name not in known:
                raise InvalidRequestError(
                    self.place(name), f"unknown parameter; expected one of {', '.join(known)}"
                )

    def place(self, name: str) -> str:
        """JSON Pointer to a parameter."""
        return pointer(*self._where, "parameters", name)

    def number(self, name: str) -> float | None:
        """A number, None where it was not sent."""
        value = self._given.get(name)
        if value is None:
            return None
        if type(value) not in (int, float):
            raise self._other(name, "a number")
        try:
            return float(value)
        except OverflowError:
            raise self._other(name, "a smaller number") from None

    def whole(self, name: str) -> int | None:
        """A whole number, None where it was not sent."""
        value = self._given.get(name)
        if value is None or type(value) is int:
            return value
        raise self._other(name, "a whole number")

    def text(self, name: str) -> str | None:
        """A text, None where it was not sent."""
        value = self._given.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._other(name, "a text")

    def choice(self, name: str, choices: type[Choice]) -> Choice | None:
        """One of several words, None where it was not sent."""
        text = self.text(name)
        return None if text is None else chosen(text, choices, self.place(name))

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A truth value."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise self._other(name, "true or false")
        return value

    def levels(self, name: str) -> list[float]:
        """Quantile levels, written as a text such as `0.1,0.5,0.9`, or one as a number."""
        value = self._given.get(name)
        if value is None:
            return list(DEFAULT_LEVELS)
        # The protocol's parameters are texts, numbers and truth values: there is no list.
        if isinstance(value, str):
            return parse_levels(value, self.place(name))
        if type(value) is float:
            return [value]
        raise self._other(name, "a text such as 0.1,0.5,0.9")

    def _other(self, name: str, words: str) -> InvalidRequestError:
        return InvalidRequestError(
            self.place(name), f"expected {words}, got {type(self._given[name]).__name__}"
        )
