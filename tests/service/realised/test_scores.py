import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import KpiKind
from model.accuracy import measure
from model.calibration import step_buckets
from model.predictor import ModelIdentity, Rung
from service.realised.scores import BUCKETS, SLOTS, AccountKey, Scores

LEVELS = (0.1, 0.5, 0.9)
HOUR_MS = 3_600_000

Sample = tuple[float, tuple[float, float, float], int, int, int]


def add(scores: Scores, samples: list[Sample]) -> None:
    if samples:
        target, quantiles, kind, step, end = zip(*samples, strict=True)
        scores.add(
            np.array(target),
            np.array(quantiles, dtype=np.float32),
            LEVELS,
            np.array(kind),
            np.array(step),
            np.array(end, dtype=np.int64) * HOUR_MS,
        )


def figures(scores: Scores) -> dict[tuple[str, str], tuple[float, ...]]:
    return {
        (row.kind, row.horizon): tuple(
            number
            for score in (row.recent, row.total)
            for number in (
                score.samples,
                score.absolute_target,
                score.quantile_loss,
                score.covered,
                score.width,
            )
        )
        for row in scores.rows()
    }


number = st.floats(-100, 100, width=32)
sample = st.tuples(
    number,
    st.tuples(number, number, number).map(lambda q: tuple(sorted(q))),
    st.integers(0, len(KpiKind) - 1),
    st.integers(1, 9),
    st.integers(1, 60),
)


@settings(deadline=None)
@given(st.lists(sample, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_neither_the_order_of_arrival_nor_the_parts_matter(samples, random):
    at_once, by_one = Scores(HOUR_MS), Scores(HOUR_MS)
    add(at_once, samples)
    shuffled = list(samples)
    random.shuffle(shuffled)
    for each in shuffled:
        add(by_one, [each])
        if random.random() < 0.3:
            list(by_one.rows())
    expected, found = figures(at_once), figures(by_one)
    assert found.keys() == expected.keys()
    for key, sums in expected.items():
        assert found[key] == pytest.approx(sums, rel=1e-9, abs=1e-6)
    assert by_one.recent_since_ms == at_once.recent_since_ms


@settings(deadline=None)
@given(st.lists(sample, min_size=1, max_size=40))
def test_scores_are_those_of_the_backtest_measured_directly(samples):
    scores = Scores(HOUR_MS)
    add(scores, samples)
    first_steps = step_buckets(9)
    newest = max(end for *_, end in samples)
    for row in scores.rows():
        mine = [
            s
            for s in samples
            if s[2] == row.kind.number
            and max(b for b in first_steps if b <= s[3]) == row.first_step
        ]
        recent = [s for s in mine if s[4] > newest - SLOTS]
        for score, part in ((row.total, mine), (row.recent, recent)):
            assert score.samples == len(part)
            if part:
                expected = measure(
                    np.array([[s[1]] for s in part], dtype=np.float32),
                    np.array([[s[0]] for s in part]),
                    LEVELS,
                )
                assert score.coverage == pytest.approx(expected.coverage)
                if expected.absolute_target > 0:
                    assert score.wql == pytest.approx(expected.wql)
                    assert score.relative_width == pytest.approx(expected.relative_width)


def test_the_recent_past_forgets_what_the_total_remembers():
    scores = Scores(HOUR_MS)
    add(scores, [(1.0, (0.0, 1.0, 2.0), 0, 1, 1)])
    add(scores, [(9.0, (0.0, 1.0, 2.0), 0, 1, 1 + SLOTS)])
    (row,) = scores.rows()
    assert (row.recent.samples, row.recent.coverage) == (1, 0.0)
    assert (row.total.samples, row.total.coverage) == (2, 0.5)
    add(scores, [(1.0, (0.0, 1.0, 2.0), 0, 1, 1)])  # late, and older than the recent past
    (row,) = scores.rows()
    assert (row.recent.samples, row.total.samples) == (1, 3)


def test_a_jump_in_time_empties_the_recent_past_at_once():
    scores = Scores(HOUR_MS)
    add(scores, [(1.0, (0.0, 1.0, 2.0), 0, 1, end) for end in range(1, SLOTS + 1)])
    add(scores, [(1.0, (0.0, 1.0, 2.0), 0, 1, 100_000)])
    (row,) = scores.rows()
    assert row.recent.samples == 1
    assert scores.recent_since_ms == (100_000 - SLOTS) * HOUR_MS


def test_targets_of_zero_have_no_relative_score():
    scores = Scores(HOUR_MS)
    add(scores, [(0.0, (0.0, 0.0, 0.0), 0, 1, 1)])
    (row,) = scores.rows()
    assert row.total.wql is None
    assert row.total.relative_width is None
    assert row.total.coverage == 1.0


def test_buckets_are_named_by_their_steps_and_the_last_has_no_end():
    scores = Scores(HOUR_MS)
    add(scores, [(1.0, (0.0, 1.0, 2.0), 0, step, 1) for step in (1, 2, 3, 7, 8, 70_000)])
    named = {row.horizon: row.total.samples for row in scores.rows()}
    assert named == {"1": 1, "2-3": 2, "4-7": 1, "8-15": 1, f"{1 << (BUCKETS - 1)}+": 1}


def test_what_is_put_aside_is_summed_before_there_is_much_of_it():
    scores = Scores(HOUR_MS)
    for _ in range(3):
        add(scores, [(1.0, (0.0, 1.0, 2.0), 0, 1, 1)] * 2000)
    assert sum(len(part.targets) for part in scores._unsummed) == 0
    (row,) = scores.rows()
    assert row.total.samples == 6000


def test_a_single_level_has_no_nominal_coverage():
    model = ModelIdentity("m", "1", "")
    assert AccountKey(model, Rung.FULL, (0.5,)).nominal_coverage is None
    assert AccountKey(model, Rung.FULL, LEVELS).nominal_coverage == pytest.approx(0.8)
