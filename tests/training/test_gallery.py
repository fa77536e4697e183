"""The gallery: figures mean what their names say, and the page shows both kinds of cells."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.window import KpiWindow
from training.gallery import GalleryOptions, gallery_page
from training.gallery.cells import (
    Span,
    choose_span,
    cut_real,
    draw_cells,
    draw_family,
    regime_of,
)
from training.gallery.drawing import PANEL_WIDTH, panel, rank_strip
from training.gallery.figures import figure_table, outside_ratio, ranks
from training.gallery.page import shown_span, shown_step
from training.gallery.statistics import STATISTICS, Series, autocorrelation, by_day, describe
from training.synthetic.family import MIXTURE
from training.synthetic.timing import TRAINING_STEPS_MS, Regime

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00Z
SMALL = GalleryOptions(cells=2, families=1, series=4)
SECONDS = replace(SMALL, regimes=(Regime.SECOND,))
HOUR_SPAN = Span(Regime.HOUR, HOUR_MS, 100)
HOURS = replace(SMALL, regimes=(Regime.HOUR,))


def hourly(values, start_ms=MONDAY_MS):
    array = np.atleast_2d(np.asarray(values, dtype=np.float32))
    return Series(array, np.full(len(array), start_ms, dtype=np.int64), HOUR_MS)


def figure(name, series):
    return float(describe(series)[name][0])


@pytest.fixture(scope="module")
def small_page():
    return gallery_page([], SMALL)


# Figures


def test_a_repeated_day_correlates_fully_with_the_day_before():
    day = np.random.default_rng(0).random(24)
    series = hourly(np.tile(day, 28))
    assert figure("autocorrelation, a day", series) == pytest.approx(1)
    assert figure("autocorrelation, a week", series) == pytest.approx(1)
    assert figure("day to day change, log2", series) == pytest.approx(0, abs=1e-6)
    assert figure("weekday effect over mean", series) == pytest.approx(0, abs=1e-6)


def test_a_lag_that_is_no_whole_number_of_steps_has_no_correlation():
    series = Series(np.random.default_rng(0).random((1, 200)).astype("f4"), np.zeros(1, "i8"), 7000)
    assert np.isnan(figure("autocorrelation, an hour", series))


def test_gaps_do_not_change_the_correlation_of_what_is_left():
    course = np.sin(np.arange(400) / 5)
    course[100:130] = np.nan
    assert autocorrelation(course[None], 1)[0] == pytest.approx(np.cos(1 / 5), abs=0.02)


def test_days_begin_at_midnight_of_their_clock():
    values = np.tile(np.arange(24.0), 4)[5:]
    series = hourly(values, MONDAY_MS + 5 * HOUR_MS)
    days = by_day(series, series.values.astype(float))
    assert days is not None
    assert days.shape == (1, 2, 24)
    np.testing.assert_array_equal(days[0], np.tile(np.arange(24.0), (2, 1)))


def test_double_load_at_weekends_is_one_in_log2():
    weekday = np.arange(28) % 7
    values = np.repeat(np.where(weekday >= 5, 2.0, 1.0), 24)
    assert figure("weekend over week, log2", hourly(values)) == pytest.approx(1, abs=1e-6)


def test_a_spike_is_counted_once_and_a_plateau_not_at_all():
    values = np.ones(200)
    values[50] = 30.0
    assert figure("spikes, share of samples", hourly(values)) == pytest.approx(1 / 194)
    plateau = np.ones(200)
    plateau[80:120] = 30.0
    assert figure("spikes, share of samples", hourly(plateau)) == 0


def test_zeros_and_gaps_are_told_apart():
    values = np.ones(100)
    values[:20] = 0
    values[60:70] = np.nan
    assert figure("zeros, share of samples", hourly(values)) == pytest.approx(20 / 90)
    assert figure("missing, share of samples", hourly(values)) == pytest.approx(0.1)


def test_white_noise_steps_forget_and_walks_do_not_return():
    rng = np.random.default_rng(0)
    white = np.exp(0.1 * rng.normal(size=4000))
    walk = np.exp(0.01 * rng.normal(size=4000).cumsum())
    assert figure("relative steps, memory", hourly(white)) == pytest.approx(-0.5, abs=0.05)
    assert figure("relative steps, memory", hourly(walk)) == pytest.approx(0, abs=0.05)
    assert figure("relative steps, tail", hourly(white)) == pytest.approx(3.8, abs=0.3)


def test_growth_is_the_last_third_over_the_first():
    assert figure("growth, last third over first, log2", hourly([1.0] * 30 + [4.0] * 60)) == 2


@settings(max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.floats(1e-2, 1e4),
    st.sampled_from([1000, 120_000, HOUR_MS, DAY_MS, 7 * DAY_MS]),
)
def test_no_figure_depends_on_the_unit(seed, factor, step_ms):
    rng = np.random.default_rng(seed)
    values = rng.gamma(1.0, size=(2, 200)) * (rng.random((2, 200)) < 0.8)
    values[rng.random((2, 200)) < 0.1] = np.nan
    starts = rng.integers(0, 10**12, 2) // step_ms * step_ms
    one = describe(Series(values.astype("f4"), starts, step_ms))
    other = describe(Series((values * factor).astype("f4"), starts, step_ms))
    for name in STATISTICS:
        np.testing.assert_allclose(one[name], other[name], rtol=2e-3, atol=2e-3, err_msg=name)


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
@pytest.mark.parametrize("length", [1, 2, 6, 24, 700])
def test_constants_gaps_and_short_series_give_figures_without_warnings(value, length):
    for name, values in describe(hourly(np.full(length, value))).items():
        assert values.shape == (1,), name
        assert not np.isinf(values).any(), name


# Ranks


def test_ranks_lie_between_below_all_and_above_all():
    synthetic = np.array([1.0, 2.0, 3.0, np.nan])
    np.testing.assert_allclose(ranks(synthetic, np.array([0.0, 2.0, 9.0, np.nan])), [0, 0.5, 1])
    assert outside_ratio(synthetic, np.array([0.0, 2.0])) == 0.5


def test_ranks_without_synthetic_figures_are_none():
    assert len(ranks(np.array([np.nan]), np.array([1.0]))) == 0
    assert np.isnan(outside_ratio(np.array([np.nan]), np.array([1.0])))


# Cells


def test_every_trained_step_belongs_to_its_regime():
    for regime, steps in TRAINING_STEPS_MS.items():
        assert {regime_of(step) for step in steps} == {regime}
    assert regime_of(100) is Regime.SECOND


def test_the_span_follows_the_data_and_its_length(make_window):
    assert choose_span(Regime.HOUR, [make_window(steps=400)]) == Span(Regime.HOUR, HOUR_MS, 400)
    assert choose_span(Regime.MINUTE, [make_window()]) == choose_span(Regime.MINUTE, [])


def test_drawn_cells_have_the_span_and_never_mostly_gaps():
    span = Span(Regime.SECOND, 1000, 96)
    cells = draw_cells(np.random.default_rng(1), span, 10)
    assert len(cells.series.values) >= 10
    assert cells.series.values.shape[1] == 96
    assert np.isnan(cells.series.values).mean(axis=1).max() <= 0.5
    assert len(cells.kinds) == len(cells.series.values)
    assert all(len(group) > 1 for group in cells.groups)


def test_a_step_that_is_never_drawn_is_named():
    with pytest.raises(RuntimeError, match="7000 ms"):
        draw_cells(np.random.default_rng(0), Span(Regime.SECOND, 7000, 64), 1)


@pytest.mark.parametrize("regime", Regime)
def test_every_family_of_a_regime_can_be_drawn_alone(regime):
    span = choose_span(regime, [])
    for family in MIXTURE[regime]:
        drawn = draw_family(np.random.default_rng(0), span, family, 2)
        assert drawn.shape == (2, span.steps)
        assert np.isfinite(drawn).all()


def test_real_cells_are_cut_to_the_span_on_their_own_clock():
    values = np.arange(2 * 400, dtype=np.float32).reshape(2, 400)
    values[1] = np.nan
    window = KpiWindow("a", ("load", "lost"), MONDAY_MS, HOUR_MS, values, "Asia/Tokyo")
    real = cut_real(np.random.default_rng(0), [window], HOUR_SPAN)
    assert real.kpis == ["load"] * 4
    np.testing.assert_array_equal(real.series.values[:, 0], [0, 100, 200, 300])
    assert real.series.start_ms[0] == MONDAY_MS + 9 * HOUR_MS
    assert real.groups == []


def test_real_cells_of_another_regime_are_left_out(make_window):
    real = cut_real(np.random.default_rng(0), [make_window()], Span(Regime.SECOND, 1000, 64))
    assert real.series.values.shape == (0, 64)


def test_each_piece_has_the_clock_of_its_own_season():
    values = np.ones((1, 8000), dtype=np.float32)
    window = KpiWindow("a", ("load",), MONDAY_MS, HOUR_MS, values, "Europe/Madrid")
    real = cut_real(np.random.default_rng(0), [window], HOUR_SPAN)
    starts = MONDAY_MS + np.linspace(0, 7900, 4).astype(int) * HOUR_MS
    ahead = (real.series.start_ms - starts) // HOUR_MS
    assert ahead.tolist() == [1, 2, 2, 1]


def test_cells_that_are_not_shown_are_counted_with_the_reason(make_window):
    empty = make_window(1)
    windows = [
        make_window(0),
        make_window(2, steps=99),
        replace(make_window(3), step_ms=HOUR_MS // 4),
        replace(empty, values=np.full_like(empty.values, np.nan)),
    ]
    real = cut_real(np.random.default_rng(0), windows, HOUR_SPAN)
    assert real.left_out == {
        "shorter than 100 samples": 1,
        "of another step": 1,
        "mostly without values": 1,
    }


def test_cells_of_one_step_only_stand_side_by_side(make_window):
    steps_ms = (HOUR_MS // 4, HOUR_MS // 4, HOUR_MS // 2)
    windows = [replace(make_window(i), step_ms=step) for i, step in enumerate(steps_ms)]
    real = cut_real(np.random.default_rng(0), windows, Span(Regime.HOUR, HOUR_MS, 400))
    assert real.series.step_ms == HOUR_MS // 4
    assert len(real.kpis) == 2
    assert real.left_out == {"of another step": 1}


def test_a_network_of_very_many_cells_is_cut_short(make_window, monkeypatch):
    monkeypatch.setattr("training.gallery.cells.MOST_REAL_SERIES", 8)
    windows = [make_window(number) for number in range(5)]
    real = cut_real(np.random.default_rng(0), windows, HOUR_SPAN)
    assert len(real.kpis) == 8
    assert real.left_out == {"beyond as many as a page shows": 3}


# Drawing


def test_a_panel_keeps_a_single_high_sample_of_many():
    values = np.zeros(20_000)
    values[12_345] = 1.0
    drawn = panel(values, 1.0, "#000", "one")
    assert re.search(r"[ML]\d+ 0(?!\d)", drawn)
    assert len(drawn) < 12 * 2 * PANEL_WIDTH


def test_a_gap_lifts_the_pen():
    drawn = panel(np.array([1.0, 1.0, np.nan, 1.0]), 2.0, "#000", "gap")
    assert drawn.count("M") == 2


def test_names_are_escaped():
    assert "<b>" not in panel(np.ones(3), 1.0, "#000", "<b>")
    assert "<b>" not in rank_strip([("<b>", [0.5])])


# The page


def test_the_page_has_every_regime_and_family(small_page):
    for title in ("Hour-like", "Minute-like", "Second-like", "Day and week"):
        assert f"<h2>{title}" in small_page
    for families in MIXTURE.values():
        assert all(f"<p>{family} " in small_page for family in families)


def test_the_same_seed_gives_the_same_page_and_another_seed_another():
    page = gallery_page([], SECONDS)
    assert gallery_page([], SECONDS) == page
    assert gallery_page([], replace(SECONDS, seed=1)) != page


def test_a_section_does_not_depend_on_which_others_there_are(small_page):
    alone = gallery_page([], SECONDS)
    assert alone[alone.index("<h2>") : alone.rindex("</table>")] in small_page


def test_a_page_without_data_says_that_all_is_synthetic_and_loads_nothing(small_page):
    assert "All of these cells are synthetic." in small_page
    assert "real" not in re.sub(r"<style>.*?</style>", "", small_page, flags=re.S)
    assert not re.search(r"<script|<link|https?://|src=", small_page)


def test_real_cells_stand_beside_synthetic_ones(make_window):
    windows = [make_window(seed, kpis=("load", "users")) for seed in range(2)]
    told = []
    page = gallery_page(windows, HOURS, lambda *state: told.append(state))
    assert "real: load" in page
    assert "real: users" in page
    assert "<th>outside</th>" in page
    assert {total for _, _, total in told} == {SMALL.series}
    assert max(done for _, done, _ in told) == SMALL.series


def test_the_page_says_what_it_leaves_out_and_at_which_step_recorded_cells_are(make_window):
    untrained = replace(make_window(), step_ms=HOUR_MS // 3)
    page = gallery_page([untrained, make_window(1, steps=70)], HOURS)
    assert "a sample every 15 min</h2>" in page
    assert "the recorded ones have a sample every 20 min</p>" in page
    assert "Recorded cells not shown: 1 shorter than 400 samples.</p>" in page


def test_figures_are_written_without_powers_of_ten():
    busy = hourly(np.ones((3, 2690)))
    busy.values[:, 0] = 0
    table = figure_table(busy, cut_real(np.random.default_rng(0), [], HOUR_SPAN))
    assert "<td>2,689</td>" in table
    assert "e+" not in table


def test_figures_outside_are_in_bold(make_window):
    rng = np.random.default_rng(0)
    synthetic = hourly(rng.gamma(4.0, size=(40, 400)))
    windows = [make_window(seed) for seed in range(4)]
    real = cut_real(rng, windows, Span(Regime.HOUR, HOUR_MS, 400))
    table = figure_table(synthetic, real)
    assert '<tr class="outside"><td>autocorrelation, a day</td>' in table


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="series 2"):
        GalleryOptions(cells=6, series=2)


def test_steps_and_spans_are_told_as_people_say_them():
    assert [shown_step(ms) for ms in (500, 1000, 120_000, HOUR_MS, 7 * DAY_MS)] == [
        "500 ms",
        "1 s",
        "2 min",
        "1 h",
        "7 d",
    ]
    assert [shown_span(ms) for ms in (90_000, 300_000, 28 * DAY_MS)] == [
        "90 seconds",
        "5 minutes",
        "28 days",
    ]
