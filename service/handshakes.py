"""TLS handshakes: bounded in number and time, before there is a connection of the server's.

The server hears of a connection when its handshake is through. Until then a client costs a socket
and the state of a handshake, however many it opens; so connections are accepted here, and counted
from then on.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sized

from service.connections import ConnectionLimits, GuardedProtocol
from service.logs import log_event
from service.metrics import Metrics
from service.tls import ServerTls

_LOGGER = logging.getLogger(__name__)

# Taken at a time, so that whoever is connected gets a turn between.
_MOST_AT_ONCE = 64
# Where there is no descriptor for one more connection, there may be soon.
_PAUSE_S = 1.0


class Handshakes:
    """Accepts the connections of one server, and has it serve those whose handshake succeeds.

    Args:
        tls: Gives the context.
        limits: What is granted; a handshake has the time of a head.
        metrics: Counts.
    """

    def __init__(self, tls: ServerTls, limits: ConnectionLimits, metrics: Metrics) -> None:
        self._tls = tls
        self._limits = limits
        self._metrics = metrics
        self._waiting: set[asyncio.Task[None]] = set()
        self._listeners: list[socket.socket] = []
        self._pauses: list[asyncio.TimerHandle] = []

    def listen(
        self, listener: socket.socket, make: Callable[[], GuardedProtocol], connections: Sized
    ) -> None:
        """Accept from now on; from the event loop.

        Args:
            listener: A socket that listens.
            make: Makes what gets a connection when its handshake is through.
            connections: Those whose handshakes are.
        """
        listener.setblocking(False)
        self._listeners.append(listener)
        asyncio.get_running_loop().add_reader(listener, self._accept, listener, make, connections)

    def close(self) -> None:
        """Accept no more, and end the handshakes under way: nobody waits for them."""
        loop = asyncio.get_running_loop()
        for pause in self._pauses:
            pause.cancel()
        for listener in self._listeners:
            loop.remove_reader(listener)
        self._listeners.clear()
        for task in tuple(self._waiting):
            task.cancel()

    def _accept(
        self, listener: socket.socket, make: Callable[[], GuardedProtocol], connections: Sized
    ) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(listener, make, connections, error)
                return
            if len(connections) + len(self._waiting) >= self._limits.most_connections:
                self._metrics.count_closed("full")
                connection.close()
                continue
            connection.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._shake_hands(connection, make))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    def _pause(
        self,
        listener: socket.socket,
        make: Callable[[], GuardedProtocol],
        connections: Sized,
        error: OSError,
    ) -> None:
        log_event(_LOGGER, logging.ERROR, "accept_failed", reason=error)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        self._pauses = [
            loop.call_later(
                _PAUSE_S, loop.add_reader, listener, self._accept, listener, make, connections
            )
        ]

    async def _shake_hands(
        self, connection: socket.socket, make: Callable[[], GuardedProtocol]
    ) -> None:
        loop, limits = asyncio.get_running_loop(), self._limits
        begun_s = loop.time()
        try:
            await loop.connect_accepted_socket(
                make,
                connection,
                ssl=self._tls.context,
                ssl_handshake_timeout=limits.head_s,
                ssl_shutdown_timeout=limits.head_s,
            )
        except OSError:  # not a word of TLS, no certificate that is trusted, gone, or too slow
            if loop.time() - begun_s >= limits.head_s:
                self._metrics.count_closed("slow")
