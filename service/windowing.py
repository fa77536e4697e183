"""From histories to windows in the middle of a request: at once, or aside where they are many."""

from __future__ import annotations

import asyncio

from fastapi import Request

from service.codecs.histories import Histories
from service.container import Services
from service.metrics import Stage
from service.series import NamedWindow
from service.timing import timing_of

# Above this many series their windows are built on another thread.
_OFFLOAD_SERIES = 64


async def build_windows(
    request: Request, services: Services, histories: Histories
) -> list[NamedWindow]:
    """One window a series, in order, with the deployment's defaults.

    Args:
        request: Whose time it takes.
        services: Limits, catalogue and defaults.
        histories: What the request brought.

    Raises:
        TooLargeError: More series than the limit.
        InvalidRequestError: A series that cannot be put on a grid.
    """
    settings = services.settings
    arguments = (
        services.limits,
        services.catalogue,
        settings.time_zone,
        settings.holiday_country,
    )
    with timing_of(request).stage(Stage.WINDOW):
        if len(histories) <= _OFFLOAD_SERIES:
            return histories.windows(*arguments)
        return await asyncio.to_thread(histories.windows, *arguments)
