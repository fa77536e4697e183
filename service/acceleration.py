"""Compiled code in the place of the eager forward pass: taken from the cache, or made meanwhile.

The service never waits for a compiler. Where the cache has no code for this checkpoint and machine,
`rancast compile` runs as a process of its own that gives way to others, and the eager path answers
until it is done. Whatever goes wrong is said in the log and in the metrics, and costs speed only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path

from model.errors import ArtifactError, ModelError
from model.inference_path import PathKind
from service.container import Services
from service.engine import Engine
from service.loading import ladder_of, precision_of
from service.logs import log_event, log_failure
from service.metrics import CompilationResult
from service.models.loader import ModelLoader
from service.models.registry import Models
from service.models.served import ServedModel
from service.settings import Compiled

_LOGGER = logging.getLogger(__name__)
_STOP_SECONDS = 5.0


class Acceleration:
    """Has checkpoints in service compiled, one at a time, and lets the code answer then.

    Args:
        loader: Has the engine learn what the code costs.
        models: Those in service.
        engine: Who answers.
        services: Settings, metrics and catalogue.
    """

    def __init__(
        self, loader: ModelLoader, models: Models, engine: Engine, services: Services
    ) -> None:
        self._loader = loader
        self._models = models
        self._engine = engine
        self._services = services
        self._wanted: asyncio.Queue[ServedModel] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def want(self, model: ServedModel) -> None:
        """A model is served; once started, see to it that there is compiled code of it."""
        if model.path is None:
            return
        if model.path.kind is PathKind.COMPILED:
            self._services.metrics.count_compilation(CompilationResult.CACHED)
        if self._services.settings.compiled is Compiled.AUTO:
            self._wanted.put_nowait(model)

    def start(self) -> None:
        """Begin in the background; `finished` waits for what is wanted by then."""
        self._task = asyncio.create_task(self._run(), name="compilation")

    async def finished(self) -> None:
        """Wait until there is compiled code, or none is to be expected."""
        await self._wanted.join()

    async def stop(self) -> None:
        """End the compiler, if it still runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            model = await self._wanted.get()
            try:
                await self._see_to(model)
            finally:
                self._wanted.task_done()

    async def _see_to(self, model: ServedModel) -> None:
        try:
            result = await self._accelerate(model)
        except (ModelError, OSError) as error:
            result = CompilationResult.FAILED
            log_event(_LOGGER, logging.WARNING, "compilation_failed", reason=error)
        except Exception as error:
            result = CompilationResult.FAILED
            log_failure(_LOGGER, "compilation_failed", error)
        if result is not None:
            self._services.metrics.count_compilation(result)

    async def _accelerate(self, model: ServedModel) -> CompilationResult | None:
        """What came of it, None where there was nothing to do."""
        from model.compiled import best_artifact, is_settled
        from model.shared_library import find_compiler

        services, checkpoint = self._services, model.checkpoint
        assert checkpoint is not None  # whatever has a path is made of one
        precision = precision_of(services.settings.precision)
        if model not in self._models.served:
            return None
        if await asyncio.to_thread(is_settled, checkpoint, precision):
            return None
        if find_compiler() is None:
            reason = "no C++ compiler (CXX, or g++); `rancast compile` elsewhere can fill the cache"
            log_event(_LOGGER, logging.INFO, "compilation_unavailable", reason=reason)
            return CompilationResult.UNAVAILABLE
        begun_s = services.clock.monotonic_s()
        log_event(_LOGGER, logging.INFO, "compiling", model=checkpoint.name)
        await self._compile(model.file)
        artifact = await asyncio.to_thread(best_artifact, checkpoint, precision)
        if artifact is None:
            raise ArtifactError(
                f"expected compiled code of {checkpoint.digest} in the cache, found none; was the "
                "checkpoint's file replaced, or the attention kernel built meanwhile?"
            )
        ladder, path = await asyncio.to_thread(
            ladder_of, checkpoint, services.catalogue, artifact, services.settings
        )
        await self._loader.learn(ladder)
        if model not in self._models.served:
            return CompilationResult.BUILT
        self._engine.replace(model.ladder, ladder)
        model.ladder, model.path = ladder, path
        services.metrics.show_inference(model.identity, path)
        log_event(
            _LOGGER,
            logging.INFO,
            "compiled",
            model=checkpoint.name,
            precision=path.precision,
            moved_ratio=artifact.moved.usual_ratio,
            seconds=services.clock.monotonic_s() - begun_s,
        )
        return CompilationResult.BUILT

    async def _compile(self, file: Path | None) -> None:
        """Run `rancast compile`.

        Raises:
            ArtifactError: It failed; its last words say why.
        """
        # -P: whatever lies in the working directory is not to be taken for a module.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "rancast", "compile", str(file)),
            *("--precision", self._services.settings.precision.value, "--background"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = await process.communicate()
        finally:
            await _end(process)
        if process.returncode:
            words = said.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise ArtifactError(f"`rancast compile` {_fate(process.returncode)}: {words[-1]}")


def _fate(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    hint = ", perhaps for want of memory" if status == -signal.SIGKILL else ""
    return f"was ended by {name}{hint}; it last said"


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and what it started, if it still runs; it leads a group of its own."""
    if process.returncode is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        return
    os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
