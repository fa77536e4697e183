"""The terminal side of the simulator: a progress bar, and what was written."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar

from training.simulate.options import SimulateOptions
from training.simulate.run import Progress, Summary, simulate


def simulate_with_progress(options: SimulateOptions) -> Summary:
    """Write the files and say how far it is; returns what was done.

    Raises:
        DirectoryError: The output directory holds something else.
        OSError: A file cannot be written.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console) as bar:
        tasks = {
            phase: bar.add_task(f"{phase} periods", total=None) for phase in ("history", "live")
        }

        def show(progress: Progress) -> None:
            bar.update(tasks[progress.phase], completed=progress.done, total=progress.total)

        summary = simulate(options, show)
    console.print(
        f"{summary.files} files of {summary.cells} cells and {summary.gnbs} gNBs written to "
        f"{options.out}: {summary.samples:,} values, {summary.bytes / 1e6:,.1f} MB",
        highlight=False,
    )
    return summary
