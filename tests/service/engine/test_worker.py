"""The thread of the model: what it is asked for comes back, or fails; nothing waits for ever."""

from __future__ import annotations

import asyncio
import ctypes
import threading

import pytest

from service.engine.worker import Worker
from service.errors import InferenceError

pytestmark = pytest.mark.anyio
ends_a_thread = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


async def test_calls_run_on_one_thread_of_its_name():
    worker = Worker("model")
    names = [await worker.call(lambda: threading.current_thread().name) for _ in range(3)]
    idents = {await worker.call(threading.get_ident) for _ in range(3)}
    worker.stop()
    assert names == ["model"] * 3
    assert len(idents) == 1


async def test_an_error_is_that_of_the_call_and_the_thread_lives():
    worker = Worker("model")
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await worker.call(lambda: next(iter(())))
    assert await worker.call(lambda: 1) == 1
    assert worker.deaths == 0
    worker.stop()


@ends_a_thread
async def test_a_call_whose_thread_ends_fails_and_the_next_has_another():
    worker = Worker("model")

    threads = []

    def end() -> None:
        threads.append(threading.current_thread())
        raise SystemExit

    with pytest.raises(InferenceError, match="thread of the model ended"):
        await worker.call(end)
    await asyncio.to_thread(threads[0].join)  # or what it says at its end is another test's
    assert await worker.call(lambda: 1) == 1
    assert worker.deaths == 1
    worker.stop()


@ends_a_thread
async def test_a_thread_that_is_ended_from_outside_is_replaced():
    worker = Worker("ended-from-outside")
    entered, gate = threading.Event(), threading.Event()

    def work() -> None:
        entered.set()
        while not gate.wait(0.01):
            pass

    call = asyncio.create_task(worker.call(work))
    assert await asyncio.to_thread(entered.wait, 30)
    (thread,) = (each for each in threading.enumerate() if each.name == "ended-from-outside")
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    )
    with pytest.raises(InferenceError):
        await call
    await asyncio.to_thread(thread.join)  # or what it says at its end is another test's
    assert await worker.call(lambda: 1) == 1
    worker.stop()


@ends_a_thread
async def test_calls_that_wait_fail_with_the_one_that_ends_the_thread():
    worker = Worker("model")
    gate = threading.Event()
    threads = []

    def end() -> None:
        threads.append(threading.current_thread())
        gate.wait(30)
        raise SystemExit

    calls = [asyncio.create_task(worker.call(each)) for each in (end, lambda: None)]
    await asyncio.sleep(0)
    gate.set()
    for call in calls:
        with pytest.raises(InferenceError):
            await asyncio.wait_for(call, 30)
    await asyncio.to_thread(threads[0].join)
    worker.stop()


async def test_a_call_that_is_given_up_fails_and_the_next_has_another_thread():
    worker = Worker("model")
    gate = threading.Event()
    call = asyncio.create_task(worker.call(gate.wait))
    await asyncio.sleep(0)
    worker.give_up()
    with pytest.raises(InferenceError, match="does not come back"):
        await call
    assert await worker.call(lambda: 1) == 1
    gate.set()
    worker.stop()
