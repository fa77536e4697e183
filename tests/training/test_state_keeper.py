"""A store that fails for a while ends no run; one that fails for long does."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.errors import PlaceError, StoreError
from training.state import RunState
from training.state_keeper import PATIENCE_SECONDS, StateKeeper

EVERY_SECONDS = 60.0


class Store:
    """Takes the place of `training.state.save_state`: fails as long as it is told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.steps: list[int] = []
        self.calls = 0

    def __call__(self, state: RunState, *_: object) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        self.steps.append(state.step)


class Run:
    """A keeper, its clock, and what it saves."""

    def __init__(self, place: Path | None) -> None:
        self.now = 0.0
        self.keeper = StateKeeper(place, "one run", EVERY_SECONDS, lambda: self.now)

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.keeper.save_when_due(lambda: RunState(int(self.now), {}, {}, {}))


@pytest.fixture
def store(monkeypatch) -> Store:
    store = Store()
    monkeypatch.setattr("training.state_keeper.save_state", store)
    return store


@pytest.fixture
def run() -> Run:
    return Run(Path("mine.run"))


def test_a_state_is_saved_when_its_time_has_come(store, run) -> None:
    for _ in range(5):
        run.after(31)
    assert store.steps == [62, 124]


def test_a_store_that_fails_is_asked_again_next_time_and_told_of_until_then(store, run) -> None:
    store.error = StoreError("the store does not answer")
    run.after(61)
    assert run.keeper.trouble == "the state is not saved since 61 s: the store does not answer"
    run.after(30)
    assert store.calls == 1
    store.error = None
    run.after(31)
    assert store.steps == [122]
    assert run.keeper.trouble is None


def test_a_store_that_fails_for_long_ends_the_run(store, run) -> None:
    store.error = StoreError("the store does not answer")
    run.after(PATIENCE_SECONDS)
    with pytest.raises(StoreError):
        run.after(61)


def test_a_failure_long_after_another_is_the_first_one(store, run) -> None:
    for _ in range(2):
        store.error = StoreError("the store does not answer")
        run.after(PATIENCE_SECONDS)
        store.error = None
        run.after(61)
    assert run.keeper.trouble is None


@pytest.mark.parametrize("error", [OSError("no space left"), PlaceError("forbidden")])
def test_what_does_not_pass_by_itself_ends_the_run_at_once(store, run, error) -> None:
    store.error = error
    with pytest.raises(type(error)):
        run.after(61)


def test_a_run_without_a_place_saves_nothing(store) -> None:
    run = Run(None)
    run.after(61)
    run.keeper.save(lambda: RunState(1, {}, {}, {}))
    assert store.calls == 0
    assert run.keeper.load() is None
