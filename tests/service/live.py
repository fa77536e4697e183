"""The application behind a real server on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from model.predictor import Predictor
from service.app import create_app
from service.settings import Settings
from tests.service.fakes import RepeatLast, small_catalogue


class _Server(uvicorn.Server):
    """Says when the application takes requests."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
        self._app = app
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        await self._app.state.lifecycle.started()
        self.ready.set()


@dataclass(frozen=True)
class Live:
    """A server that runs.

    Attributes:
        url: Its address.
        app: The application.
    """

    url: str
    app: FastAPI


@contextmanager
def live(settings: Settings | None = None, predictor: Predictor | None = None) -> Iterator[Live]:
    """A server with the machine's own clock, ended at the end."""
    app = create_app(settings or Settings(), predictor=predictor or RepeatLast())
    app.state.services.catalogue = small_catalogue()
    server = _Server(app)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            assert server.ready.wait(30)
            yield Live(f"http://127.0.0.1:{listener.getsockname()[1]}", app)
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def unused_address() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
