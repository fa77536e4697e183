"""Running the application as a process: the socket, the signals, the exit code."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from kpi.store import KpiStore
from model.predictor import Predictor
from service.access.exposure import refuse_exposure
from service.access.reloads import WatchedFiles
from service.access_log import LOGGER_NAME as ACCESS_LOGGER
from service.access_log import configure_access_log
from service.app import create_app
from service.connections import ConnectionLimits, GuardedProtocol, guarded_protocol
from service.container import Phase, Services
from service.descriptors import make_room
from service.early_refusals import EarlyRefusals
from service.errors import StartupError
from service.handshakes import Handshakes
from service.line_handler import written_elsewhere
from service.logs import configure_logging, log_event
from service.settings import Settings
from service.tls import ServerTls, TlsFiles, TlsFilesError

_LOGGER = logging.getLogger(__name__)

_BACKLOG = 2048
_SWITCH_S = 0.0005
_GARBAGE = 20_000
"""Objects made and not yet gone before they are looked through: many hundred are at work at a time,
and looking through them a hundred times a second takes a thirtieth of a core."""


def serve(
    settings: Settings, *, predictor: Predictor | None = None, store: KpiStore | None = None
) -> int:
    """Serve until a signal ends it; blocks.

    SIGTERM and SIGINT end it in order: readiness goes, no connection is taken any more, accepted
    requests are answered within `drain_seconds`, the journal is closed. A second signal ends it at
    once.

    Args:
        settings: What the operator chose.
        predictor: Used instead of the checkpoint that the settings name.
        store: Used instead of the store that the settings describe.

    Returns:
        The exit code: 0 after an orderly end, 1 where the start failed, 2 where the address, a
        setting, a token file or a certificate cannot be used, or anyone could call.
    """
    configure_logging(settings.log_level)
    configure_access_log(settings.log_level)
    try:
        tls = _tls(settings)
        listener = _listen(settings)
        return _run(settings, listener, tls, predictor, store)
    except StartupError as error:
        # For whoever typed the command; the log may go elsewhere.
        sys.stderr.write(f"rancast: {error}\n")
        return error.exit_code


def _run(
    settings: Settings,
    listener: socket.socket,
    tls: ServerTls | None,
    predictor: Predictor | None,
    store: KpiStore | None,
) -> int:
    failures: list[StartupError] = []

    def on_failure(error: StartupError) -> None:
        failures.append(error)
        server.should_exit = True

    watched: Sequence[WatchedFiles] = ()
    if tls is not None:
        watched = [WatchedFiles("certificate", tls.files.paths, tls)]
    with listener:
        app = create_app(
            settings, predictor=predictor, store=store, on_failure=on_failure, watched=watched
        )
        services: Services = app.state.services
        limits = ConnectionLimits(
            most_connections=make_room(settings.max_connections),
            head_s=settings.head_seconds,
            answer_s=settings.answer_seconds,
            # Names and values are counted when they are whole; until then, with what is between.
            most_head_bytes=2 * settings.max_head_bytes,
            most_headers=settings.max_headers,
        )
        protocol = guarded_protocol(limits, services.metrics, EarlyRefusals(services))
        server = _Server(
            uvicorn.Config(
                app,
                # The server calls it like the class that it stands for.
                http=cast(
                    "type[asyncio.Protocol]",
                    protocol,
                ),
                # There are none; an upgrade would leave the door, its limits and timers behind.
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="on",
                server_header=False,
                # Without it, whoever connects from this machine could name itself as it likes.
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                timeout_keep_alive=settings.keep_alive_seconds,
                timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
            ),
            services,
            None if tls is None else Handshakes(tls, limits, services.metrics),
        )
        address = _address(listener, secure=tls is not None)
        log_event(_LOGGER, logging.INFO, "listening", address=address)
        # Several times in each call the thread of the model has to have the interpreter back, and
        # from a busy event loop it gets it only after so long.
        sys.setswitchinterval(_SWITCH_S)
        logs = {"access": logging.getLogger(ACCESS_LOGGER), "events": logging.getLogger()}
        with written_elsewhere(logs, services.metrics.count_dropped_lines):
            server.run(sockets=[listener])
    if failures:
        raise failures[0]
    return 0


class _Server(uvicorn.Server):
    """Tells the application about a signal before connections are closed, and exits with 0."""

    def __init__(
        self, config: uvicorn.Config, services: Services, handshakes: Handshakes | None = None
    ) -> None:
        super().__init__(config)
        self._services = services
        self._handshakes = handshakes
        self._thresholds = gc.get_threshold()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then take connections."""
        if self._handshakes is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            for listener in sockets or ():
                self._handshakes.listen(listener, self._protocol, self.server_state.connections)
        self._settling = asyncio.create_task(self._settle(), name="settle")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no connection any more, and wait for what is in work."""
        if self._handshakes is not None:
            self._handshakes.close()
        await super().shutdown(sockets)
        gc.unfreeze()
        gc.set_threshold(*self._thresholds)

    def _protocol(self) -> GuardedProtocol:
        """What serves one connection, made as the server itself makes it."""
        make = cast("Callable[..., GuardedProtocol]", self.config.http_protocol_class)
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def _settle(self) -> None:
        """Keep what the start has made out of the way of the garbage collector.

        It is there to stay, and to look through all of torch's objects now and then stops the event
        loop for a tenth of a second.
        """
        app = self.config.app
        assert isinstance(app, FastAPI)
        await app.state.lifecycle.started()
        gc.collect()
        gc.freeze()
        self._thresholds = gc.get_threshold()
        gc.set_threshold(_GARBAGE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to stop; a second signal stops at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        if self._services.phase is not Phase.FAILED:
            self._services.move_to(Phase.DRAINING, f"stopping after {signal.Signals(sig).name}")


def _tls(settings: Settings) -> ServerTls | None:
    files = TlsFiles.of(settings)
    if files is None:
        return None
    try:
        return ServerTls(files)
    except TlsFilesError as error:
        raise StartupError(str(error), exit_code=2) from error


def _listen(settings: Settings) -> socket.socket:
    """A listening socket, so that a taken port is known before anything is loaded."""
    host, port = settings.host, settings.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise StartupError(
            f"cannot listen on host {host!r}: {error.strerror}; name an address of this machine",
            exit_code=2,
        ) from error
    refuse_exposure(settings, host, str(address[0]))
    listener = socket.socket(family, kind, protocol)
    try:
        # Lets a restart take the port at once, while connections of the last run linger.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StartupError(_refusal(host, port, error), exit_code=2) from error
    return listener


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use by another process; "
            "stop it or choose another port (RANCAST_PORT, --port)"
        )
    return f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}"


def _address(listener: socket.socket, *, secure: bool = False) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if listener.family is socket.AF_INET6 else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"
