import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import Catalogue, Kpi, KpiKind
from kpi.store import KpiStore, StoreLimits
from model.accuracy import measure
from model.predictor import ModelIdentity
from service.realised import ledger as ledger_module
from service.realised.kept import Fate
from service.realised.ledger import AccuracyLedger
from tests.service.fakes import NOON_MS, small_catalogue
from tests.service.realised.makers import PRB, STEP_MS, USERS, batch, forecast

LEVELS = (0.1, 0.5, 0.9)
TOTAL = "Total.Bytes"


class Desk:
    """A store and its ledger; what the store takes the ledger hears of, as in ingestion."""

    def __init__(self, catalogue: Catalogue | None = None, **changes) -> None:
        catalogue = catalogue or small_catalogue()
        limits = StoreLimits(max_cells=10, history_steps=200, **changes)
        self.store = KpiStore(limits, catalogue, wall_clock=lambda: NOON_MS / 1000)
        self.ledger = AccuracyLedger(
            self.store,
            catalogue,
            most_bytes=1 << 20,
            recent_days=7,
            max_kpis=16,
            default_levels=LEVELS,
            now_ms=lambda: NOON_MS,
        )

    def push(self, *samples, **changes) -> None:
        arrived = batch(samples, **changes)
        self.store.merge(arrived)
        self.ledger.observe(arrived)

    def rows(self):
        return {
            (statement.key.model.version, row.kind.value, row.horizon): row
            for statement in self.ledger.figures().statements
            for row in statement.rows
        }

    def samples(self) -> int:
        return sum(row.total.samples for row in self.rows().values())


@pytest.fixture
def desk():
    made = Desk()
    yield made
    made.ledger.close()


def test_a_forecast_meets_its_observations(desk):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, 10.5), ("a", PRB, 2, 20.0))
    rows = desk.rows()
    assert rows["1.2.3", "percent", "1"].total.coverage == 1.0
    assert rows["1.2.3", "percent", "2-3"].total.coverage == 0.0
    figures = desk.ledger.figures()
    assert (figures.forecasts, figures.waiting) == (1, 2)
    (statement,) = figures.statements
    assert statement.since_ms == NOON_MS + STEP_MS
    assert statement.until_ms == NOON_MS + 2 * STEP_MS


def test_kpis_may_arrive_one_by_one_and_count_under_their_kind(desk):
    desk.push(("a", PRB, 0, 10.0), ("a", USERS, 0, 10.0))
    desk.ledger.keep([forecast(kpis=(PRB, USERS))])
    desk.push(("a", USERS, 1, 10.5))
    assert {kind for _, kind, _ in desk.rows()} == {"gauge"}
    desk.push(("a", PRB, 1, 10.5))
    assert {kind for _, kind, _ in desk.rows()} == {"gauge", "percent"}


def test_an_alias_is_the_kpi_itself(desk):
    desk.ledger.keep([forecast()])
    desk.push(("a", "pmPrbUsedDl", 1, 10.5))
    assert desk.samples() == 1


def test_a_stamp_off_the_grid_counts_for_the_period_that_the_store_takes_it_for(desk):
    desk.ledger.keep([forecast()])
    arrived = batch([("a", PRB, 1, 10.5)])
    arrived.period_end_ms[0] += 1000
    desk.store.merge(arrived)
    desk.ledger.observe(arrived)
    assert set(desk.rows()) == {("1.2.3", "percent", "1")}


@pytest.mark.parametrize("value", [None, 500.0, float("inf")])
def test_what_is_missing_or_impossible_is_not_scored_and_may_still_come(desk, value):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, value))
    assert desk.samples() == 0
    desk.push(("a", PRB, 1, 10.5))
    assert desk.samples() == 1


def test_a_suspect_value_is_scored_only_where_the_store_uses_it(desk):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, 10.5), suspect=[True])
    assert desk.samples() == 0
    trusting = Desk(keep_suspect=True)
    trusting.ledger.keep([forecast()])
    trusting.push(("a", PRB, 1, 10.5), suspect=[True])
    assert trusting.samples() == 1
    trusting.ledger.close()


def test_a_revised_value_does_not_count_again(desk):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, 10.5))
    before = desk.rows()
    desk.push(("a", PRB, 1, 99.0))
    desk.push(("a", PRB, 1, 10.5))
    assert desk.rows() == before


def test_of_equal_samples_in_a_batch_the_last_counts(desk):
    desk.ledger.keep([forecast()])
    desk.push(("a", PRB, 1, 99.0), ("a", "rru.prbtotdl", 1, 10.5))
    (row,) = desk.rows().values()
    assert (row.total.samples, row.total.covered) == (1, 1)


def test_what_came_while_the_model_worked_is_scored_too(desk):
    desk.push(("a", PRB, 0, 10.0), ("a", PRB, 1, 10.5))
    desk.ledger.keep([forecast()])
    assert desk.samples() == 1


def test_a_running_total_is_scored_by_its_amounts():
    entry = Kpi(TOTAL, "kbit", KpiKind.VOLUME, 0.0, cumulative=True)
    desk = Desk(Catalogue("test", {TOTAL: entry}, (), {TOTAL.casefold(): TOTAL}))
    desk.push(("a", TOTAL, -1, 100.0), ("a", TOTAL, 0, 110.0))
    desk.ledger.keep([forecast(kpis=(TOTAL,))])
    desk.push(("a", TOTAL, 2, 140.5))
    assert desk.samples() == 0  # the reading before is not known yet
    desk.push(("a", TOTAL, 1, 120.5))
    rows = desk.rows()
    assert rows["1.2.3", "volume", "1"].total.covered == 1  # 10.5
    assert rows["1.2.3", "volume", "2-3"].total.covered == 0  # 20.0
    desk.ledger.close()


