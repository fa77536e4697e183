"""The application: `create_app(settings)` puts the parts together; nothing happens at import."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from kpi.catalogue import load_catalogue
from kpi.errors import CatalogueError
from kpi.store import KpiStore
from model.predictor import Predictor
from service.access.door import Door
from service.access.rate_limit import RateLimiter
from service.access.reloads import Reloads, WatchedFiles
from service.access.scopes import OpenPaths
from service.access.tokens import TokenBook, TokenFileError
from service.access_log import AccessLog
from service.body_work import BodyWork
from service.clock import Clock, SystemClock
from service.container import Services
from service.errors import StartupError
from service.gate import FORECAST_PATH, Gate
from service.lifecycle import Lifecycle
from service.metrics import Metrics
from service.middleware import RawCellNames, RequestTimer
from service.openapi import openapi_builder
from service.problems import install_problem_handlers
from service.room import BodyRoom
from service.routes import (
    accuracy,
    cells,
    forecast,
    health,
    kserve_repository,
    kserve_timeseries,
    kserve_v1,
    kserve_v2,
    metrics,
    model,
    models,
    observations,
    pages,
    ric,
)
from service.series import SeriesLimits
from service.settings import Settings

_DESCRIPTION = (
    "Probabilistic forecasts of radio cell load, inside a latency budget. Errors are problem "
    "documents after RFC 9457."
)


def create_app(
    settings: Settings,
    *,
    predictor: Predictor | None = None,
    store: KpiStore | None = None,
    clock: Clock | None = None,
    on_failure: Callable[[StartupError], None] | None = None,
    watched: Sequence[WatchedFiles] = (),
) -> FastAPI:
    """Build the application; its lifespan loads the model and the store.

    Args:
        settings: What the operator chose.
        predictor: Used instead of the checkpoint that the settings name.
        store: Used instead of the store that the settings describe; the application closes it.
        clock: Used instead of the machine's clocks.
        on_failure: Called where the start fails; the server ends the process then.
        watched: Files, beside the tokens, that are read again when they change.

    Returns:
        The application; `app.state.services` is its container, `app.state.lifecycle` its start and
        stop.

    Raises:
        StartupError: A catalogue file or the token file cannot be used.
    """
    services = _services(settings, clock or SystemClock())
    services.metrics.watch_readiness(lambda: services.unreadiness() is None)
    book = _token_book(settings)
    if book is not None and settings.token_file is not None:
        watched = [*watched, WatchedFiles("tokens", [settings.token_file], book)]
    reloads = Reloads(watched, settings.reload_poll_seconds, services.metrics)
    lifecycle = Lifecycle(services, predictor=predictor, store=store, on_failure=on_failure)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        lifecycle.begin()
        reloads.start()
        try:
            yield
        finally:
            await reloads.stop()
            await lifecycle.end()

    app = FastAPI(
        title="rancast",
        version=_version(),
        summary="Forecasts of radio cell load in time for the control loop",
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    app.state.lifecycle = lifecycle
    app.state.reloads = reloads
    for routes in (
        forecast,
        observations,
        cells,
        model,
        models,
        accuracy,
        health,
        metrics,
        ric,
        pages,
    ):
        app.include_router(routes.router)
    for protocol in (kserve_v1, kserve_v2, kserve_repository, kserve_timeseries):
        app.include_router(protocol.router)
    install_problem_handlers(app)
    app.add_middleware(Gate, direct={FORECAST_PATH: forecast.forecast})
    # The last one added is the first to see a request. The door sees the path that the router sees.
    app.add_middleware(
        Door,
        open_paths=OpenPaths(settings.open_paths),
        book=book,
        limiter=_limiter(settings, services.clock),
        max_headers=settings.max_headers,
        max_head_bytes=settings.max_head_bytes,
    )
    app.add_middleware(RawCellNames)
    app.add_middleware(RequestTimer, clock=services.clock, metrics=services.metrics)
    app.add_middleware(AccessLog, clock=services.clock, enabled=settings.access_log)
    app.openapi = openapi_builder(app)  # type: ignore[method-assign]
    return app


def _services(settings: Settings, clock: Clock) -> Services:
    try:
        catalogue = load_catalogue(settings.catalogue_files)
    except CatalogueError as error:
        raise StartupError(str(error), exit_code=2) from error
    return Services(
        settings=settings,
        clock=clock,
        metrics=Metrics(CollectorRegistry(), clock, settings.profile.value),
        catalogue=catalogue,
        policy=settings.budget_policy(),
        limits=SeriesLimits(settings.max_series_per_request, settings.max_kpis),
        room=BodyRoom(2 * settings.max_body_bytes),
        body_work=BodyWork(clock),
    )


def _token_book(settings: Settings) -> TokenBook | None:
    if settings.token_file is None:
        return None
    try:
        return TokenBook(settings.token_file)
    except TokenFileError as error:
        raise StartupError(f"{error} (RANCAST_TOKEN_FILE)", exit_code=2) from error


def _limiter(settings: Settings, clock: Clock) -> RateLimiter | None:
    if settings.rate_limit_per_second is None:
        return None
    return RateLimiter(
        clock, settings.rate_limit_per_second, settings.burst(), settings.rate_limit_clients
    )


def _version() -> str:
    try:
        return version("rancast")
    except PackageNotFoundError:
        # Run from a checkout that is not installed.
        return "0"
