"""SIGTERM stops as Ctrl-C does, and neither does so in the middle of a step."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from training.stopping import HeldStops, sigterm_interrupts

pytestmark = pytest.mark.usefixtures("ctrl_c")

STOPS = [signal.SIGINT, signal.SIGTERM]


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_sigterm_interrupts_and_means_afterwards_what_it_meant_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        send(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_sigterm_does_not_disturb_what_is_saved() -> None:
    saved = []

    def run() -> None:
        try:
            send(signal.SIGTERM)
        finally:
            send(signal.SIGTERM)
            saved.append("state")

    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        run()
    assert saved


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_waits_until_it_is_asked_for(number) -> None:
    with sigterm_interrupts(), HeldStops() as stops:
        assert not stops.is_asked
        send(number)
        assert stops.is_asked
        with pytest.raises(KeyboardInterrupt):
            stops.stop()


@pytest.mark.parametrize("asked_here", [True, False])
def test_a_sigterm_after_the_stop_does_not_disturb_what_is_saved(asked_here) -> None:
    saved = []

    def run() -> None:
        try:
            with HeldStops() as stops:
                if asked_here:
                    send(signal.SIGTERM)
                stops.stop()
        finally:
            send(signal.SIGTERM)
            saved.append("state")

    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        run()
    assert saved


def test_a_second_interrupt_does_not_wait() -> None:
    with HeldStops():
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_ctrl_c_waits_while_what_another_process_stopped_is_saved() -> None:
    with sigterm_interrupts(), HeldStops() as stops:
        with pytest.raises(KeyboardInterrupt):
            stops.stop()
        send(signal.SIGINT)
        assert stops.is_asked


def test_a_second_interrupt_does_not_wait_for_the_saving_either() -> None:
    with HeldStops() as stops:
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stops.stop()
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_a_second_sigterm_waits_too() -> None:
    with sigterm_interrupts(), HeldStops() as stops:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert stops.is_asked


def test_a_signal_that_means_nothing_to_python_is_left_alone() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with HeldStops():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_than_the_main_one_may_train() -> None:
    seen = []

    def run() -> None:
        with sigterm_interrupts(), HeldStops() as stops:
            seen.append(stops.is_asked)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False]
