"""What a body holds is told from its length, and rather too little than too much."""

from __future__ import annotations

import numpy as np
import pytest

from service.body_work import BodyWork
from tests.service.fakes import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def work(clock):
    return BodyWork(clock)


def test_nothing_is_told_before_some_have_been_read(work):
    for _ in range(15):
        work.observe(4_000, 700)
    assert work.least_samples(4_000) is None
    work.observe(4_000, 700)
    assert work.least_samples(4_000) == 640
    assert work.least_samples(0) is None


def test_what_is_told_is_seldom_more_than_there_is_and_not_far_below(work):
    rng = np.random.default_rng(0)
    held = rng.normal(700, 20, 500).astype(int)
    told = np.zeros(len(held))
    for place, samples in enumerate(held):
        told[place] = work.least_samples(4_000) or 0
        work.observe(4_000, int(samples))
    assert (told > held)[50:].mean() < 0.08
    assert told[50:].min() > 500


def test_bodies_of_nearly_one_length_are_told_the_same(work):
    for _ in range(100):
        work.observe(4_000, 700)
    assert len({work.least_samples(size) for size in range(3_950, 4_051)}) == 1


def test_what_is_old_is_forgotten(work, clock):
    for _ in range(100):
        work.observe(4_000, 700)
    clock.advance(120)
    work.observe(4_000, 700)
    assert work.least_samples(4_000) is None
