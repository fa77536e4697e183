"""A backtest in plain words: how far off, better than whom, and whether the band keeps its word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from training.backtest import BacktestResult, Score

UNCALIBRATED = " (uncalibrated)"
STEP_WORDS = {
    1: "seconds",
    60: "minutes",
    900: "quarter-hours",
    3600: "hours",
    86_400: "days",
    604_800: "weeks",
}
HONEST_GAP = 0.03
SLIGHT_GAP = 0.07
EVEN_RATIO = 0.01
NAMED_KPIS = 3
LISTED_KPIS = 5


@dataclass(frozen=True)
class Verdict:
    """How one KPI went.

    Attributes:
        kpi: Its name.
        own: Score of the model under test over the whole horizon.
        rival: The best of the others, None where there is none.
        plain: The same model without its calibration, where it was tested too.
    """

    kpi: str
    own: Score
    rival: Score | None
    plain: Score | None

    @property
    def gain(self) -> float:
        """How much less error than the best rival, as a share of the rival's; NaN if unknown."""
        if self.rival is None or not self.rival.accuracy.wql > 0:
            return math.nan
        return 1 - self.own.accuracy.wql / self.rival.accuracy.wql


def verdicts(result: BacktestResult) -> list[Verdict]:
    """One a KPI."""
    found = []
    for kpi in result.kpis:
        lines = {line.model: line for line in result.overall() if line.kpi == kpi}  # best first
        own = lines.pop(result.model)
        plain = lines.pop(result.model + UNCALIBRATED, None)
        found.append(Verdict(kpi, own, next(iter(lines.values()), None), plain))
    return found


def steps_word(result: BacktestResult) -> str:
    """What one step is called, in the plural."""
    if len(result.step_seconds) != 1:
        return "steps"
    seconds = result.step_seconds[0]
    if seconds in STEP_WORDS:
        return STEP_WORDS[int(seconds)]
    return f"steps of {seconds / 60:g} minutes" if seconds > 60 else f"steps of {seconds:g} seconds"


def headline(result: BacktestResult) -> str:
    """The answer in one or a few sentences; KPI by KPI while they are few."""
    all_of_them = verdicts(result)
    span = f"{result.config.horizon} {steps_word(result)} ahead"
    if len(all_of_them) <= NAMED_KPIS:
        return " ".join(_sentence(verdict, span) for verdict in all_of_them)
    judged = [verdict for verdict in all_of_them if not math.isnan(verdict.gain)]
    if not judged:
        return f"Up to {span}, {result.model} could be compared with nobody on any KPI."
    ahead = sum(verdict.gain > EVEN_RATIO for verdict in judged)
    level = sum(abs(verdict.gain) <= EVEN_RATIO for verdict in judged)
    text = f"Up to {span}, {result.model} was the best forecaster of {ahead} of "
    text += f"{len(judged)} KPIs"
    if level:
        text += f", about level with the best on {level} more"
    behind = [verdict.kpi for verdict in judged if verdict.gain < -EVEN_RATIO]
    if behind:
        text += f"; others did better on {_listed(behind)}"
    if left_out := len(all_of_them) - len(judged):
        text += (
            f"; {counted(left_out, 'KPI')} left out, where all was zero or missing or others made "
            "no error at all"
        )
    return f"{text}."


def _sentence(verdict: Verdict, span: str) -> str:
    own = verdict.own
    if math.isnan(own.accuracy.wape):
        return f"{verdict.kpi}: all values were zero or missing, so nothing can be said."
    text = f"{verdict.kpi}: up to {span}, {own.model} was off by {own.accuracy.wape:.0%} of the "
    text += "mean value on average"
    if verdict.rival is None:
        return text + "."
    rival = verdict.rival.model
    if math.isnan(verdict.gain):
        return text + f"; {rival} made no error at all."
    if abs(verdict.gain) <= EVEN_RATIO:
        return text + f", about as good as the best of the others ({rival})."
    if verdict.gain > 0:
        return text + f", with {verdict.gain:.0%} less error than the best of the others ({rival})."
    more = 1 / (1 - verdict.gain)
    return text + f"; {rival} was better, with {1 - more:.0%} less error."


def band_verdict(coverage: float, nominal: float, steps: str) -> str:
    """Whether the band keeps its word, such as "of 100 hours the 80 % band held 79"."""
    if math.isnan(coverage):
        return "no value came that the band could have held"
    text = f"of 100 {steps} the {nominal * 100:.0f} % band held {coverage * 100:.0f}"
    gap = coverage - nominal
    if abs(gap) <= HONEST_GAP:
        return f"{text}: it keeps its word"
    how = "slightly" if abs(gap) <= SLIGHT_GAP else "clearly"
    if gap < 0:
        return f"{text}: {how} too narrow, surprises come more often than promised"
    return f"{text}: {how} wider than it need be"


def band_sentence(verdict: Verdict, nominal: float, steps: str) -> str:
    """The band's verdict, with what it would be without calibration where that is known."""
    text = band_verdict(verdict.own.accuracy.coverage, nominal, steps)
    if verdict.plain is not None and not math.isnan(verdict.plain.accuracy.coverage):
        text += f"; without calibration it held {verdict.plain.accuracy.coverage * 100:.0f}"
    return f"{text[0].upper()}{text[1:]}."


def gain_words(verdict: Verdict) -> str:
    """The lead over the best rival in a few words."""
    if verdict.rival is None:
        return "no rival"
    if math.isnan(verdict.gain):
        return "-"
    if abs(verdict.gain) <= EVEN_RATIO:
        return f"level with {verdict.rival.model}"
    side = "less" if verdict.gain > 0 else "more"
    return f"{abs(verdict.gain):.0%} {side} than {verdict.rival.model}"


def counted(count: int, noun: str) -> str:
    """A number of things: "1 cell", "2,000 cells"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    if len(names) > LISTED_KPIS:
        names = [*names[:LISTED_KPIS], f"{len(names) - LISTED_KPIS:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
