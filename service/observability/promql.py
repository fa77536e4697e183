"""Pieces of PromQL that several rules and panels are made of.

Selectors name metrics by the families that the service registers, so that a renamed family is
renamed here too. No selector names a job: whatever exports these families is an instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.metric_families import Family

SERVICE = ("namespace", "job")
"""Labels of one service, given by the scrape: all replicas together."""

INSTANCE = (*SERVICE, "pod", "instance")
"""Labels of one replica; outside Kubernetes `namespace` and `pod` are empty."""


def select(family: Family, matchers: str = "", *, part: str = "") -> str:
    """A selector of a family's series.

    Args:
        family: Whose series.
        matchers: Between the braces, `rung!="full"` for example.
        part: `_bucket`, `_sum` or `_count` of a histogram.
    """
    return f"{family.name}{part}{{{matchers}}}" if matchers else f"{family.name}{part}"


def names(labels: Sequence[str]) -> str:
    """Labels as a clause lists them."""
    return ", ".join(labels)


def total(expression: str, labels: Sequence[str] = SERVICE) -> str:
    """The sum by some labels, by default one a service."""
    return f"sum by ({names(labels)}) ({expression})"


def rate(selector: str, window: str, labels: Sequence[str] = SERVICE) -> str:
    """What counters grow by in a second, summed by some labels."""
    return total(f"rate({selector}[{window}])", labels)


def has_risen(selector: str, window: str, labels: Sequence[str] = SERVICE) -> str:
    """Whether counters of rare events have grown within a window.

    A counter with labels appears with its first event, at 1, of which `increase` sees nothing: one
    that was not there a window ago counts by what it shows.
    """
    return (
        f"{total(f'increase({selector}[{window}])', labels)} > 0\n"
        f"or\n"
        f"{total(f'{selector} unless {selector} offset {window}', labels)} > 0"
    )


def number(value: float) -> str:
    """A number without the digits that binary fractions add."""
    return f"{value:.10g}"
