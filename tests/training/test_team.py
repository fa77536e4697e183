"""The division of a step among processes loses nothing and doubles nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.forecaster import Forecaster
from training.errors import DataError, PeerError
from training.exit_status import BAD_INPUT, FAILED, STOPPED, status_of
from training.loss import batch_loss, lesson_loss, make_lesson
from training.source import SyntheticSource
from training.synthetic import BatchSpec
from training.team import ALONE, Team, joined_team

counts = st.integers(1, 12)


@given(size=counts, parts=counts, windows=st.integers(1, 9))
def test_every_window_of_every_batch_is_learnt_from_once(size, parts, windows):
    taken: Counter[tuple[int, int]] = Counter()
    for rank in range(size):
        share = Team(rank, size).share(parts)
        rows = range(*share.rows(windows))
        taken.update((part, row) for part in share.parts for row in rows)
    assert taken == Counter({(p, row): 1 for p in range(parts) for row in range(windows)})


@given(size=counts, parts=counts)
def test_no_process_draws_batches_in_vain_where_there_are_enough_for_all(size, parts):
    share = Team(0, size).share(parts * size)
    assert share.slices == 1
    assert len(share.parts) == parts


def test_losses_of_slices_add_up_to_that_of_the_batch(tiny_config):
    torch.manual_seed(0)
    forecaster = Forecaster(tiny_config)
    spec = BatchSpec(
        series=7,
        max_context_steps=tiny_config.context_steps,
        max_horizon=tiny_config.max_horizon,
        patch=tiny_config.patch,
    )
    source = SyntheticSource(tiny_config, spec)
    batch = next(
        found
        for seed in range(100)
        if (found := source.batch(np.random.default_rng(seed))).target.shape[0] > 2
    )
    whole = make_lesson(batch, tiny_config)
    parts = [make_lesson(batch.slice(*rows), tiny_config) for rows in ((0, 1), (1, 99))]
    assert sum(int(part.observed) for part in parts) == int(whole.observed)
    total = sum(float(lesson_loss(forecaster, p, whole.observed).detach()) for p in parts)
    assert total == pytest.approx(float(batch_loss(forecaster, batch).detach()), rel=1e-5)


class Store:
    """A store of torchrun's with one word in it, or none."""

    def __init__(self, word: str = "") -> None:
        self.word = word

    def check(self, _keys: list[str]) -> bool:
        return bool(self.word)

    def get(self, _key: str) -> bytes:
        return self.word.encode()


def gone(_) -> None:
    raise RuntimeError("[gloo/pair.cc:553] Connection closed by peer. Check the logs.")


@pytest.mark.parametrize(
    ("word", "message", "status"),
    [
        ("", r"process 0 of 2 lost another one.*\(Connection closed by peer\)$", FAILED),
        (
            '{"rank": 1, "reason": "no cells", "status": 42}',
            "process 1 of 2 failed: no cells",
            BAD_INPUT,
        ),
    ],
)
def test_a_process_that_goes_is_told_of_by_its_own_word_where_it_left_one(
    monkeypatch, word, message, status
):
    monkeypatch.setattr("torch.distributed.all_reduce", gone)
    with pytest.raises(PeerError, match=message) as told:
        Team(0, 2, Store(word)).add_up(torch.ones(1))
    assert told.value.status == status


def test_without_torchrun_a_process_is_alone_and_nothing_is_waited_for(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined_team() as team:
        assert team is ALONE
        assert team.leads
        assert team.tell("word") == "word"
        assert team.add_gradients({}, 0.5, 1.0) == (0.5, 1.0)
        with pytest.raises(DataError, match="bad"), team.together():
            raise DataError("bad")


def test_an_environment_that_is_not_whole_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="RANK"), joined_team():
        pass


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DataError("short"), BAD_INPUT),
        (ValueError("steps"), BAD_INPUT),
        (OSError(28, "disk full"), FAILED),
        (PeerError("gone", 7), 7),
        (KeyboardInterrupt(), STOPPED),
    ],
)
def test_only_what_no_repetition_mends_has_the_status_that_says_so(error, status):
    assert status_of(error) == status
