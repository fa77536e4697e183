"""The real server on a thread of the test's own process, on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import uvicorn
from fastapi import FastAPI

from model.predictor import Predictor
from service import server
from service.container import Services
from service.settings import Settings
from tests.service.fakes import RepeatLast, small_catalogue

Result = TypeVar("Result")


@dataclass(frozen=True)
class Live:
    """A server that is ready.

    Attributes:
        url: Its address, as it logs it.
        port: The port alone.
        app: The application.
        services: Its container.
        loop: The event loop that it runs on.
    """

    url: str
    port: int
    app: FastAPI
    services: Services
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the server's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def connect(self) -> socket.socket:
        """A new connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def closed(self, reason: str) -> float:
        """Connections that were closed for this reason."""
        labels = {"reason": reason}
        registry = self.services.metrics._registry
        return registry.get_sample_value("rancast_connections_closed_total", labels) or 0.0


@contextmanager
def live(settings: Settings | None = None, predictor: Predictor | None = None) -> Iterator[Live]:
    """Serve with the machine's own clock and a small catalogue, until the block ends.

    Args:
        settings: The port alone is another: a free one.
        predictor: Answers; by default one that repeats the last value.
    """
    chosen = (settings or Settings()).model_copy(update={"port": 0})
    up: Future[Live] = Future()
    servers: list[server._Server] = []
    urls: list[str] = []

    class Announced(server._Server):
        def __init__(self, config: uvicorn.Config, services: Services) -> None:
            super().__init__(config, services)
            services.catalogue = small_catalogue()
            servers.append(self)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            app = self.config.app
            assert isinstance(app, FastAPI)
            assert sockets
            await app.state.lifecycle.started()
            port = sockets[0].getsockname()[1]
            up.set_result(Live(urls[0], port, app, self._services, asyncio.get_running_loop()))

    def address(listener: socket.socket, *, secure: bool) -> str:
        urls.append(said(listener, secure=secure))
        return urls[0]

    def run() -> None:
        code = server.serve(chosen, predictor=predictor or RepeatLast())
        if not up.done():
            up.set_exception(AssertionError(f"the server ended with {code}"))

    said = server._address
    thread = threading.Thread(target=run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_Server", Announced)
        patch.setattr(server, "_address", address)
        patch.setattr(server, "configure_logging", lambda _: None)
        patch.setattr(server, "configure_access_log", lambda _: None)
        thread.start()
        try:
            found = up.result(30)
        except BaseException:
            _end(servers, thread)
            raise
    try:
        yield found
    finally:
        _end(servers, thread)


def _end(servers: list[server._Server], thread: threading.Thread) -> None:
    for one in servers:
        one.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def unused_address() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
