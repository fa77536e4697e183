"""From arrays without a story, as KServe's protocols bring them, to windows.

The protocols know arrays of numbers, not cells: what a sample means is said beside them, or left
out. What is left out has the defaults below.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from service.codecs.histories import ListedHistories
from service.container import Services
from service.errors import InvalidRequestError
from service.schemas import MAX_STEP_SECONDS, Series
from service.series import NamedWindow
from service.timestamps import EARLIEST_MS, LATEST_MS, to_rfc3339
from service.windowing import build_windows

# The granularity period that most networks report at.
DEFAULT_STEP_SECONDS = 900.0
MAX_NAME = 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = re.compile(r"/series/(\d+)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Calendar:
    """What decides which calendar a request's series follow; None: the deployment's."""

    time_zone: str | None = None
    country: str | None = None


def feature_names(count: int) -> list[str]:
    """What KPIs are called where nobody named them: gauges that the catalogue does not hold."""
    return [f"feature.{position}" for position in range(count)]


def bare_series(
    cell: str,
    kpis: Sequence[str],
    values: NDArray[np.float64],
    *,
    step_seconds: float,
    start_ms: int | None,
    now_ms: int,
    calendar: Calendar,
) -> Series:
    """A series of arrays whose names and step have been checked.

    Args:
        cell: What the series is called.
        kpis: Names of the K KPIs, each once.
        values: Samples (K, T), NaN where nothing is known.
        step_seconds: Length of a sample.
        start_ms: Begin of the first sample; None: the last one ends at the newest full step.
        now_ms: The time of the request.
        calendar: Time zone and holidays.
    """
    if start_ms is None:
        step_ms = max(1, round(step_seconds * 1000))
        start_ms = now_ms - now_ms % step_ms - values.shape[1] * step_ms
    return Series.model_construct(
        cell=cell,
        # An instant that no date can hold is outside the bounds, which is said where it is read.
        start=_EPOCH + timedelta(milliseconds=max(start_ms, EARLIEST_MS - 1)),
        step_seconds=float(step_seconds),
        time_zone=calendar.time_zone,
        country=calendar.country,
        events=[],
        kpis=dict(zip(kpis, values, strict=True)),
    )


def check_step(step_seconds: float, path: str) -> None:
    """Refuse a step that no series can have.

    Raises:
        InvalidRequestError: It is not positive, or longer than 31 days.
    """
    if not 0 < step_seconds <= MAX_STEP_SECONDS:
        raise InvalidRequestError(
            path, f"expected a step of up to {MAX_STEP_SECONDS} seconds, got {step_seconds:g}"
        )


def check_start(start_ms: int, path: str) -> None:
    """Refuse a start that no date can hold.

    Raises:
        InvalidRequestError: It is before 1970 or after 2200.
    """
    if not EARLIEST_MS <= start_ms <= LATEST_MS:
        raise InvalidRequestError(
            path,
            f"expected a time between {to_rfc3339(EARLIEST_MS)} and {to_rfc3339(LATEST_MS)}, "
            f"got {start_ms} ms since 1970",
        )


def check_names(names: Sequence[str], path: str, *, count: int | None = None) -> None:
    """Refuse names that cannot tell `count` things apart.

    Raises:
        InvalidRequestError: Another number of names, one that is empty or too long, or one twice.
    """
    if count is not None and len(names) != count:
        raise InvalidRequestError(path, f"expected {count} names, got {len(names)}")
    if any(not 1 <= len(name) <= MAX_NAME for name in names):
        raise InvalidRequestError(path, f"expected names of 1 to {MAX_NAME} characters")
    if len(set(names)) < len(names):
        raise InvalidRequestError(path, f"expected each name once, got {list(names)[:10]}")


async def windows_of(
    request: Request, services: Services, series: Sequence[Series], place: Callable[[int, str], str]
) -> list[NamedWindow]:
    """One window a series, in order, as `POST /v1/forecast` would make them.

    Args:
        request: Whose time it takes.
        services: Limits, catalogue and defaults.
        series: What the request brought.
        place: Where in the request the fault lies, from the position of the series and the rest
            of a pointer into it, such as `/kpis/RRU.PrbTotDl/3`.

    Raises:
        TooLargeError: More series than the limit.
        InvalidRequestError: A series that cannot be put on a grid.
    """
    try:
        return await build_windows(request, services, ListedHistories(series))
    except InvalidRequestError as error:
        fault = error.faults[0]
        found = _PLACE.fullmatch(fault.path)
        if found is None:
            raise
        raise InvalidRequestError(place(int(found[1]), found[2]), fault.reason) from error
