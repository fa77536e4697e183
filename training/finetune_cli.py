"""The terminal side of `rancast finetune`: what is being done, a bar, and what came of it."""

from __future__ import annotations

import math
from datetime import timedelta

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from kpi.catalogue import Catalogue
from model.accuracy import shown
from training.cli import Unreadable, named, say_stopped, trouble_sayer
from training.finetune import FinetuneOptions, finetune, verdict
from training.fit import Progress
from training.session import Session
from training.tuning import Tuned


def finetune_with_progress(options: FinetuneOptions, catalogue: Catalogue, around: Session) -> int:
    """Tune with a bar, then print the scores before and after, and which weights were taken.

    Returns:
        The number of files that could not be read.
    """
    console, unreadable = around.console, Unreadable(around.console)
    around.report.start("finetune", options.out, options.tune.steps, around.team.size)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
    )
    bar = ProgressBar(*columns, console=console, disable=around.is_reported)
    with named(options.data), bar:
        task = bar.add_task("reading", total=None, note="")

        def show_stage(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total, note="")

        say_trouble = trouble_sayer(console)

        def show(progress: Progress) -> None:
            around.report.step(progress)
            say_trouble(progress)
            validation = shown(
                math.nan if progress.validation_loss is None else progress.validation_loss, ".4f"
            )
            left = timedelta(seconds=round(progress.seconds_left))
            bar.update(
                task,
                description="tuning",
                completed=progress.step,
                total=progress.steps,
                note=f"loss {progress.loss:.4f} held back {validation}, {left} left",
            )

        try:
            result = finetune(
                options,
                catalogue,
                unreadable,
                show_stage,
                show,
                around.team,
            )
        except KeyboardInterrupt:
            say_stopped(console, options.state_path)
            raise
    around.report.done(options.out, result.checkpoint)
    if not around.team.leads:
        return 0
    console.print(scores_table(result.tuned))
    console.print(
        f"weights: {verdict(result.tuned)}", markup=False, highlight=False, soft_wrap=True
    )
    console.print(
        f"checkpoint written to {options.out}", markup=False, highlight=False, soft_wrap=True
    )
    return len(unreadable.errors)


def scores_table(tuned: Tuned) -> Table:
    """WQL and coverage by KPI at the held-back origins, before and after."""
    held_back = tuned.held_back
    table = Table(
        title=f"held back: {len(held_back.cuts)} origins, {held_back.horizon} steps ahead",
        title_justify="left",
    )
    table.add_column("KPI", overflow="fold")
    for name in ("WQL zero-shot", "WQL tuned", "coverage zero-shot", "coverage tuned"):
        table.add_column(name, justify="right")
    before, after = tuned.zero_shot.totals(), tuned.scores.totals()
    for kpi in sorted(before):
        parts = before[kpi], after[kpi]
        table.add_row(
            escape(kpi),
            *(shown(part.wql, ".4f") for part in parts),
            *(shown(part.coverage, ".1%") for part in parts),
        )
    return table
