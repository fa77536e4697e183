"""A backtest in words says what the numbers say."""

from __future__ import annotations

import numpy as np
import pytest

from model.accuracy import Accuracy
from training.backtest import BacktestConfig, BacktestResult, Score
from training.report.words import band_sentence, band_verdict, gain_words, headline, verdicts

CONFIG = BacktestConfig(horizon=24)


def line(model: str, error: float, kpi: str = "load", coverage: float = 0.8) -> Score:
    accuracy = Accuracy(100, 100.0, np.array([error]), error, 0.0, 0, round(100 * coverage), 50.0)
    return Score(model, kpi, 1, 24, accuracy)


def result(*lines: Score, step_seconds: tuple[float, ...] = (3600,)) -> BacktestResult:
    return BacktestResult(CONFIG, lines, [], 1, 1, step_seconds)


def test_better_than_the_best_of_the_others():
    text = headline(result(line("own", 9.0), line("good", 10.0), line("bad", 30.0)))
    assert text == (
        "load: up to 24 hours ahead, own was off by 9% of the mean value on average, with 10% less "
        "error than the best of the others (good)."
    )


def test_worse_than_the_best_of_the_others():
    found = result(line("own", 10.0), line("good", 8.0))
    assert "good was better, with 20% less error." in headline(found)
    assert gain_words(verdicts(found)[0]) == "25% more than good"


def test_as_good_as_the_best_of_the_others():
    assert "about as good as" in headline(result(line("own", 10.0), line("good", 10.05)))


def test_alone():
    found = result(line("own", 10.0), step_seconds=(900,))
    assert headline(found).endswith(
        "24 quarter-hours ahead, own was off by 10% of the mean value on average."
    )
    assert gain_words(verdicts(found)[0]) == "no rival"


def test_a_rival_without_error():
    found = result(line("own", 10.0), line("oracle", 0.0))
    assert "oracle made no error at all" in headline(found)
    assert gain_words(verdicts(found)[0]) == "-"


def test_many_kpis_are_counted():
    lines = [line("own", 8.0, f"kpi{i}") for i in range(6)]
    lines += [line("good", 10.0, f"kpi{i}") for i in range(3)]
    lines += [line("good", 8.0, "kpi3"), line("good", 4.0, "kpi4"), line("good", 4.0, "kpi5")]
    assert headline(result(*lines)) == (
        "Up to 24 hours ahead, own was the best forecaster of 3 of 6 KPIs, about level with the "
        "best on 1 more; others did better on kpi4 and kpi5."
    )


def test_kpis_that_cannot_be_judged_are_counted_too():
    lines = [line("own", 8.0, f"kpi{i}") for i in range(4)]
    lines += [line("good", 10.0, f"kpi{i}") for i in range(3)] + [line("good", 0.0, "kpi3")]
    assert headline(result(*lines)).endswith(
        "the best forecaster of 3 of 3 KPIs; 1 KPI left out, where all was zero or missing or "
        "others made no error at all."
    )


def test_many_kpis_without_a_rival_have_no_best():
    text = headline(result(*(line("own", 8.0, f"kpi{i}") for i in range(4))))
    assert text == "Up to 24 hours ahead, own could be compared with nobody on any KPI."


def test_of_very_many_kpis_a_few_are_named():
    lines = [
        line(name, e, f"kpi{i:03}") for name, e in (("own", 9), ("good", 1)) for i in range(99)
    ]
    assert headline(result(*lines)).endswith(
        "others did better on kpi000, kpi001, kpi002, kpi003, kpi004 and 94 more."
    )


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (0.79, "of 100 hours the 80 % band held 79: it keeps its word"),
        (0.75, "held 75: slightly too narrow"),
        (0.6, "held 60: clearly too narrow"),
        (0.86, "held 86: slightly wider"),
        (0.99, "held 99: clearly wider"),
        (float("nan"), "no value came"),
    ],
)
def test_the_band_is_judged(coverage, words):
    assert words in band_verdict(coverage, 0.8, "hours")


def test_without_calibration_is_told_and_is_no_rival():
    lines = (line("own", 9.0), line("own (uncalibrated)", 8.0, coverage=0.7), line("good", 10.0))
    (verdict,) = verdicts(result(*lines))
    assert verdict.rival is not None
    assert verdict.rival.model == "good"
    assert band_sentence(verdict, 0.8, "hours") == (
        "Of 100 hours the 80 % band held 80: it keeps its word; without calibration it held 70."
    )


@pytest.mark.parametrize(
    ("step_seconds", "words"),
    [
        ((1,), "24 seconds"),
        ((120,), "24 steps of 2 minutes"),
        ((0.25,), "24 steps of 0.25 seconds"),
        ((604_800,), "24 weeks"),
        ((60, 3600), "24 steps ahead"),
    ],
)
def test_steps_have_names(step_seconds, words):
    assert words in headline(result(line("own", 1.0), step_seconds=step_seconds))
