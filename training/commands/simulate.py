"""`rancast simulate`: PM files of a simulated network."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer


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
    from training.simulate import FaultRates, SimulateOptions
    from training.simulate.cli import simulate_with_progress

    chosen = {"kpis": kpi, "profiles": profile, "dialects": dialect}
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
        **{name: tuple(value) for name, value in chosen.items() if value},
    )
    simulate_with_progress(options)
