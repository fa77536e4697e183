"""The parts of a score sheet, each measured of one checkpoint on the yardstick's tasks.

What a checkpoint learns from a task (its calibration, its tuned weights) comes from the task's
training part alone; the test windows are forecast once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from benchmarks.accuracy import damage, longer_context
from benchmarks.accuracy.exam import TASKS, Exam, Scores
from benchmarks.accuracy.opponents import SEASONAL_NAIVE, all_scores, cold_naive
from benchmarks.accuracy.sheet import Part
from kpi.catalogue import Catalogue
from model.checkpoint import Checkpoint
from model.transformer import TransformerPredictor
from training.calibrate import MIN_CONTEXT_STEPS, CalibrateConfig, fit_calibration
from training.finetune import calibrated
from training.tuning import TuneConfig, tune

RANCAST = "rancast"
COLD_TASK = "lte_hourly"
COLD_STEPS = 72
"""Three days of hours."""

HOURLY_TASK = "lte_hourly"
SYNTHETIC = "synthetic"


@dataclass
class Bench:
    """What all parts need, loaded when it is first asked for.

    Attributes:
        catalogue: KPI catalogue.
        seed: Of tuning.
    """

    catalogue: Catalogue
    seed: int = 0
    _exams: dict[str, Exam] = field(default_factory=dict)

    def exam(self, task: str) -> Exam:
        """A task of the yardstick, loaded once."""
        if task not in self._exams:
            self._exams[task] = Exam.load(task)
        return self._exams[task]

    def seeded(self, seed: int) -> Bench:
        """The same, with another seed."""
        return replace(self, seed=seed)


def zero_shot(checkpoint: Checkpoint, bench: Bench) -> Part:
    """The checkpoint as it is, on every task."""
    return _every_task(checkpoint, bench, lambda exam: exam)


def gaps(checkpoint: Checkpoint, bench: Bench) -> Part:
    """With a fifth of the context missing and a hole in it."""
    return _every_task(
        checkpoint, bench, lambda exam: exam.with_contexts(damage.with_gaps(exam.test.context))
    )


def late_end(checkpoint: Checkpoint, bench: Bench) -> Part:
    """With the newest samples missing."""
    return _every_task(
        checkpoint, bench, lambda exam: exam.with_contexts(damage.with_late_end(exam.test.context))
    )


def cold_start(checkpoint: Checkpoint, bench: Bench) -> Part:
    """With three days of context, beside the last day repeated."""
    exam = bench.exam(COLD_TASK)
    short = exam.with_contexts(damage.last_steps(exam.test.context, COLD_STEPS))
    ours = short.score(TransformerPredictor(checkpoint, bench.catalogue))
    return {RANCAST: ours, SEASONAL_NAIVE: cold_naive(exam, COLD_STEPS)}


def recalibrated(checkpoint: Checkpoint, bench: Bench) -> Part:
    """Calibrated on the training part of each task; the weights as they are."""
    found = {}
    for task in TASKS:
        exam = bench.exam(task)
        calibration = fit_calibration(
            checkpoint,
            exam.training_part(),
            bench.catalogue,
            CalibrateConfig(
                horizon=exam.task.horizon,
                history_steps=max(MIN_CONTEXT_STEPS, exam.task.context),
            ),
        )
        moved = replace(checkpoint, calibration=calibration)
        found[task] = exam.score(TransformerPredictor(moved, bench.catalogue))
    return found


def tuned(checkpoint: Checkpoint, bench: Bench) -> Part:
    """Tuned to the training part of each task, which ends with a calibration."""
    found: dict[str, Scores] = {}
    for task in TASKS:
        exam = bench.exam(task)
        config = TuneConfig(
            horizon=exam.task.horizon, history_steps=exam.task.context, seed=bench.seed
        )
        result = tune(checkpoint, exam.training_part(), bench.catalogue, config)
        kept = None if result.moved else checkpoint.calibration
        best = calibrated(
            replace(checkpoint, weights=result.weights, calibration=kept),
            result,
            bench.catalogue,
            lambda *_: None,
        )
        scores = exam.score(TransformerPredictor(best, bench.catalogue))
        found[task] = {**scores, "tuned_share": result.share}
    return found


def longer(checkpoint: Checkpoint, bench: Bench) -> Part:
    """With one, two and four times the longest context of training."""
    recorded = longer_context.on_recorded(checkpoint, bench.exam(HOURLY_TASK), bench.catalogue)
    synthetic = longer_context.on_synthetic(checkpoint)
    return {
        longer_case(source, factor): {"WQL": loss}
        for source, losses in ((HOURLY_TASK, recorded), (SYNTHETIC, synthetic))
        for factor, loss in losses.items()
    }


def longer_case(source: str, factor: int) -> str:
    """Name of a case of `longer`."""
    return f"{source}.x{factor}"


def opponents(bench: Bench) -> Mapping[str, Part]:
    """Every opponent on every task, a part an opponent."""
    found: dict[str, dict[str, Scores]] = {}
    for task in TASKS:
        for name, scores in all_scores(bench.exam(task), bench.catalogue):
            found.setdefault(name, {})[task] = scores
    return found


MODEL_PARTS: Mapping[str, Callable[[Checkpoint, Bench], Part]] = {
    "zero_shot": zero_shot,
    "gaps": gaps,
    "cold_start": cold_start,
    "late_end": late_end,
    "recalibrated": recalibrated,
    "longer_context": longer,
    "tuned": tuned,
}
"""Parts of a forecaster's sheet; the last takes minutes a task."""

QUICK_PARTS = ("zero_shot", "gaps", "cold_start")


def _every_task(checkpoint: Checkpoint, bench: Bench, change: Callable[[Exam], Exam]) -> Part:
    predictor = TransformerPredictor(checkpoint, bench.catalogue)
    return {task: change(bench.exam(task)).score(predictor) for task in TASKS}
