"""Keeps the models in service in step with files: new ones, changed ones, those that went.

A file that cannot be used changes nothing: the model that it held before goes on answering, and the
reason stands in the log, in the metrics and in `GET /v1/models`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from model.errors import ModelError
from service.clock import Clock
from service.errors import ConflictError, NotFoundError, ServiceError, StartupError
from service.logs import log_event, log_failure
from service.metrics import Metrics
from service.models.files import Look, look_at, same
from service.models.loader import ModelLoader
from service.models.reference import ModelReference
from service.models.registry import Models
from service.models.served import ServedModel

_LOGGER = logging.getLogger(__name__)


class FileState(StrEnum):
    """What became of a checkpoint file."""

    SERVED = "served"
    UNLOADED = "unloaded"
    REFUSED = "refused"


@dataclass(slots=True)
class ModelFile:
    """A checkpoint file that has been read.

    Attributes:
        path: Where it lies.
        seen: What it was like when it was read.
        state: What became of it.
        model: The model from it that is served; None where there is none.
        key: Name and version that it holds; None where it could not be read so far.
        reason: Why it is refused, empty where it is not.
    """

    path: Path
    seen: object
    state: FileState = FileState.REFUSED
    model: ServedModel | None = None
    key: tuple[str, str] | None = None
    reason: str = ""

    def holds(self, reference: ModelReference) -> bool:
        """Whether it is this model's."""
        return self.key is not None and reference.names(self.key)


