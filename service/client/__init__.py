"""A client of the service for Python, blocking and asynchronous.

It needs httpx and numpy, and nothing of the server:

    with RancastClient("http://127.0.0.1:8080", timeout_s=0.2) as client:
        answer = client.forecast([Series(cell, start, 900, {"RRU.PrbTotDl": samples})], horizon=24)
        answer.forecasts[0].values  # (K, H, Q)

A call ends within its timeout, whatever the server does: with an answer, or with an error of
`service.client.errors`. What the server is too busy for is tried again as long as that lasts.
"""

from service.client.answers import (
    CellForecast,
    Context,
    ForecastAnswer,
    Model,
    ModelName,
    Rejected,
    StoredCell,
    StoredCount,
)
from service.client.asynchronous import AsyncRancastClient
from service.client.blocking import RancastClient
from service.client.connection import Connection
from service.client.errors import (
    ApiError,
    ClientError,
    DeadlineExceededError,
    Fault,
    ForbiddenError,
    InvalidCallError,
    NotHeldError,
    OverloadedError,
    ServerFailedError,
    TooLargeError,
    UnavailableError,
    UnexpectedAnswerError,
    UnreachableError,
)
from service.client.series import Event, Series

__all__ = [
    "ApiError",
    "AsyncRancastClient",
    "CellForecast",
    "ClientError",
    "Connection",
    "Context",
    "DeadlineExceededError",
    "Event",
    "Fault",
    "ForbiddenError",
    "ForecastAnswer",
    "InvalidCallError",
    "Model",
    "ModelName",
    "NotHeldError",
    "OverloadedError",
    "RancastClient",
    "Rejected",
    "Series",
    "ServerFailedError",
    "StoredCell",
    "StoredCount",
    "TooLargeError",
    "UnavailableError",
    "UnexpectedAnswerError",
    "UnreachableError",
]
