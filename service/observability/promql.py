"""Pieces of PromQL that several rules and panels are made of.

Selectors name metrics by the families that the service registers, so that a renamed family is
renamed here too. No selector names a job: whatever exports these families is an instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.metric_families import READY, Family

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
    that was not there a window ago counts by what it shows. It has to be known that it was not: the
    instance was watched then, or its process is younger. Otherwise a gap in what Prometheus has
    would bring back all that ever happened.

    Args:
        selector: Counters of instances.
        window: As PromQL has it, in minutes, hours or days: `15m`.
        labels: What to sum by.
    """
    since = f"process_start_time_seconds > time() - {seconds(window)}"
    return (
        f"{total(f'increase({selector}[{window}])', labels)} > 0\n"
        f"or\n"
        f"sum by ({names(labels)}) (\n"
        f"  {selector} unless {selector} offset {window}\n"
        f"  and on ({names(INSTANCE)}) ({READY.name} offset {window} or {since})\n"
        f") > 0"
    )


def share(part: str, whole: str) -> str:
    """A part of a whole: 0 where there is no such part, and nothing where there is no whole.

    Args:
        part: May be absent, as counters are before their first event.
        whole: With the same labels; 0 would make a share that is no number.
    """
    lines = "\n".join(f"  {line}" for line in part.splitlines())
    return f"(\n{lines}\n  or {whole} * 0\n)\n/ ({whole} > 0)"


def seconds(window: str) -> int:
    """Seconds of a window such as `15m`, `1h` or `3d`."""
    return int(window[:-1]) * {"m": 60, "h": 3600, "d": 86400}[window[-1]]


def number(value: float) -> str:
    """A number without the digits that binary fractions add."""
    return f"{value:.10g}"
