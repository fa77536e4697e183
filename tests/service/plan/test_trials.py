"""Trials take turns, for as long as they were given."""

from __future__ import annotations

import pytest

from service.plan.trials import FEWEST_ROUNDS, MOST_REPEATS, time_in_turns


class Machine:
    """A clock that moves by what calls cost."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.called: list[str] = []

    def clock(self) -> float:
        return self.now_s

    def call(self, name: str, duration_s: float):
        def run() -> None:
            self.called.append(name)
            self.now_s += duration_s

        return run


def test_calls_take_what_they_take_and_first_calls_do_not_count():
    machine = Machine()
    trials = {"a": machine.call("a", 1.0), "b": machine.call("b", 3.0)}
    durations = time_in_turns(trials, 40.0, clock=machine.clock)
    assert durations == {"a": [1.0] * 10, "b": [3.0] * 10}
    assert machine.called[:4] == ["a", "b", "a", "b"]


def test_a_round_has_all_sizes_so_that_a_slow_moment_hits_each():
    machine = Machine()
    trials = {name: machine.call(name, 1.0) for name in "abc"}
    time_in_turns(trials, 30.0, clock=machine.clock)
    timed = machine.called[6:]
    rounds = ["".join(timed[begin : begin + 3]) for begin in range(0, len(timed), 3)]
    assert {"".join(sorted(each)) for each in rounds} == {"abc"}
    assert len(set(rounds)) > 1, "the order is drawn anew"


def test_quick_calls_have_more_turns():
    machine = Machine()
    trials = {"slow": machine.call("slow", 100.0), "quick": machine.call("quick", 1.0)}
    durations = time_in_turns(trials, 1_000.0, clock=machine.clock)
    assert len(durations["quick"]) == MOST_REPEATS * len(durations["slow"])


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_some_rounds_are_made_however_little_time_there_is(seconds):
    machine = Machine()
    durations = time_in_turns({"a": machine.call("a", 9.0)}, seconds, clock=machine.clock)
    assert len(durations["a"]) >= FEWEST_ROUNDS


def test_progress_grows_to_the_end():
    machine = Machine()
    told: list[float] = []
    time_in_turns({"a": machine.call("a", 1.0)}, 20.0, clock=machine.clock, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_nothing_to_time_takes_no_time():
    assert time_in_turns({}, 10.0) == {}
