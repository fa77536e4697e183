"""The latency budget: how long an answer may take, counted from the arrival of the request.

A request states its own budget, in the body or in a header; otherwise the profile's default holds.
The profiles follow the control loops of O-RAN: the near-real-time RIC closes its loops within 10 ms
to 1 s, the non-real-time RIC takes more than 1 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from service.errors import InvalidRequestError

BUDGET_HEADER = "X-Latency-Budget-Ms"
RUNG_HEADER = "X-Minimum-Rung"
PRIORITY_HEADER = "X-Priority"


class Profile(StrEnum):
    """Which control loop the service stands in."""

    NEAR_RT = "near-rt"
    NON_RT = "non-rt"


@dataclass(frozen=True, slots=True)
class BudgetBounds:
    """Default budget and the hard bounds of what a request may ask for, in milliseconds."""

    default_ms: float
    least_ms: float
    most_ms: float

    def __post_init__(self) -> None:
        if not 0 < self.least_ms <= self.default_ms <= self.most_ms:
            raise ValueError(
                "expected 0 < least <= default <= most milliseconds, got "
                f"{self.least_ms:g}, {self.default_ms:g}, {self.most_ms:g}"
            )


PROFILE_BOUNDS: Mapping[Profile, BudgetBounds] = MappingProxyType(
    {
        Profile.NEAR_RT: BudgetBounds(default_ms=100.0, least_ms=1.0, most_ms=60_000.0),
        Profile.NON_RT: BudgetBounds(default_ms=5_000.0, least_ms=1.0, most_ms=600_000.0),
    }
)


@dataclass(frozen=True, slots=True)
class Deadline:
    """An absolute instant on the monotonic clock.

    Attributes:
        arrival_s: When the request arrived.
        budget_ms: What it may take.
    """

    arrival_s: float
    budget_ms: float

    @property
    def expires_s(self) -> float:
        """The instant after which an answer is worth nothing."""
        return self.arrival_s + self.budget_ms / 1000

    def has_passed(self, now_s: float) -> bool:
        """Whether an answer at `now_s` would be late."""
        return now_s > self.expires_s


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """Turns what a request states into a deadline.

    Attributes:
        profile: Which control loop the service stands in.
        bounds: Default and hard bounds.
    """

    profile: Profile
    bounds: BudgetBounds

    def deadline(
        self,
        arrival_s: float,
        *,
        stated_ms: float | None,
        path: str,
        header: str | None,
        patient: bool = False,
    ) -> Deadline:
        """The deadline of one request; a stated budget wins over the header, that over the default.

        Args:
            arrival_s: Arrival on the monotonic clock.
            stated_ms: `budget_ms` of the body or the query, None where it is not given.
            path: Where `stated_ms` came from, for the error.
            header: Value of `X-Latency-Budget-Ms`, None where it is not given.
            patient: Whether a request that states none may take as long as any.

        Raises:
            InvalidRequestError: The budget is no number or outside the profile's bounds.
        """
        if stated_ms is None and header is not None:
            path = f"header:{BUDGET_HEADER}"
            stated_ms = _number(header, path)
        if stated_ms is None:
            budget_ms = self.bounds.most_ms if patient else self.bounds.default_ms
            return Deadline(arrival_s, budget_ms)
        if not self.bounds.least_ms <= stated_ms <= self.bounds.most_ms:
            raise InvalidRequestError(
                path,
                f"expected a budget of {self.bounds.least_ms:g} to {self.bounds.most_ms:g} ms "
                f"(profile {self.profile.value}), got {stated_ms:g}",
            )
        return Deadline(arrival_s, stated_ms)


def _number(text: str, path: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidRequestError(path, f"expected milliseconds as a number, got {text!r}")
    return number
