"""A thread that calls one function at a time, and says when it no longer does.

A pool of the standard library waits for ever where its thread has ended or does not come back. Here
what was asked of it fails then, and the next call has a new thread, or the process is told that it
cannot go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from service.errors import InferenceError

Result = TypeVar("Result")
_Tasks: TypeAlias = "queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None]"


class Worker:
    """One thread; its methods are called on the event loop.

    Args:
        name: Of the thread.
        niceness: By how much it gives way to the other threads of the process, where the system
            knows such a thing of threads.
    """

    def __init__(self, name: str, niceness: int = 0) -> None:
        self._name = name
        self._niceness = niceness
        self._tasks: _Tasks = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pending: set[asyncio.Future[Any]] = set()
        self.deaths = 0

    async def call(self, function: Callable[[], Result]) -> Result:
        """What `function` returns or raises; calls are made one after the other.

        Raises:
            InferenceError: The thread ended meanwhile, or was given up.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        if self._thread is None:
            self._start(loop)
        self._pending.add(future)
        self._tasks.put((function, future))
        try:
            return await future
        finally:
            self._pending.discard(future)

    def give_up(self) -> None:
        """Wait no longer for the call that runs: all fail, and the next one has a new thread."""
        self._fail("the model does not come back")
        self._abandon()

    def stop(self) -> None:
        """Let the thread end once it has nothing to do; nothing is called afterwards."""
        self._tasks.put(None)

    def _abandon(self) -> None:
        self._tasks.put(None)
        self._tasks = queue.SimpleQueue()
        self._thread = None

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        # A daemon: a call that never comes back must not keep the process from ending.
        self._thread = threading.Thread(
            target=self._work, args=(loop, self._tasks), name=self._name, daemon=True
        )
        self._thread.start()

    def _work(self, loop: asyncio.AbstractEventLoop, tasks: _Tasks) -> None:
        ended_in_order = False
        if self._niceness:
            _give_way(self._niceness)
        try:
            while (task := tasks.get()) is not None:
                _run(loop, *task)
                task = None  # or a model that is unloaded would live until the next call
            ended_in_order = True
        finally:
            if not ended_in_order:
                _tell(loop, self._died, tasks)

    def _died(self, tasks: _Tasks) -> None:
        if tasks is not self._tasks:
            return  # it was given up before
        self.deaths += 1
        self._fail("the thread of the model ended")
        self._abandon()

    def _fail(self, reason: str) -> None:
        for future in self._pending:
            if not future.done():
                future.set_exception(InferenceError(reason))


def _run(
    loop: asyncio.AbstractEventLoop, function: Callable[[], Any], future: asyncio.Future[Any]
) -> None:
    try:
        result = function()
    except StopIteration as error:  # no future takes one
        _tell(loop, _set, future, None, RuntimeError(f"the model raised {error!r}"))
    except Exception as error:
        _tell(loop, _set, future, None, error)
    else:
        _tell(loop, _set, future, result, None)


def _set(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *given: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(function, *given)


def _give_way(niceness: int) -> None:
    """Let the calling thread give way; threads that it starts do so too."""
    if sys.platform == "linux":  # elsewhere it would be said of the whole process
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
