"""The command line: a thin front that loads each command's module when it is called.

Nothing heavy is imported here, so `rancast --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from kpi.catalogue import Catalogue
    from kpi.history import Selection

OK = 0
PARTLY = 1
UNUSABLE = 2
STOPPED = 130
OUR_PACKAGES = ("kpi", "model", "training", "service")

app = typer.Typer(
    name="rancast",
    help="Forecast the load of radio cells, with honest uncertainty, inside a latency budget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


Paths = Annotated[list[Path], typer.Argument(help="PM files, tables (CSV, Parquet), directories.")]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="Checkpoint to use.", show_default="shipped")
]
Kpis = Annotated[list[str] | None, typer.Option("--kpi", help="KPI to use; repeat for more.")]
Cells = Annotated[
    list[str] | None,
    typer.Option("--cell", help="Cells to use, a pattern such as '*NRCellDU=*'; repeatable."),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", help="Cells to leave out, a pattern; repeatable.")
]
StepSeconds = Annotated[
    float | None,
    typer.Option(help="Sampling step where cells report at several.", show_default="finest"),
]
TimeZone = Annotated[
    str, typer.Option(help="Zone of the cells' clock, and of stamps without offset.")
]
KeepSuspect = Annotated[
    bool, typer.Option("--keep-suspect", help="Use values that the network marked as suspect.")
]
Catalogues = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", help="Your own KPI catalogue (TOML); repeatable."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Meaning of a table's columns: timestamp=date,cell=site; kpi= and value=; stamp=end.",
        show_default="usual names",
    ),
]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind.")] = None,
    profile: Annotated[str | None, typer.Option(help="near-rt or non-rt.")] = None,
    checkpoint: Checkpoint = None,
    journal: Annotated[Path | None, typer.Option(help="SQLite journal of the store.")] = None,
    ingest: Annotated[Path | None, typer.Option(help="Directory of PM files to watch.")] = None,
) -> None:
    """Serve forecasts over REST. Every setting is also a RANCAST_ variable; options win."""
    with _plain_errors():
        from service.server import serve as run
        from service.settings import load_settings

        options = {"host": host, "port": port, "profile": profile, "model_path": checkpoint}
        folders = {"journal_path": journal, "ingest_directory": ingest}
        settings = load_settings(**_given(options | folders))
        code = run(settings)
    raise typer.Exit(code)


@app.command()
def forecast(
    paths: Paths,
    out: Annotated[Path | None, typer.Option(help="A .csv, .json, .parquet or .html file.")] = None,
    horizon: Annotated[int, typer.Option(help="Steps to forecast.")] = 24,
    quantiles: Annotated[str, typer.Option(help="Quantile levels.")] = "0.1,0.5,0.9",
    checkpoint: Checkpoint = None,
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Forecast the cells of PM files or tables, without a server.

    Exit status 1: some files could not be read (they are named), the others were forecast.
    """
    with _plain_errors():
        from service.offline.cli import forecast_with_progress
        from service.offline.forecast import ForecastJob

        known = _catalogue(catalogue)
        selection = _selection(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns)
        job = ForecastJob(tuple(paths), selection, horizon, _levels(quantiles))
        unreadable = forecast_with_progress(job, known, checkpoint, out)
    raise typer.Exit(PARTLY if unreadable else OK)


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="Checkpoint to write (.safetensors).")],
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="PM files, tables, directories; none: synthetic cells only."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Shape of the forecaster: nano, small.")] = "small",
    version: Annotated[str, typer.Option(help="Version that the checkpoint bears.")] = "0.1.0",
    synthetic: Annotated[float, typer.Option(help="Share of synthetic batches, 0 to 1.")] = 0.5,
    steps: Annotated[int, typer.Option(help="Optimiser steps of the schedule.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the first weights and of all data drawn.")] = 0,
    series: Annotated[int, typer.Option(help="Series in a batch.")] = 32,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 2e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps of linear warm-up.")] = 100,
    evaluate_every: Annotated[int, typer.Option(help="Steps between validations.")] = 200,
    patience: Annotated[int, typer.Option(help="Validations without gain before stopping.")] = 10,
    validation: Annotated[float, typer.Option(help="Share of each history that judges.")] = 0.15,
    threads: Annotated[int, typer.Option(help="Threads to compute with.")] = 1,
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Train a checkpoint. A run that was stopped goes on where it was when called again."""
    with _plain_errors():
        from rich.console import Console

        from training.cli import train_with_progress
        from training.fit import FitConfig
        from training.train import TrainOptions

        options = TrainOptions(
            out=out,
            data=tuple(data or ()),
            selection=_selection(
                kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns
            ),
            preset=preset,
            version=version,
            synthetic_ratio=synthetic,
            validation_ratio=validation,
            series=series,
            fit=FitConfig(
                seed=seed,
                steps=steps,
                learning_rate=learning_rate,
                warmup_steps=warmup_steps,
                evaluate_every=evaluate_every,
                patience=patience,
            ),
            threads=threads,
        )
        unreadable = train_with_progress(options, _catalogue(catalogue), Console(stderr=True))
    raise typer.Exit(PARTLY if unreadable else OK)


@app.command()
def backtest(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint to test.")],
    data: Paths,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    horizon: Annotated[int, typer.Option(help="Steps to forecast.")] = 24,
    test: Annotated[float, typer.Option(help="Share of each history to test on.")] = 0.3,
    stride: Annotated[
        int | None, typer.Option(help="Steps between origins.", show_default="horizon")
    ] = None,
    max_origins: Annotated[int, typer.Option(help="Most origins a cell.")] = 50,
    kpi: Kpis = None,
    cell: Cells = None,
    exclude: Exclude = None,
    step_seconds: StepSeconds = None,
    time_zone: TimeZone = "UTC",
    keep_suspect: KeepSuspect = False,
    catalogue: Catalogues = None,
    columns: Columns = None,
) -> None:
    """Test a checkpoint on past origins against seasonal forecasts: WQL, MASE, WAPE, coverage."""
    with _plain_errors():
        from rich.console import Console

        from training.backtest import BacktestConfig
        from training.cli import backtest_with_progress

        unreadable = backtest_with_progress(
            checkpoint,
            data,
            _selection(kpi, cell, exclude, step_seconds, time_zone, keep_suspect, columns),
            BacktestConfig(
                horizon=horizon, test_ratio=test, stride=stride, max_origins=max_origins
            ),
            _catalogue(catalogue),
            Console(),
            report=report,
        )
    raise typer.Exit(PARTLY if unreadable else OK)


@app.command()
def simulate(
    out: Annotated[Path, typer.Option(help="Directory to write to; continued where it exists.")],
    cells: Annotated[int, typer.Option(help="Number of cells.")] = 12,
    cells_per_gnb: Annotated[int, typer.Option(help="Cells of one gNB.")] = 3,
    days: Annotated[float, typer.Option(help="Days of history, written at once.")] = 14.0,
    periods: Annotated[
        int | None, typer.Option(help="Live periods to write after it.", show_default="no end")
    ] = None,
    period_seconds: Annotated[int, typer.Option(help="Granularity period.")] = 900,
    speed: Annotated[float, typer.Option(help="Live periods a second; inf: no waiting.")] = 1.0,
    keep_days: Annotated[
        float | None, typer.Option(help="Remove live files of this age.", show_default="keep all")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Begin of the history (ISO 8601).", show_default="it ends now"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is random.")] = 1,
    time_zone: Annotated[str, typer.Option(help="Zone of the users' days.")] = "UTC",
    kpi: Annotated[
        list[str] | None, typer.Option("--kpi", help="KPI to report; repeat for more.")
    ] = None,
    profile: Annotated[
        list[str] | None, typer.Option("--profile", help="Class of cells to draw; repeatable.")
    ] = None,
    dialect: Annotated[
        list[str] | None, typer.Option("--dialect", help="How files are written; repeatable.")
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="Results as lists.")] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the files.")] = False,
    history_layout: Annotated[
        Literal["day", "period"], typer.Option(help="History files: one a day, or one a period.")
    ] = "day",
    late: Annotated[float, typer.Option(help="Share of files that arrive late.")] = 0.0,
    duplicate: Annotated[float, typer.Option(help="Share of files that arrive twice.")] = 0.0,
    missing_file: Annotated[float, typer.Option(help="Share of periods without a file.")] = 0.0,
    missing_counter: Annotated[float, typer.Option(help="Share of values left out.")] = 0.0,
    suspect: Annotated[float, typer.Option(help="Share of suspect measurements.")] = 0.0,
    corrected: Annotated[float, typer.Option(help="Share of wrong files sent again.")] = 0.0,
    wrong_clock: Annotated[float, typer.Option(help="Share of gNBs with a wrong clock.")] = 0.0,
    late_periods: Annotated[int, typer.Option(help="Longest delay in periods.")] = 4,
) -> None:
    """Write PM files of a simulated network: history at once, then live, faster than real time."""
    with _plain_errors():
        from training.simulate import FaultRates, SimulateOptions
        from training.simulate.cli import simulate_with_progress

        chosen: dict[str, Any] = {"kpis": kpi, "profiles": profile, "dialects": dialect}
        options = SimulateOptions(
            out=out,
            cells=cells,
            cells_per_gnb=cells_per_gnb,
            days=days,
            periods=periods,
            period_seconds=period_seconds,
            speed=speed,
            keep_days=keep_days,
            start=datetime.fromisoformat(start) if start else None,
            seed=seed,
            time_zone=time_zone,
            compact=compact,
            compress=gzip,
            history_layout=history_layout,
            faults=FaultRates(
                late=late,
                duplicate=duplicate,
                missing_file=missing_file,
                missing_counter=missing_counter,
                suspect=suspect,
                corrected=corrected,
                wrong_clock=wrong_clock,
                late_periods=late_periods,
            ),
            **{name: tuple(value) for name, value in _given(chosen).items()},
        )
        simulate_with_progress(options)


@app.command()
def demo(
    data: Annotated[
        Path | None, typer.Option(help="Your own PM files or tables.", show_default="simulated")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port on 127.0.0.1.", show_default="8080, or a free one")
    ] = None,
) -> None:
    """Serve forecasts of a simulated network, or of your own files, until stopped."""
    with _plain_errors():
        from service.demo import run_demo

        code = run_demo(data, port)
    raise typer.Exit(code)


@app.command()
def model(checkpoint: Checkpoint = None) -> None:
    """Show where a checkpoint comes from and how well it did."""
    with _plain_errors():
        from service.offline.cli import show_checkpoint

        show_checkpoint(checkpoint)


def main() -> None:
    """Entry point of the console script."""
    app()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors of our own packages, of values and of files: one line on stderr, exit status 2."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(STOPPED) from None
    except Exception as error:
        ours = any(c.__module__.split(".")[0] in OUR_PACKAGES for c in type(error).__mro__)
        if not ours and not isinstance(error, ValueError | OSError):
            raise
        sys.stderr.write(f"rancast: {error}\n")
        raise typer.Exit(UNUSABLE) from error


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, [])}


def _catalogue(extensions: list[Path] | None) -> Catalogue:
    from kpi.catalogue import load_catalogue

    return load_catalogue(extensions or ())


def _selection(
    kpis: list[str] | None,
    cells: list[str] | None,
    exclude: list[str] | None,
    step_seconds: float | None,
    time_zone: str,
    keep_suspect: bool,
    columns: str | None,
) -> Selection:
    from kpi.history import Selection, parse_columns
    from kpi.readers import ReadOptions

    return Selection(
        kpis=tuple(kpis or ()),
        cells=tuple(cells or ()),
        exclude=tuple(exclude or ()),
        step_seconds=step_seconds,
        reading=ReadOptions(
            time_zone=time_zone,
            keep_suspect=keep_suspect,
            columns=parse_columns(columns) if columns else None,
        ),
    )


def _levels(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected numbers such as 0.1,0.5,0.9, got {text!r}") from None


if __name__ == "__main__":
    main()
