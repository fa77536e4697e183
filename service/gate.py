"""What comes before the router: refusals of what cannot be in time, and the short way in.

Where more is asked for than can be answered, most requests are refused, and what a refusal takes is
missing where answers are made. A request that states its budget in a header is measured against
what the engine has promised already, without routing and before its body is read.

Some routes are asked so often that the router's and the framework's own share of an answer counts:
looking for the route, solving dependencies that there are none of. Their functions are called
here, for the method that they have; everything else of them (the document, other methods) is the
router's matter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.container import services_of
from service.demands import check_door
from service.errors import RequestError
from service.problems import answer_error

FORECAST_PATH = "/v1/forecast"

GATED = frozenset({FORECAST_PATH, "/v1/timeseries/forecast"})
"""Paths whose requests are answered by the default model, as far as their heads say."""

SEEN_KEY = "rancast.gated"
"""Of the scope of a request that `service.early_refusals` has let through: a `Seen`."""


class Seen(NamedTuple):
    """What was known of a request when it was let through.

    Attributes:
        body_bytes: Length of its body, 0 where that says nothing of what it holds.
        samples: What it was taken to hold at least, None where nothing is known.
    """

    body_bytes: int
    samples: int | None


def seen_of(request: Request) -> Seen | None:
    """That of a request, None where it was not looked at before the application."""
    seen: Seen | None = request.scope.get(SEEN_KEY)
    return seen


Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ShortRoute:
    """Stands, for metrics and log, for the route that a request would have taken.

    Attributes:
        path: Its template.
    """

    path: str


class Gate:
    """Stands before the router.

    Args:
        app: What answers.
        direct: Functions of routes that take a POST and nothing but the request, by their path.
    """

    def __init__(self, app: ASGIApp, direct: Mapping[str, Endpoint]) -> None:
        self._app = app
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        request = Request(scope, receive, send)
        answer: ASGIApp = self._app
        try:
            if path in GATED and SEEN_KEY not in scope:
                services = services_of(request)
                check_door(request, services, services.require().models.default)
            if (endpoint := self._direct.get(path)) is not None:
                scope["route"] = ShortRoute(path)
                answer = await endpoint(request)
        except RequestError as error:
            scope["route"] = ShortRoute(path)
            answer = answer_error(request, error)
        await answer(scope, receive, send)
