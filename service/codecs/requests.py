"""Reading what a request asks for, in whichever form it comes: JSON or an Arrow IPC stream."""

from __future__ import annotations

from functools import partial

from fastapi import Request

from service.bodies import JSON_MEDIA_TYPE, body_type, read_decoded
from service.codecs.arrow_requests import decode_arrow_forecast, decode_arrow_observations
from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
from service.codecs.histories import Histories, ListedHistories
from service.codecs.json_requests import decode_histories
from service.container import Services
from service.room import Visit
from service.schemas import ForecastOptions, ForecastRequest, ObservationsRequest

MEDIA_TYPES = (JSON_MEDIA_TYPE, ARROW_MEDIA_TYPE)
"""Forms in which histories are read, and forecasts are written."""


async def read_forecast(
    request: Request, services: Services, visit: Visit
) -> tuple[ForecastOptions, Histories]:
    """What to forecast, and from which histories.

    Raises:
        RequestError: The body cannot be read, or not in time; see `service.bodies.read_decoded`.
    """
    if body_type(request, MEDIA_TYPES) == ARROW_MEDIA_TYPE:
        decode = partial(decode_arrow_forecast, limits=services.limits)
        return await read_decoded(request, services, visit, decode)
    body = await read_decoded(
        request, services, visit, partial(decode_histories, model=ForecastRequest)
    )
    return body, ListedHistories(body.series)


async def read_observations(request: Request, services: Services, visit: Visit) -> Histories:
    """The samples to keep.

    Raises:
        RequestError: The body cannot be read, or not in time; see `service.bodies.read_decoded`.
    """
    if body_type(request, MEDIA_TYPES) == ARROW_MEDIA_TYPE:
        decode = partial(decode_arrow_observations, limits=services.limits)
        return await read_decoded(request, services, visit, decode)
    body = await read_decoded(
        request, services, visit, partial(decode_histories, model=ObservationsRequest)
    )
    return ListedHistories(body.series)
