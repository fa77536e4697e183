"""The command line: every command has help, does its job and says plainly what went wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import rancast

COMMANDS = ("serve", "forecast", "train", "backtest", "calibrate", "simulate", "demo", "model")


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(rancast.app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> Path:
    """Nine days of two simulated cells as PM files."""
    out: Path = tmp_path_factory.mktemp("simulated") / "network"
    run(
        "simulate",
        "--out",
        out,
        "--cells",
        2,
        "--days",
        9,
        "--periods",
        0,
        "--period-seconds",
        3600,
    )
    return out


@pytest.fixture(scope="module")
def checkpoint(history) -> Path:
    """A nano forecaster after a few steps."""
    out: Path = history.parent / "mine.safetensors"
    run(
        *("train", history, "--out", out, "--preset", "nano", "--steps", 4, "--series", 4),
        *("--evaluate-every", 2, "--warmup-steps", 1, "--kpi", "RRU.PrbTotDl"),
        *("--validation", 0.3),
    )
    return out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    assert "Usage" in run(command, "--help").output


def test_help_lists_every_command():
    output = run("--help").output
    assert all(command in output for command in COMMANDS)


def test_simulated_files_are_forecast_and_shown_as_a_table(history, checkpoint):
    output = run("forecast", history, "--checkpoint", checkpoint, "--kpi", "RRU.PrbTotDl").output
    assert "2 cells, 24 steps" in output


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet", ".html"])
def test_forecasts_are_written_in_every_format(history, checkpoint, tmp_path, suffix):
    out = tmp_path / f"forecast{suffix}"
    run("forecast", history, "--checkpoint", checkpoint, "--horizon", 4, "--out", out)
    assert out.stat().st_size > 500


def test_a_bad_file_is_named_and_the_exit_code_says_so(history, checkpoint, tmp_path):
    for source in (history / "history").iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "broken.xml").write_text("<measDataFile", encoding="utf-8")
    out = tmp_path / "out.json"
    result = run("forecast", tmp_path, "--checkpoint", checkpoint, "--out", out, code=1)
    assert "broken.xml" in result.output
    assert len(json.loads(out.read_text(encoding="utf-8"))["forecasts"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("forecast", "nowhere"), "nowhere"),
        (("forecast", "HISTORY", "--horizon", "0"), "1 to"),
        (("forecast", "HISTORY", "--quantiles", "0.9,0.1"), "ascending"),
        (("forecast", "HISTORY", "--quantiles", "most"), "0.1,0.5,0.9"),
        (("forecast", "HISTORY", "--out", "f.xlsx"), ".csv"),
        (("forecast", "HISTORY", "--time-zone", "Mars/Base"), "Mars/Base"),
        (("forecast", "HISTORY", "--country", "Spain"), "ES-CT"),
        (("train", "nowhere", "--out", "x.safetensors", "--country", "XX"), "ES-CT"),
        (("finetune", "CHECKPOINT", "nowhere", "--out", "x.st", "--country", "XX"), "ES-CT"),
        (("calibrate", "CHECKPOINT", "nowhere", "--out", "x.st", "--country", "XX"), "ES-CT"),
        (("backtest", "CHECKPOINT", "nowhere", "--country", "XX"), "ES-CT"),
        (("forecast", "HISTORY", "--columns", "when=date"), "timestamp"),
        (("forecast", "HISTORY", "--kpi", "Nothing"), "Nothing"),
        (("forecast", "HISTORY", "--checkpoint", "none.safetensors"), "none.safetensors"),
        (("forecast", "HISTORY", "--catalogue", "none.toml"), "none.toml"),
        (("train", "--out", "x.safetensors", "--preset", "huge"), "nano"),
        (("backtest", "CHECKPOINT", "HISTORY", "--horizon", "5000"), "5000"),
        (("backtest", "CHECKPOINT", "HISTORY", "--stride", "-3"), "stride"),
        (("backtest", "CHECKPOINT", "HISTORY", "--max-origins", "0"), "origin"),
        (("backtest", "CHECKPOINT", "HISTORY", "--report", "CHECKPOINT/x.html"), "is a file"),
        (("train", "--out", "CHECKPOINT/x.safetensors", "--preset", "nano"), "is a file"),
        (("train", "--out", "x.safetensors", "--patience", "0"), "patience"),
        (("train", "--out", "."), "directory"),
        (("simulate", "--out", "x", "--cells", "0"), "cells"),
        (("simulate", "--out", "x", "--start", "yesterday"), "yesterday"),
        (("demo", "--data", "nowhere"), "nowhere"),
        (("model", "--checkpoint", "none.safetensors"), "none.safetensors"),
    ],
)
def test_unusable_input_is_told_in_one_line(
    history, checkpoint, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    known = {"HISTORY": str(history), "CHECKPOINT": str(checkpoint)}
    given = [
        "/".join(known.get(part, part) for part in argument.split("/")) for argument in arguments
    ]
    if given[0] in ("forecast",) and "--checkpoint" not in given:
        given += ["--checkpoint", str(checkpoint)]
    result = run(*given, code=42 if given[0] in ("train", "finetune", "calibrate") else 2)
    assert message in result.output
    assert "Traceback" not in result.output


def test_holidays_of_a_country_are_counted(checkpoint, tmp_path):
    table = tmp_path / "epiphany.csv"
    hours = [f"2026-01-{day:02d}T{hour:02d}:00:00Z" for day in range(2, 10) for hour in range(24)]
    rows = [f"{hour},Cell/1,{number % 24}" for number, hour in enumerate(hours)]
    table.write_text("\n".join(["timestamp,cell_id,RRU.PrbTotDl", *rows]) + "\n", encoding="utf-8")
    outs = [tmp_path / f"{number}.csv" for number in range(2)]
    for out, options in zip(outs, ((), ("--country", "ES")), strict=True):
        run("forecast", table, "--checkpoint", checkpoint, "--out", out, *options)
    assert outs[0].read_bytes() != outs[1].read_bytes()


def test_a_directory_without_files_is_refused(tmp_path, checkpoint):
    assert "empty" in run("forecast", tmp_path, "--checkpoint", checkpoint, code=2).output.lower()


def test_a_backtest_prints_scores_and_writes_a_report(history, checkpoint, tmp_path):
    report = tmp_path / "report.html"
    output = run(
        *("backtest", checkpoint, history, "--kpi", "RRU.PrbTotDl", "--horizon", 6),
        *("--report", report),
    ).output
    assert "seasonal" in output
    assert report.stat().st_size > 10_000


def test_the_card_of_a_checkpoint_is_shown(checkpoint):
    output = run("model", "--checkpoint", checkpoint).output
    assert "mine" in output
    assert "sha256:" in output


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch, tmp_path):
    def fail(*_args, **_kwargs):
        raise RuntimeError("a bug")

    monkeypatch.setattr("service.demo.run_demo", fail)
    result = CliRunner().invoke(rancast.app, ["demo", "--data", str(tmp_path)])
    assert isinstance(result.exception, RuntimeError)


def test_an_interrupt_ends_with_its_own_status(monkeypatch, tmp_path):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("service.demo.run_demo", interrupt)
    run("demo", "--data", tmp_path, code=130)


def test_serve_passes_its_options_to_the_settings(monkeypatch, tmp_path):
    seen = []

    def serve(settings):
        seen.append(settings)
        return 0

    monkeypatch.setattr("service.server.serve", serve)
    run("serve", "--port", 0, "--profile", "non-rt", "--ingest", tmp_path)
    assert seen[0].port == 0
    assert seen[0].profile == "non-rt"
    assert seen[0].ingest_directory == tmp_path