class ModelRepository:
    """Loads and unloads models.

    Args:
        models: Those in service.
        loader: Loads them.
        base: File of the base model, None where that is no file.
        directory: Where other checkpoints lie; None where there are none.
        models_limit: Models in service at a time.
        poll_seconds: Time between two looks.
        metrics: Counts.
        clock: For how long loading took.
        on_load: Told of each model that is served from now on.
    """

    def __init__(
        self,
        models: Models,
        loader: ModelLoader,
        *,
        base: Path | None,
        directory: Path | None,
        models_limit: int,
        poll_seconds: float,
        metrics: Metrics,
        clock: Clock,
        on_load: Callable[[ServedModel], None] = lambda _: None,
    ) -> None:
        self._models = models
        self._loader = loader
        self._base = base
        self._directory = directory
        self._models_limit = models_limit
        self._poll_seconds = poll_seconds
        self._metrics = metrics
        self._clock = clock
        self._on_load = on_load
        self._files: dict[Path, ModelFile] = {}
        # What a file is like that has changed: whoever writes it may not be through.
        self._settling: dict[Path, object] = {}
        # Served from memory alone, because requests that name no model would have no answer else.
        self._orphans: list[ServedModel] = []
        self._changes = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def files(self) -> Sequence[ModelFile]:
        """All that have been read, by their paths."""
        return [self._files[path] for path in sorted(self._files)]

    async def open(self) -> None:
        """Load the base model, and whatever else can be loaded.

        Raises:
            StartupError: The base model cannot be used, or the directory cannot be read.
        """
        async with self._changes:
            try:
                look = await self._look()
            except OSError as error:
                raise StartupError(f"the directory of models cannot be read: {error}") from error
            if self._base is not None:
                self._base = next((path for path in look if same(path, self._base)), self._base)
                file = await self._read(self._base, look.get(self._base))
                if file.state is FileState.REFUSED:
                    raise StartupError(file.reason)
            for path, state in look.items():
                if path not in self._files:
                    await self._read(path, state)

    def start(self) -> None:
        """Look from now on."""
        self._task = asyncio.create_task(self._run(), name="models")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._loader.stop()

    async def look(self) -> None:
        """Look once: read what has changed and stayed so since the last look, drop what went.

        Raises:
            OSError: The directory cannot be read; all models go on answering.
        """
        async with self._changes:
            look = await self._look()
            settled = {path for path in look if self._settling.get(path) == look[path]}
            self._settling = {
                path: state
                for path, state in look.items()
                if path not in self._files or self._files[path].seen != state
            }
            for path in settled & self._settling.keys():
                await self._read(path, self._settling.pop(path))
            for path in self._files.keys() - look.keys():
                self._retire(self._files.pop(path).model, "its file was removed")
            self._orphans = [model for model in self._orphans if not self._remove(model)]

    async def load(self, reference: ModelReference) -> None:
        """Serve what files hold under this name, if they do not already.

        Raises:
            NotFoundError: No file holds it.
            ConflictError: A file that holds it cannot be used; the message says why.
            OSError: The files cannot be read.
        """
        async with self._changes:
            look = await self._look()
            held = [file for file in self._files.values() if file.holds(reference)]
            if not held:
                raise NotFoundError(
                    f"no checkpoint file holds {reference}; GET /v1/models lists those that are "
                    "there"
                )
            for file in held:
                if file.state is not FileState.SERVED:
                    await self._read(file.path, look.get(file.path))
                if file.state is FileState.REFUSED:
                    raise ConflictError(file.reason)

    async def unload(self, reference: ModelReference) -> None:
        """Serve a model no more, until it is asked for again or its file changes.

        Raises:
            NotFoundError: It is not served, or from no file.
            ConflictError: It answers the requests that name no model.
        """
        async with self._changes:
            self._models.find(reference)  # or else it says what is served
            held = [
                file
                for file in self._files.values()
                if file.model is not None and reference.names(file.model.key)
            ]
            if not held:
                raise NotFoundError(f"{reference} comes from no file, and cannot be unloaded")
            if reference.version is None and self._models.default in [file.model for file in held]:
                raise ConflictError(
                    f"a version of {reference} answers the requests that name no model; let "
                    "another one do that first (PUT /v1/routing), or name the version to unload"
                )
            for file in held:
                assert file.model is not None
                self._models.remove(file.model)
                _tell(file.model, logging.INFO, "model_unloaded", "it was asked for")
                file.state, file.model = FileState.UNLOADED, None

    async def _look(self) -> Look:
        return await asyncio.to_thread(look_at, self._directory, self._base)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            try:
                await self.look()
            except OSError as error:
                log_event(_LOGGER, logging.ERROR, "models_unreadable", reason=error)

    async def _read(self, path: Path, state: object) -> ModelFile:
        """Load a file and serve its model, or note why not."""
        begun_s = self._clock.monotonic_s()
        file = self._files.setdefault(path, ModelFile(path, state))
        file.seen = state
        try:
            model = await self._loader.load(path)
            file.key = model.key
            self._check_place(file)
        except Exception as error:
            file.state, file.reason = FileState.REFUSED, str(error)
            self._metrics.count_reload("models", usable=False)
            if isinstance(error, ServiceError | ModelError):
                log_event(_LOGGER, logging.ERROR, "model_refused", file=path, reason=error)
            else:
                file.reason = f"{type(error).__name__}: {error}"
                log_failure(_LOGGER, "model_refused", error, file=path)
            return file
        self._serve(file, model)
        self._metrics.count_reload("models", usable=True)
        log_event(
            _LOGGER,
            logging.INFO,
            "model_loaded",
            file=path,
            model=model.identity.name,
            version=model.identity.version,
            digest=model.identity.digest,
            seconds=self._clock.monotonic_s() - begun_s,
        )
        return file

    def _check_place(self, file: ModelFile) -> None:
        """Hold a model that was loaded to those that are served.

        Raises:
            ConflictError: Another file has its name and version, or there are too many.
        """
        served = [each for each in self._files.values() if each.model and each is not file]
        for other in served:
            # A file that changed and was refused goes on serving what it held before.
            if file.key is not None and other.model is not None and other.model.key == file.key:
                raise ConflictError(
                    f"{'@'.join(file.key)} is served from {other.path} already; give one of the "
                    "two another version"
                )
        if len(served) >= self._models_limit:
            raise ConflictError(
                f"{len(served)} models are served, which is the limit; unload one, or raise "
                "RANCAST_MODELS_LIMIT"
            )

    def _serve(self, file: ModelFile, model: ServedModel) -> None:
        """Let a model answer, in the place of the one that came from the same file."""
        old, file.model = file.model, model
        file.state, file.reason = FileState.SERVED, ""
        self._models.put(model, base=file.path == self._base)
        if old is not None and old.key != model.key:
            self._retire(old, "its file holds another one")
        self._on_load(model)

    def _retire(self, model: ServedModel | None, reason: str) -> None:
        """Serve a model no more, or from memory alone where it cannot be done without."""
        if model is None:
            return
        if self._remove(model):
            _tell(model, logging.INFO, "model_unloaded", reason)
        else:
            self._orphans.append(model)
            reason = f"{reason}, but it answers the requests that name no model"
            _tell(model, logging.WARNING, "model_kept", reason)

    def _remove(self, model: ServedModel) -> bool:
        try:
            self._models.remove(model)
        except ConflictError:
            return False
        return True


def _tell(model: ServedModel, level: int, event: str, reason: str) -> None:
    log_event(
        _LOGGER,
        level,
        event,
        model=model.identity.name,
        version=model.identity.version,
        reason=reason,
    )
