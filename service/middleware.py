"""What happens to every request before its route: timing, and cell names kept as they were sent."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.clock import Clock
from service.metrics import Metrics
from service.timing import SCOPE_KEY, RequestTiming, route_of

_CELLS = "/v1/cells/"


class RequestTimer:
    """Notes the arrival of each request, counts how long it took and tells the client of it."""

    def __init__(self, app: ASGIApp, clock: Clock, metrics: Metrics) -> None:
        self._app = app
        self._clock = clock
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with the timing in the scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        timing = RequestTiming(self._clock.monotonic_s(), self._clock, self._metrics)
        scope[SCOPE_KEY] = timing

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start" and timing.stages_s:
                header = (b"server-timing", timing.header().encode("ascii"))
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        is_answered = False
        try:
            await self._app(scope, receive, timed_send)
            is_answered = True
        finally:
            duration_s = self._clock.monotonic_s() - timing.arrival_s
            used = timing.budget_used(duration_s) if is_answered else None
            self._metrics.observe_request(route_of(scope), duration_s, used)


class RawCellNames:
    """Routes `/v1/cells/{cell}` by the path as it was sent.

    Servers decode a path before routing, and a cell's name may hold slashes, which are then no
    longer told from those of the route. Here the path under `/v1/cells/` is left percent-encoded
    for the router; routes decode the one part that is the name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with the sent path."""
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw is not None:
            sent = raw.partition(b"?")[0].decode("utf-8", errors="replace")
            if sent.startswith(scope.get("root_path", "") + _CELLS):
                scope["path"] = sent
        await self._app(scope, receive, send)
