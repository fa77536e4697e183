"""From score sheets to the figures that the issues name.

Figures of a model are means over its seeds, with the spread and each seed beside them; which seeds
were measured in this run and which were read from their sheets is part of each figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.accuracy.exam import TASKS, Scores
from benchmarks.accuracy.longer_context import FACTORS
from benchmarks.accuracy.opponents import LAST_VALUE, LIGHTGBM, LIGHTGBM_TUNED, SEASONAL_NAIVE
from benchmarks.accuracy.parts import HOURLY_TASK, RANCAST, SYNTHETIC, longer_case
from benchmarks.accuracy.rivals import position_name
from benchmarks.accuracy.sheet import Sheet
from benchmarks.accuracy.subjects import LIKE, LSTM, MODELS, SEEDS, model_name
from benchmarks.harness import Result
from model.config import POSITIONS

ZERO_SHOT = {"lte_hourly": 0.331, "barcelona_2min": 0.405, "tractor_1s": 0.128}
TUNED = {"lte_hourly": 0.322, "barcelona_2min": 0.395, "tractor_1s": 0.123}
LEARNT_FROM = frozenset({"tractor_1s"})
"""Tasks whose training runs the checkpoints learn from: new to them are the runs, not the cells."""

COVERAGE = (0.77, 0.83)
NOMINAL_COVERAGE = 0.8
COLD_RATIO = 0.9
LSTM_RATIO = 0.95
LONGER_RATIO = 1.0
GAPS_RATIO = 1.05


@dataclass(frozen=True)
class Seeds:
    """The sheets of one model, by seed."""

    model: str
    sheets: Mapping[int, Sheet]

    def values(self, part: str, case: str, metric: str) -> dict[int, float]:
        """A metric by seed."""
        found = {seed: sheet.score(part, case, metric) for seed, sheet in self.sheets.items()}
        return {seed: value for seed, value in found.items() if value is not None}

    def ratios(self, above: tuple[str, str], below: tuple[str, str]) -> dict[int, float]:
        """WQL of one (part, case) as a ratio to another, by seed."""
        over, under = self.values(*above, "WQL"), self.values(*below, "WQL")
        return {seed: over[seed] / under[seed] for seed in over if seed in under}

    def origin(self, part: str, seeds: Sequence[int]) -> dict[str, str]:
        """Which seeds a figure is of, and where it comes from."""
        now = [seed for seed in seeds if part in self.sheets[seed].fresh]
        read = [seed for seed in seeds if seed not in now]
        return {
            name: ",".join(map(str, group))
            for name, group in (("measured_now_seeds", now), ("read_seeds", read))
            if group
        }

    def suffix(self) -> str:
        """What tells the figures of this model from those of the usual one."""
        return "" if self.model == LIKE else f".{self.model}"


def rows(sheets: Mapping[str, Sheet]) -> Iterator[Result]:
    """All figures that the sheets, by name of their subject, have the scores for."""
    others = _opponents(sheets)
    for model in MODELS:
        own = {
            seed: sheets[model_name(model, seed)]
            for seed in SEEDS
            if model_name(model, seed) in sheets
        }
        if own:
            yield from _model_rows(Seeds(model, own), others)
    if LSTM in sheets:
        yield from _lstm_rows(sheets)
    yield from _position_rows(sheets)


OPPONENTS = "opponents"
"""Subject of the sheet whose parts are the opponents."""


def _opponents(sheets: Mapping[str, Sheet]) -> dict[str, dict[str, Scores]]:
    """Scores by task and opponent."""
    if OPPONENTS not in sheets:
        return {task: {} for task in TASKS}
    parts = sheets[OPPONENTS].parts
    return {
        task: {name: part[task] for name, part in parts.items() if task in part} for task in TASKS
    }


def _model_rows(seeds: Seeds, others: Mapping[str, Mapping[str, Scores]]) -> Iterator[Result]:
    for task in TASKS:
        name = "unseen_runs" if task in LEARNT_FROM else "zero_shot"
        yield from _wql(seeds, "zero_shot", task, name, ZERO_SHOT[task], others[task])
        yield from _wql(seeds, "tuned", task, "tuned", TUNED[task], others[task])
        yield from _coverage(seeds, "recalibrated", task, "cov80", required=True)
        yield from _coverage(seeds, "tuned", task, "cov80_tuned", required=True)
        yield from _coverage(seeds, "zero_shot", task, "cov80_shipped", required=False)
    cold = "cold_start"
    yield from _ratio(
        seeds, cold, "", (cold, RANCAST), (cold, SEASONAL_NAIVE), COLD_RATIO, SEASONAL_NAIVE
    )
    for task in TASKS:
        whole = ("zero_shot", task)
        yield from _ratio(seeds, "gaps", task, ("gaps", task), whole, GAPS_RATIO, "without gaps")
        yield from _ratio(
            seeds, "trailing_gap", task, ("late_end", task), whole, None, "without gaps"
        )
    for source in (HOURLY_TASK, SYNTHETIC):
        short = ("longer_context", longer_case(source, 1))
        for factor in FACTORS[1:]:
            case = longer_case(source, factor)
            yield from _ratio(
                seeds,
                "longer_context",
                case,
                ("longer_context", case),
                short,
                LONGER_RATIO,
                "longest context of training",
            )


def _wql(
    seeds: Seeds,
    part: str,
    task: str,
    name: str,
    target: float,
    others: Mapping[str, Scores],
) -> Iterator[Result]:
    found = seeds.values(part, task, "WQL")
    if not found:
        return
    detail: dict[str, Any] = {**_spread(found), **seeds.origin(part, [*found])}
    for metric in ("MASE", "WAPE", "cov80"):
        values = seeds.values(part, task, metric).values()
        detail[metric] = fmean(values)
    detail |= {_short(other): scores["WQL"] for other, scores in others.items()}
    yield Result.at_most(
        f"accuracy.{task}.{name}{seeds.suffix()}",
        fmean(found.values()),
        "WQL",
        target,
        opponent=LIGHTGBM if LIGHTGBM in others else "",
        **detail,
        seeds={seed: seeds.sheets[seed].parts[part][task] for seed in found},
        opponents={other: dict(scores) for other, scores in others.items()},
    )


def _coverage(seeds: Seeds, part: str, task: str, name: str, *, required: bool) -> Iterator[Result]:
    found = seeds.values(part, task, "cov80")
    if not found:
        return
    value = fmean(found.values())
    low, high = COVERAGE
    detail: dict[str, Any] = {**_spread(found), **seeds.origin(part, [*found])}
    if required:
        detail["inside"] = f"{low} to {high}"
    yield Result(
        id=f"accuracy.{task}.{name}{seeds.suffix()}",
        value=value,
        unit="share",
        target=NOMINAL_COVERAGE if required else None,
        met=low <= value <= high if required else None,
        detail={**detail, "seeds": found},
    )


def _ratio(
    seeds: Seeds,
    name: str,
    case: str,
    above: tuple[str, str],
    below: tuple[str, str],
    target: float | None,
    opponent: str,
) -> Iterator[Result]:
    found = seeds.ratios(above, below)
    if not found:
        return
    value = fmean(found.values())
    figure = ".".join(filter(None, ("accuracy", name, case))) + seeds.suffix()
    detail = {
        **_spread(found),
        **seeds.origin(above[0], [*found]),
        "WQL": fmean(seeds.values(*above, "WQL").values()),
        "opponent_WQL": fmean(seeds.values(*below, "WQL").values()),
        "seeds": found,
    }
    met = None if target is None else value <= target
    yield Result(figure, value, "ratio", opponent, target, met, detail)


def _lstm_rows(sheets: Mapping[str, Sheet]) -> Iterator[Result]:
    lstm = sheets[LSTM]
    own = {seed: sheets[n] for seed in SEEDS if (n := model_name(LIKE, seed)) in sheets}
    seeds = Seeds(LIKE, own)
    for task in TASKS:
        ours, theirs = seeds.values("zero_shot", task, "WQL"), lstm.wql("zero_shot", task)
        if not ours or theirs is None:
            continue
        yield Result.at_most(
            f"accuracy.vs_lstm.{task}",
            fmean(ours.values()) / theirs,
            "ratio",
            LSTM_RATIO,
            opponent="LSTM of the same size, data and budget",
            WQL=fmean(ours.values()),
            opponent_WQL=theirs,
            parameters=next(iter(own.values())).parameters,
            opponent_parameters=lstm.parameters,
            lstm="measured now" if "zero_shot" in lstm.fresh else "read",
            **seeds.origin("zero_shot", [*ours]),
        )


def _position_rows(sheets: Mapping[str, Sheet]) -> Iterator[Result]:
    for position in POSITIONS:
        sheet = sheets.get(position_name(position))
        if sheet is None:
            continue
        part = "longer_context"
        for source in (HOURLY_TASK, SYNTHETIC):
            short = sheet.wql(part, longer_case(source, 1))
            for factor in FACTORS[1:]:
                long = sheet.wql(part, longer_case(source, factor))
                if short is None or long is None:
                    continue
                yield Result(
                    f"accuracy.longer_context.{position}.{longer_case(source, factor)}",
                    long / short,
                    "ratio",
                    "longest context of training",
                    detail={
                        "WQL": long,
                        "opponent_WQL": short,
                        "parameters": sheet.parameters,
                        "origin": "measured now" if part in sheet.fresh else "read",
                    },
                )


def _spread(found: Mapping[int, float]) -> dict[str, float]:
    return {"min": min(found.values()), "max": max(found.values())}


def _short(opponent: str) -> str:
    """An opponent's name as a key of the table's details."""
    short = {
        LIGHTGBM: "lightgbm",
        LIGHTGBM_TUNED: "lightgbm_tuned",
        SEASONAL_NAIVE: "seasonal_naive",
        LAST_VALUE: "last_value",
    }
    return short.get(opponent, opponent.replace(" ", "_"))
