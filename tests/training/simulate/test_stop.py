"""Stopping: from a thread, from a handler, and in the middle of a wait."""

from __future__ import annotations

import math
import signal
import threading

import pytest

from training.simulate.stop import Stop, stop_on_signals


def test_a_wait_ends_without_a_request_when_its_time_is_over():
    stop = Stop()
    assert not stop.wait(0.0)
    assert not stop.is_set()


def test_a_request_before_the_wait_counts_for_every_wait():
    stop = Stop()
    stop.set()
    assert stop.is_set()
    assert stop.wait(math.inf)
    assert stop.wait(math.inf)


def test_a_request_from_another_thread_ends_the_wait():
    stop = Stop()
    thread = threading.Thread(target=stop.set)
    thread.start()
    assert stop.wait(math.inf)
    thread.join()


@pytest.mark.timeout(60)
def test_a_handler_may_ask_at_any_instruction_of_a_wait():
    """With `threading.Event` in its place this ends in a deadlock within a few signals."""
    stop = Stop()
    asked = 0

    def handle(*_):
        nonlocal asked
        asked += 1
        stop.set()

    before = signal.signal(signal.SIGVTALRM, handle)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0005, 0.0005)
    try:
        while asked < 40:
            stop = Stop()
            stop.wait(0.0)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
    assert asked >= 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_within_the_block(number):
    stop = Stop()
    with stop_on_signals(stop):
        signal.raise_signal(number)
        assert stop.wait(math.inf)


def test_handlers_are_put_back_after_an_error():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError), stop_on_signals(Stop()):
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is before
