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

from model.errors import ArtifactError, ModelError
from model.inference_path import PathKind
from service.container import Services
from service.engine import Engine
from service.loading import LoadedModel, ladder_of, precision_of, warm_up_windows
from service.logs import log_event, log_failure
from service.metrics import CompilationResult
from service.settings import Compiled

_LOGGER = logging.getLogger(__name__)
_STOP_SECONDS = 5.0


class Acceleration:
    """Has the checkpoint of a running service compiled, and lets the code answer then.

    Args:
        model: What the service runs.
        engine: Who answers.
        services: Settings, metrics and catalogue.
    """

    def __init__(self, model: LoadedModel, engine: Engine, services: Services) -> None:
        self._model = model
        self._engine = engine
        self._services = services
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin in the background, where there is anything to do; `finished` waits for it."""
        path, settings = self._model.path, self._services.settings
        if path is not None and path.kind is PathKind.COMPILED:
            self._services.metrics.count_compilation(CompilationResult.CACHED)
        if settings.compiled is Compiled.AUTO:
            self._task = asyncio.create_task(self._run(), name="compilation")

    async def finished(self) -> None:
        """Wait until there is compiled code, or none is to be expected."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """End the compiler, if it still runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            result = await self._accelerate()
        except (ModelError, OSError) as error:
            result = CompilationResult.FAILED
            log_event(_LOGGER, logging.WARNING, "compilation_failed", reason=error)
        except Exception as error:
            result = CompilationResult.FAILED
            log_failure(_LOGGER, "compilation_failed", error)
        if result is not None:
            self._services.metrics.count_compilation(result)

    async def _accelerate(self) -> CompilationResult | None:
        """What came of it, None where there was nothing to do."""
        from model.compiled import best_artifact, is_settled
        from model.shared_library import find_compiler

        services, checkpoint = self._services, self._model.checkpoint
        assert checkpoint is not None  # whatever has a path is made of one
        precision = precision_of(services.settings.precision)
        if await asyncio.to_thread(is_settled, checkpoint, precision):
            return None
        if find_compiler() is None:
            reason = "no C++ compiler (CXX, or g++); `rancast compile` elsewhere can fill the cache"
            log_event(_LOGGER, logging.INFO, "compilation_unavailable", reason=reason)
            return CompilationResult.UNAVAILABLE
        begun_s = services.clock.monotonic_s()
        log_event(_LOGGER, logging.INFO, "compiling", model=checkpoint.name)
        await self._compile()
        artifact = await asyncio.to_thread(best_artifact, checkpoint, precision)
        if artifact is None:
            raise ArtifactError(
                f"expected compiled code of {checkpoint.digest} in the cache, found none; was the "
                "checkpoint's file replaced, or the attention kernel built meanwhile?"
            )
        ladder, path = await asyncio.to_thread(
            ladder_of, checkpoint, services.catalogue, artifact, services.settings
        )
        await self._engine.replace(ladder, warm_up_windows(services.settings.history_steps))
        services.metrics.show_inference(path)
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

    async def _compile(self) -> None:
        """Run `rancast compile`.

        Raises:
            ArtifactError: It failed; its last words say why.
        """
        # -P: whatever lies in the working directory is not to be taken for a module.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "rancast", "compile", str(self._model.file)),
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
