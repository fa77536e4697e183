"""Refuses what cannot be in time before it costs anything: no routing, no body.

Where more is asked for than can be answered, most requests are refused, and what a refusal takes is
missing where answers are made. A request that states its budget in a header is measured against
what the engine has promised already.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.container import services_of
from service.demands import check_door
from service.errors import RequestError
from service.problems import answer_error

GATED = frozenset({"/v1/forecast", "/v1/timeseries/forecast"})
"""Paths whose requests are answered by the default model, as far as their heads say."""


SEEN_KEY = "rancast.gated"
"""Of the scope of a request that `service.early_refusals` has let through."""


@dataclass(frozen=True, slots=True)
class GatedRoute:
    """Stands for the route that a request would have taken.

    Attributes:
        path: Its template.
    """

    path: str


class Gate:
    """Stands before the router.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if (
            scope["type"] == "http"
            and scope["path"] in GATED
            and scope["method"] == "POST"
            and SEEN_KEY not in scope
        ):
            request = Request(scope)
            services = services_of(request)
            try:
                check_door(request, services, services.require().models.default)
            except RequestError as error:
                scope["route"] = GatedRoute(scope["path"])  # for metrics and log
                await answer_error(request, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)