def test_a_canary_stands_beside_its_rival(desk):
    canary = ModelIdentity("fake", "2.0.0", "sha256:beef")
    desk.ledger.keep([forecast()])
    desk.ledger.keep([forecast(model=canary, value=50.0)])
    desk.push(("a", PRB, 1, 10.5))
    rows = desk.rows()
    assert rows["1.2.3", "percent", "1"].total.coverage == 1.0
    assert rows["2.0.0", "percent", "1"].total.coverage == 0.0


def test_too_many_sets_of_levels_are_refused_and_counted(desk):
    for number in range(5):
        desk.ledger.keep([forecast(levels=(0.1 + number / 100, 0.9))])
    assert desk.ledger.figures().lost[Fate.REFUSED] == 2 * 4


def test_without_memory_nothing_is_kept(desk):
    poor = AccuracyLedger(
        desk.store,
        small_catalogue(),
        most_bytes=0,
        recent_days=7,
        max_kpis=16,
        default_levels=LEVELS,
        now_ms=lambda: NOON_MS,
    )
    poor.keep([forecast()])
    assert poor.figures().forecasts == 0
    poor.close()


def test_a_made_up_kpi_takes_no_memory(desk):
    desk.ledger.keep([forecast()])
    desk.push(*[("a", f"made.up.{number}", 1, 1.0) for number in range(100)])
    desk.ledger.figures()
    assert set(desk.ledger._kpis) == {PRB}


def test_forecasts_that_come_faster_than_they_are_kept_are_refused(desk, monkeypatch):
    monkeypatch.setattr(ledger_module, "_MOST_WAITING_FORECASTS", 2)
    gate = threading.Event()
    desk.ledger._thread.submit(gate.wait)
    for number in range(4):
        desk.ledger.keep([forecast(f"c{number}")])
    gate.set()
    figures = desk.ledger.figures()
    assert figures.forecasts == 2
    assert figures.lost[Fate.REFUSED] == 2 * 4
    desk.ledger.keep([forecast("d")])
    assert desk.ledger.figures().forecasts == 3


def test_ingestion_waits_where_very_much_waits_for_the_ledger(desk, monkeypatch):
    monkeypatch.setattr(ledger_module, "_MOST_WAITING_SAMPLES", 1)
    desk.ledger.keep([forecast()])
    desk.ledger.figures()
    desk.push(("a", PRB, 1, 10.5), ("a", PRB, 2, 10.5))
    assert desk.ledger._waiting_samples == 0  # done by the time that it is acknowledged
    assert desk.samples() == 2


def test_a_failure_of_the_ledger_is_logged_and_stops_nobody(desk, monkeypatch, caplog):
    desk.ledger.keep([forecast()])
    desk.ledger.figures()
    with monkeypatch.context() as patch:
        patch.setattr(desk.ledger, "_score", lambda _: 1 / 0)
        desk.push(("a", PRB, 1, 10.5))
        desk.ledger.figures()
    assert "accuracy_failed" in caplog.text
    desk.push(("a", PRB, 2, 10.5))
    assert desk.samples() == 1


def test_a_closed_ledger_hears_nothing_and_still_answers(desk):
    desk.ledger.keep([forecast()])
    desk.ledger.close()
    desk.push(("a", PRB, 1, 10.5))
    desk.ledger.keep([forecast("b")])
    assert desk.ledger.figures().forecasts == 1


observed = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([PRB, USERS]), st.integers(1, 8)),
    unique=True,
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=50)
@given(observed, st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True), st.data())
def test_totals_are_those_of_a_direct_computation_in_any_order_with_any_repeats(
    samples, begins, data
):
    rng = np.random.default_rng(len(samples))
    value_of = {each: float(np.float32(rng.uniform(0, 30))) for each in samples}
    forecasts = [
        forecast(
            cell, kpis=(PRB, USERS), begin=begin, values=np.sort(rng.uniform(0, 30, (2, 4, 3)))
        )
        for cell in "ab"
        for begin in begins
    ]
    arrivals = data.draw(st.permutations(samples + samples[::2]))
    desk = Desk()
    desk.ledger.keep(forecasts)
    desk.ledger.figures()
    while arrivals:
        size = data.draw(st.integers(1, len(arrivals)))
        desk.push(*[(*each, value_of[each]) for each in arrivals[:size]])
        arrivals = arrivals[size:]
    found = desk.rows()
    desk.ledger.close()
    expected: dict[tuple[str, str], list[tuple[np.ndarray, float]]] = {}
    for made in forecasts:
        begin = (made.start_ms - NOON_MS) // STEP_MS
        for (cell, kpi, period), value in value_of.items():
            step = period - begin
            if cell == made.cell and 1 <= step <= 4:
                kind = "percent" if kpi == PRB else "gauge"
                bucket = {1: "1", 2: "2-3", 3: "2-3", 4: "4-7"}[step]
                quantiles = made.values[made.kpis.index(kpi), step - 1]
                expected.setdefault((kind, bucket), []).append((quantiles, value))
    assert {key[1:] for key in found} == expected.keys()
    for (_, *key), row in found.items():
        quantiles, targets = zip(*expected[tuple(key)], strict=True)
        direct = measure(np.stack(quantiles)[:, None], np.array(targets)[:, None], LEVELS)
        assert row.total.samples == direct.targets
        assert row.total.covered == direct.inside
        assert row.total.wql == pytest.approx(direct.wql)
        assert row.recent == row.total
