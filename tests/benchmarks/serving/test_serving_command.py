"""One command prints the table; single figures can be measured again, the others stay."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.harness import Result
from benchmarks.serving import command
from benchmarks.serving.bench import Bench
from benchmarks.serving.command import FIGURES, earlier_figures, measure, run

TABLE = (
    "one_cell bulk_json bulk_arrow batching_rps batching_cpu batching_p50 vs_litserve vs_bentoml "
    "overload_in_time overload_goodput overload_refusal_ms overload_rungs soak"
)


class NoGenerator:
    def __init__(self, core: int) -> None:
        pass

    def __enter__(self) -> NoGenerator:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Figures that were measured, each with the value 1."""
    done: list[str] = []

    def figure(names: tuple[str, ...]):
        def measure_them(_: Bench):
            for name in names:
                done.append(name)
                yield Result(name, 1.0, "x")

        return measure_them

    monkeypatch.setattr(command, "FIGURES", {names: figure(names) for names in FIGURES})
    monkeypatch.setattr(command, "Generator", NoGenerator)
    return done


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [asdict(Result(name, 0.5, "x")) for names in FIGURES for name in names]
    (tmp_path / "serving.json").write_text(json.dumps({"results": rows}), encoding="utf-8")
    return tmp_path


def test_all_figures_of_the_table_are_measured(measured: list[str], results: Path) -> None:
    found = [figure.id for figure in measure(False, results=results)]
    assert found == measured == [f"serving.{name}" for name in TABLE.split()]


def test_only_what_is_named_is_measured_and_the_rest_stays(
    measured: list[str], results: Path
) -> None:
    found = {row.id: row.value for row in measure(False, ["serving.soak"], results)}
    assert measured == ["serving.soak"]
    assert found.pop("serving.soak") == 1.0
    assert len(found) == len(TABLE.split()) - 1
    assert {*found.values()} == {0.5}


def test_figures_that_share_a_run_are_measured_together(measured: list[str], results: Path) -> None:
    list(measure(False, ["serving.overload_in_time"], results))
    assert measured == [f"serving.{name}" for name in TABLE.split() if "overload" in name]


def test_a_quick_run_shows_only_what_it_measured(measured: list[str], results: Path) -> None:
    assert [row.id for row in measure(True, ["serving.vs_*"], results)] == measured


def test_without_an_earlier_run_there_are_no_earlier_figures(tmp_path: Path) -> None:
    assert earlier_figures(tmp_path) == {}


def test_a_figure_that_does_not_exist_is_refused_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run(["--only", "serving.speed"])
    assert "no figure is called serving.speed" in capsys.readouterr().err
