"""Starting and stopping: what happens in which order, and what is said meanwhile.

The service answers `/healthz` and `/readyz` from its first moment, and loads the model and replays
the journal behind them, so that a probe can tell a slow start from a dead process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from kpi.store import KpiStore
from model.predictor import Predictor, Rung
from model.pretrained import find_checkpoint
from service.acceleration import Acceleration
from service.container import Phase, Running, Services
from service.engine import Engine, Ladder, Step
from service.errors import NotFoundError, ServiceError, StartupError
from service.ingestion import Ingestion
from service.loading import describe, open_store, warm_up_windows
from service.logs import log_event, log_failure
from service.models.loader import ModelLoader
from service.models.registry import Models
from service.models.repository import ModelRepository
from service.models.served import ServedModel
from service.realised.exposition import AccuracyCollector
from service.realised.ledger import AccuracyLedger
from service.schemas import DEFAULT_LEVELS
from service.sources.directory import DirectorySource
from service.sources.ledger import Ledger, own_files
from service.sources.selection import KpiSelection

_LOGGER = logging.getLogger(__name__)


class Lifecycle:
    """Starts and stops the parts of one application.

    Args:
        services: The container that is filled.
        predictor: A predictor to use instead of the checkpoint that the settings name.
        store: A store to use instead of the one that the settings describe.
        on_failure: Called where the start fails, with the reason.
    """

    def __init__(
        self,
        services: Services,
        *,
        predictor: Predictor | None = None,
        store: KpiStore | None = None,
        on_failure: Callable[[StartupError], None] | None = None,
    ) -> None:
        self._services = services
        self._predictor = predictor
        self._store = store
        self._on_failure = on_failure
        self._source: DirectorySource | None = None
        self._acceleration: Acceleration | None = None
        self._repository: ModelRepository | None = None
        self._start: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start in the background; `started` waits for it."""
        self._start = asyncio.create_task(self._begin(), name="startup")

    async def started(self) -> None:
        """Wait until the start has succeeded or failed."""
        if self._start is not None:
            await asyncio.wait([self._start])

    async def end(self) -> None:
        """Answer what was accepted, stop the source, close the journal."""
        services = self._services
        if services.phase is not Phase.FAILED:
            services.move_to(Phase.DRAINING, "the service stops")
        if self._start is not None:
            self._start.cancel()
            await asyncio.gather(self._start, return_exceptions=True)
        if self._acceleration is not None:
            await self._acceleration.stop()
        if self._repository is not None:
            await self._repository.stop()
        if self._source is not None:
            await self._source.stop()
        if services.running is not None:
            await services.running.engine.drain(services.settings.drain_seconds)
            await asyncio.to_thread(services.running.accuracy.close)
        if self._store is not None:
            await asyncio.to_thread(self._store.close)
        log_event(_LOGGER, logging.INFO, "stopped")

    async def _begin(self) -> None:
        services = self._services
        try:
            await self._assemble()
        except Exception as error:
            failure = (
                error
                if isinstance(error, StartupError)
                else StartupError(f"{type(error).__name__}: {error}")
            )
            if isinstance(error, ServiceError):
                log_event(_LOGGER, logging.ERROR, "start_failed", reason=error)
            else:
                log_failure(_LOGGER, "start_failed", error)
            services.move_to(Phase.FAILED, str(failure))
            if self._on_failure is not None:
                self._on_failure(failure)

    async def _assemble(self) -> None:
        services, settings, clock = self._services, self._services.settings, self._services.clock
        begun_s = clock.monotonic_s()
        log_event(
            _LOGGER, logging.INFO, "starting", **settings.model_dump(mode="json", exclude_none=True)
        )
        fresh = settings.journal_path is None or not settings.journal_path.exists()
        if self._store is None:
            self._store = await asyncio.to_thread(open_store, settings, services.catalogue)
        self._announce_store(self._store)
        engine = Engine(
            clock=clock,
            metrics=services.metrics,
            queue_limit=settings.queue_limit,
            warm_up=warm_up_windows(settings.history_steps),
            on_stall=self._stalled,
        )
        models = Models(services.metrics, settings.routing())
        loader = ModelLoader(settings, services.catalogue, engine, clock)
        self._acceleration = Acceleration(loader, models, engine, services)
        repository = await self._open_models(models, loader, engine)
        try:
            default = models.default.identity
        except NotFoundError as error:
            raise StartupError(
                f"RANCAST_DEFAULT_MODEL={settings.default_model}: {error}", exit_code=2
            ) from error
        engine.start()
        accuracy = self._ledger(self._store)
        ingestion = Ingestion(
            self._store,
            services.catalogue,
            services.metrics,
            queue_limit=settings.queue_limit,
            on_stored=accuracy.observe,
        )
        services.metrics.watch_store(ingestion.figures)
        services.metrics.watch(AccuracyCollector(lambda: accuracy.latest), accuracy.refresh)
        services.running = Running(engine, models, repository, ingestion, accuracy)
        if settings.ingest_directory is not None:
            self._source = DirectorySource(
                settings.ingest_directory,
                ingestion=ingestion,
                ledger=await asyncio.to_thread(Ledger.beside, settings.journal_path, fresh=fresh),
                catalogue=services.catalogue,
                metrics=services.metrics,
                clock=clock,
                poll_seconds=settings.ingest_poll_seconds,
                time_zone=settings.time_zone,
                selection=KpiSelection(
                    services.catalogue,
                    names=settings.ingest_kpis,
                    unknown=settings.ingest_unknown,
                ),
                own=own_files(settings.journal_path),
            )
            self._source.start()
        services.move_to(Phase.READY)
        log_event(
            _LOGGER,
            logging.INFO,
            "ready",
            model=default.name,
            version=default.version,
            digest=default.digest,
            models=len(models.served),
            seconds=clock.monotonic_s() - begun_s,
        )
        repository.start()
        self._acceleration.start()

    def _stalled(self) -> None:
        """The model does not come back: only another process can go on."""
        failure = StartupError("the model did not come back from a call; the process ends")
        log_event(_LOGGER, logging.ERROR, "model_stalled", reason=failure)
        self._services.move_to(Phase.FAILED, str(failure))
        if self._on_failure is not None:
            self._on_failure(failure)

    async def _open_models(
        self, models: Models, loader: ModelLoader, engine: Engine
    ) -> ModelRepository:
        """Load all models that are to be served from the start.

        Raises:
            StartupError: The base model cannot be used, or the directory cannot be read.
        """
        services, settings = self._services, self._services.settings
        base: Path | None = None
        if self._predictor is not None:
            ladder = Ladder((Step(Rung.FULL, self._predictor),))
            await engine.learn(ladder)
            models.put(ServedModel(ladder, describe(self._predictor)), base=True)
        else:
            base = await asyncio.to_thread(find_checkpoint, settings.model_path)
        assert self._acceleration is not None
        repository = ModelRepository(
            models,
            loader,
            base=base,
            directory=settings.models_directory,
            models_limit=settings.models_limit,
            poll_seconds=settings.reload_poll_seconds,
            metrics=services.metrics,
            clock=services.clock,
            on_load=self._acceleration.want,
        )
        self._repository = repository
        await repository.open()
        return repository

    def _ledger(self, store: KpiStore) -> AccuracyLedger:
        """The ledger of realised accuracy; what it may cost is said before it is spent."""
        settings = self._services.settings
        ledger = AccuracyLedger(
            store,
            self._services.catalogue,
            most_bytes=settings.accuracy_bytes,
            recent_days=settings.accuracy_days,
            max_kpis=settings.max_kpis,
            default_levels=DEFAULT_LEVELS,
            now_ms=self._services.clock.now_ms,
        )
        log_event(
            _LOGGER,
            logging.INFO,
            "accuracy_open",
            most_forecasts=ledger.most_forecasts,
            most_bytes=ledger.most_bytes,
        )
        return ledger

    def _announce_store(self, store: KpiStore) -> None:
        """Say what the configuration costs, before it is spent."""
        settings = self._services.settings
        bytes_per_cell = store.stated_bytes_per_cell(settings.max_kpis)
        log_event(
            _LOGGER,
            logging.INFO,
            "store_open",
            cells=len(store),
            most_cells=settings.max_cells,
            bytes_per_cell=bytes_per_cell,
            most_bytes=bytes_per_cell * settings.max_cells,
            journal=settings.journal_path,
        )
