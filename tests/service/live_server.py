"""The real server on a thread of the test's own process, on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from service import server
from service.container import Services
from service.settings import Settings
from tests.service.fakes import RepeatLast


@dataclass
class Live:
    """A server that listens.

    Attributes:
        address: As it logs it.
        port: The port alone.
        services: Its container.
        app: Its application.
    """

    address: str
    port: int
    services: Services
    app: Any
    loop: asyncio.AbstractEventLoop

    def run(self, work: Any) -> Any:
        """Run a coroutine on the server's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def closed(self, reason: str) -> float:
        """Connections that were closed for this reason."""
        labels = {"reason": reason}
        registry = self.services.metrics._registry
        return registry.get_sample_value("rancast_connections_closed_total", labels) or 0.0


@contextmanager
def live(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Iterator[Live]:
    """Serve until the block ends; the start has succeeded when it begins."""
    up: Future[Live] = Future()
    servers: list[server._Server] = []
    addresses: list[str] = []

    class Announced(server._Server):
        async def startup(self, sockets: Any = None) -> None:
            servers.append(self)
            await super().startup(sockets)
            app = self.config.app
            await app.state.lifecycle.started()  # type: ignore[union-attr]
            port = sockets[0].getsockname()[1]
            loop = asyncio.get_running_loop()
            up.set_result(Live(addresses[0], port, self._services, app, loop))

    kept = server._address

    def address(*arguments: Any, **options: Any) -> str:
        addresses.append(kept(*arguments, **options))
        return addresses[0]

    monkeypatch.setattr(server, "_Server", Announced)
    monkeypatch.setattr(server, "_address", address)
    monkeypatch.setattr(server, "configure_logging", lambda _: None)
    monkeypatch.setattr(server, "configure_access_log", lambda _: None)

    def run() -> None:
        code = server.serve(Settings(port=0, **settings), predictor=RepeatLast())
        if not up.done():
            up.set_exception(AssertionError(f"the server ended with {code}"))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield up.result(30)
    finally:
        for one in servers:
            one.should_exit = True
        thread.join(30)
    assert not thread.is_alive()
