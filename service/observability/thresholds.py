"""From where on something is worth an alert: the numbers of all rules in one place.

`python -m service.observability --threshold NAME=VALUE` writes rules with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from service.errors import ServiceError

FASTEST_BURN = 14.4
"""Largest burn rate that an alert waits for; an objective has to leave room for it."""

_OBJECTIVES = ("in_time_ratio", "answered_ratio")
# Shares of a whole; the time in the model may be more, where there are several threads.
_SHARES = (
    *("arrivals_ratio", "refused_observations_ratio", "degraded_ratio", "baseline_ratio"),
    *("rate_limited_ratio", "coverage_difference", "canary_coverage_difference"),
)


class ThresholdError(ServiceError):
    """A threshold that does not exist, or a value that it cannot have."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Objectives and limits.

    Attributes:
        in_time_ratio: Objective: share of the accepted requests that are in time.
        answered_ratio: Objective: share of the asked forecasts that are not refused and do not
            fail.
        least_failures: Failed requests in a burn rate's long window below which it says nothing.
        near_rt_data_age_s: Age of the newest sample in a near-RT loop.
        non_rt_data_age_s: The same in a non-RT loop: three periods of 15 minutes.
        arrivals_ratio: Observations of an hour as a share of the day's median hour.
        refused_observations_ratio: Share of observations that are rejected or expired.
        degraded_ratio: Share of forecasts by another rung than full.
        baseline_ratio: Share of forecasts by the seasonal baseline.
        busy_ratio: Share of the time in which the model's threads work.
        rate_limited_ratio: Share of requests beyond the rate limit.
        restarts: Starts of one replica within an hour.
        coverage_difference: Distance of realised from nominal coverage.
        canary_coverage_difference: How much farther a canary's coverage may be off.
        canary_wql_ratio: WQL of a canary relative to that of its rival.
        least_scored: Scored observations of a day below which nothing is said of accuracy.
    """

    in_time_ratio: float = 0.995
    answered_ratio: float = 0.99
    least_failures: float = 5
    near_rt_data_age_s: float = 120
    non_rt_data_age_s: float = 2700
    arrivals_ratio: float = 0.5
    refused_observations_ratio: float = 0.05
    degraded_ratio: float = 0.2
    baseline_ratio: float = 0.5
    busy_ratio: float = 0.85
    rate_limited_ratio: float = 0.05
    restarts: float = 3
    coverage_difference: float = 0.1
    canary_coverage_difference: float = 0.05
    canary_wql_ratio: float = 1.1
    least_scored: float = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < float("inf"):
                raise ThresholdError(f"{field.name}: expected a number over 0, got {value:g}")
        for name in _OBJECTIVES:
            ratio = getattr(self, name)
            if ratio >= 1:
                raise ThresholdError(
                    f"{name}: expected a share below 1, got {ratio:g}; an objective of 1 leaves no "
                    "error to spend"
                )
            if FASTEST_BURN * (1 - ratio) >= 1:
                raise ThresholdError(
                    f"{name}: expected more than {1 - 1 / FASTEST_BURN:.4f}, got {ratio:g}; its "
                    f"errors cannot be spent {FASTEST_BURN:g} times as fast as they may, which an "
                    "alert waits for"
                )
        for name in _SHARES:
            if getattr(self, name) >= 1:
                raise ThresholdError(
                    f"{name}: expected a share below 1 (0.05 for 5 %), got {getattr(self, name):g}"
                )

    def changed(self, statements: Iterable[str]) -> Thresholds:
        """These thresholds with some of them changed.

        Args:
            statements: Each `NAME=VALUE`.

        Raises:
            ThresholdError: No such threshold, or a value that it cannot have.
        """
        known = {field.name for field in fields(self)}
        changes: dict[str, float] = {}
        for statement in statements:
            name, equals, value = statement.partition("=")
            if not equals or name not in known:
                raise ThresholdError(
                    f"{statement!r}: expected NAME=VALUE with one of {', '.join(sorted(known))}"
                )
            try:
                changes[name] = float(value)
            except ValueError:
                raise ThresholdError(f"{name}: expected a number, got {value!r}") from None
        return replace(self, **changes)
