"""The command line of the accuracy benchmark: measure, record, or train the opponents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.accuracy import parts, rivals
from benchmarks.accuracy.exam import TASKS
from benchmarks.accuracy.opponents import naive_forecasts
from benchmarks.accuracy.parts import MODEL_PARTS, QUICK_PARTS, Bench
from benchmarks.accuracy.rows import OPPONENTS, rows
from benchmarks.accuracy.sheet import Sheet, read_sheet, write_sheet
from benchmarks.accuracy.subjects import (
    LIKE,
    Subject,
    model_name,
    shipped_path,
    subject_of,
    subjects,
)
from benchmarks.harness import RESULTS, Result, Unavailable, main
from kpi.catalogue import load_catalogue
from model.checkpoint import load_checkpoint, save_checkpoint
from model.transformer import TransformerPredictor
from training.fit import Progress

CHECKPOINTS = Path("runs")
PROGRESS_STEPS = 100


def measure(
    quick: bool,
    *,
    checkpoints: Path = CHECKPOINTS,
    reuse: bool = False,
    results: Path = RESULTS,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Result]:
    """All figures.

    Args:
        quick: Measure only what takes seconds, of the shipped checkpoint; read the rest.
        checkpoints: Folder of the checkpoints that do not ship.
        reuse: Do not measure again what the sheets say of the very same weights.
        results: Folder of the sheets; a full run writes them.
        say: Told what is being measured.

    Raises:
        Unavailable: The yardstick does not lie beside the checkout.
    """
    bench = Bench(load_catalogue())
    bench.exam(next(iter(TASKS)))
    sheets = {}
    for subject in subjects(checkpoints):
        earlier = read_sheet(subject.name, results)
        wanted = _wanted(subject, quick)
        if subject.at_hand and wanted:
            keep = quick or reuse
            sheet = examine(subject, wanted, bench, earlier if reuse else None, results, quick, say)
            sheets[subject.name] = sheet.over(earlier) if keep else sheet
        elif earlier is not None:
            sheets[subject.name] = earlier
    sheets[OPPONENTS] = _opponents(bench, quick, reuse, results, say)
    yield from rows(sheets)


def _wanted(subject: Subject, quick: bool) -> Sequence[str]:
    if not quick:
        return subject.parts
    return QUICK_PARTS if subject.name == model_name(LIKE, 0) else ()


def examine(
    subject: Subject,
    wanted: Sequence[str],
    bench: Bench,
    earlier: Sheet | None = None,
    results: Path = RESULTS,
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Sheet:
    """Measure some parts of one forecaster.

    Args:
        subject: Whose checkpoint is at hand.
        wanted: Which parts.
        bench: What they are measured on.
        earlier: A sheet whose parts are taken where they are of the same weights.
        results: Folder of the sheets; written after each part, so that a stop loses one at most.
        quick: Write nothing.
        say: Told what is being measured.
    """
    checkpoint = subject.load(subject.path)
    sheet = Sheet(
        subject.name,
        rivals.identity(checkpoint),
        sum(tensor.numel() for tensor in checkpoint.weights.values()),
    ).over(earlier)
    for name in wanted:
        if name not in sheet.parts:
            say(f"{subject.name}: {name}")
            part = MODEL_PARTS[name](checkpoint, bench.seeded(subject.seed))
            sheet = sheet.with_part(name, part)
            if not quick:
                write_sheet(sheet, results)
    return sheet


def _opponents(
    bench: Bench, quick: bool, reuse: bool, results: Path, say: Callable[[str], None]
) -> Sheet:
    earlier = read_sheet(OPPONENTS, results)
    if earlier is not None and (quick or reuse):
        return earlier
    if quick:
        return Sheet(OPPONENTS)
    say("opponents")
    found = parts.opponents(bench)
    sheet = Sheet(OPPONENTS, parts=found, fresh=frozenset(found)).over(None)
    write_sheet(sheet, results)
    return sheet


def record(path: Path) -> str:
    """Write the scores of a checkpoint, beside the naive ones, into its card.

    Returns:
        The new digest of the file.

    Raises:
        CheckpointError: It is no checkpoint.
        Unavailable: The yardstick does not lie beside the checkout.
    """
    checkpoint = load_checkpoint(path)
    bench = Bench(load_catalogue())
    predictor = TransformerPredictor(checkpoint, bench.catalogue)
    evaluation: dict[str, Mapping[str, object]] = {
        task: {
            parts.RANCAST: bench.exam(task).score(predictor),
            **naive_forecasts(bench.exam(task)),
        }
        for task in TASKS
    }
    return save_checkpoint(replace(checkpoint, evaluation=evaluation), path)


def record_seed(path: Path, reuse: bool, results: Path = RESULTS) -> Path:
    """Measure all parts of one checkpoint and write its sheet.

    Raises:
        Unavailable: The file's name is nobody's, or the yardstick does not lie beside the checkout.
    """
    subject = subject_of(path)
    earlier = read_sheet(subject.name, results) if reuse else None
    bench = Bench(load_catalogue())
    sheet = examine(subject, subject.parts, bench, earlier, results, say=_say)
    return write_sheet(sheet, results)


def train(these: Sequence[rivals.Rival], folder: Path, steps: int | None) -> None:
    """Train opponents and write their sheets; each goes on where it was stopped.

    Args:
        these: Which ones; those whose checkpoint is there already are not trained again.
        folder: Where their files lie.
        steps: A shorter schedule, to try whether all works: then no sheet is written.
    """
    like = load_checkpoint(shipped_path(LIKE))
    for rival in these:
        _say(f"{rival.name}: training")
        path = rivals.train_rival(
            rival, like, load_catalogue(), folder, steps=steps, on_progress=_show_progress
        )
        _say(f"{rival.name}: written to {path}")
        if steps is None:
            _say(f"{rival.name}: scores in {record_seed(path, False).name}")


def _show_progress(progress: Progress) -> None:
    if progress.step % PROGRESS_STEPS == 0 or progress.step == progress.steps:
        known = progress.validation_loss is not None
        validation = f", validation {progress.validation_loss:.4f}" if known else ""
        _say(
            f"  step {progress.step} of {progress.steps}, loss {progress.loss:.4f}{validation}, "
            f"{progress.seconds_left / 60:.0f} min left"
        )


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def run(arguments: Sequence[str] | None = None) -> None:
    """Measure, or do what one of the other options says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=__doc__,
        epilog="Without one of --record, --record-seed and --train-… it measures; --quick and "
        "--json are those of every benchmark.",
    )
    parser.add_argument(
        "--checkpoints", type=Path, default=CHECKPOINTS, help="folder of those that do not ship"
    )
    parser.add_argument(
        "--reuse", action="store_true", help="measure only what no sheet says of the same weights"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="write scores into its card")
    parser.add_argument("--record-seed", type=Path, metavar="FILE", help="write its score sheet")
    parser.add_argument("--train-lstm", action="store_true", help="train the LSTM, or go on")
    parser.add_argument("--train-positions", action="store_true", help="train RoPE, ALiBi, none")
    parser.add_argument("--steps", type=int, help="a shorter training, to try it; no scores")
    parser.add_argument("--threads", type=int, default=1, help="of the tensor library")
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    try:
        _do(options)
    except Unavailable as reason:
        parser.exit(1, f"accuracy: {reason}\n")


def _do(options: argparse.Namespace) -> None:
    if options.record:
        sys.stdout.write(f"{options.record} {record(options.record)}\n")
    elif options.record_seed:
        sys.stdout.write(f"{record_seed(options.record_seed, options.reuse)}\n")
    elif options.train_lstm or options.train_positions:
        wanted = rivals.positions() if options.train_positions else []
        if options.train_lstm:
            wanted.append(rivals.lstm(load_checkpoint(shipped_path(LIKE))))
        train(wanted, options.checkpoints, options.steps)
    else:
        flags = [flag for flag in ("quick", "json") if getattr(options, flag)]
        main(
            "accuracy",
            lambda quick: measure(
                quick, checkpoints=options.checkpoints, reuse=options.reuse, say=_say
            ),
            [f"--{flag}" for flag in flags],
        )
