"""`rancast plan` measures a model, says what fits and writes it down."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import rancast
from service.plan.document import from_document
from service.plan.placement import place


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setenv("RANCAST_COMPILED", "off")


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(rancast.app, ["plan", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_a_tiny_model_is_measured_from_end_to_end(tiny_file, tmp_path, monkeypatch):
    monkeypatch.setattr("service.plan.planning.count_memory", lambda *_: None)
    file, page = tmp_path / "plan.json", tmp_path / "plan.html"
    output = run(
        *("--checkpoint", tiny_file, "--seconds", 0, "--kpis", 1, "--history", 64),
        *("--horizon", 4, "--budget-ms", 50, "--budget-ms", 1000, "--period-seconds", 60),
        *("--cells", 40, "--near-rt-ms", 200, "--load", 0.5, "--threads", 1),
        *("--json", file, "--plot", page),
    )
    assert "tiny 7, eager float32" in output
    assert "near-rt, 200 ms:" in output
    plan = from_document(json.loads(file.read_text(encoding="utf-8")))
    assert plan.question.budgets_ms == (50.0, 1_000.0)
    assert plan.question.cells == 40
    assert plan.measurements.workload.history_steps == 64
    assert [each.context_steps for each in plan.measurements.contexts] == [16, 32, 48, 64]
    assert place(plan.measurements, plan.question) == plan.placement
    assert page.stat().st_size > 0


def test_memory_is_counted_in_a_process_of_its_own(tiny_file):
    from service.plan.memory import count_memory
    from service.plan.workload import Workload
    from service.settings import Settings

    settings = Settings(model_path=tiny_file, compiled="off")
    use = count_memory(settings, Workload(1, 64, 900_000, 4, (0.1, 0.9)), 32)
    if use is None:
        pytest.skip("the system tells no peak of a process")
    assert use.loaded > 100 * 2**20
    assert use.cells == 32
    assert 0 <= use.per_cell < 2**28


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--horizon", 100_000), "expected a horizon"),
        (("--context", 100), "expected a context of 16 to 64 samples"),
        (("--kpis", 0), "expected kpis of at least 1"),
        (("--cells", 0), "cells, as many as a request may hold"),
        (("--budget-ms", -1), "expected budgets and periods above 0"),
        (("--load", 1.5), "expected a load above 0, to 1"),
        (("--plot", "plan.pdf"), "expected a picture that ends in"),
        (("--threads", 0), "threads=0"),
        (("--checkpoint", "none.safetensors"), "none.safetensors"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_measured(
    tiny_file, monkeypatch, options, said
):
    monkeypatch.setattr(
        "service.plan.planning.time_calls", lambda *_, **__: pytest.fail("measured")
    )
    monkeypatch.setattr("service.plan.planning.count_memory", lambda *_: pytest.fail("counted"))
    chosen = () if "--checkpoint" in options else ("--checkpoint", tiny_file)
    assert said in run(*chosen, *options, code=2)


def test_it_has_help():
    assert "in which control loops" in " ".join(run("--help").split())
