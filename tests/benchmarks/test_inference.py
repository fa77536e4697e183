"""The inference benchmark: what its figures are made of, and that opponents compute the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
import torch

from benchmarks.harness import Unavailable
from benchmarks.inference import opponents as opponents_module
from benchmarks.inference.command import Disagreement, measure_shape
from benchmarks.inference.opponents import PACKAGES, check_installed
from benchmarks.inference.paths import EAGER, Path, eager_path
from benchmarks.inference.rows import Measured, Timing, lacking, rows
from benchmarks.inference.shapes import SHAPES, Shape, draw_windows
from kpi.catalogue import load_catalogue
from model.checkpoint import Checkpoint
from model.config import PRESETS
from model.forecaster import Forecaster

needs_opponents = pytest.mark.skipif(
    not all(map(find_spec, PACKAGES)),
    reason="the opponents come with the benchmark extra, which is not installed",
)


def timing(path: str, whole_ms: float, precision="fp32", is_ours=False) -> Timing:
    return Timing(path, precision, is_ours, whole_ms)


def at(shape: Shape, *, slower: float = 1.0, bf16: bool = True) -> Measured:
    timings = [
        timing(EAGER, 12.0, is_ours=True),
        timing("compiled", 4.0 * slower, is_ours=True),
        timing("ORT fp32", 6.0),
        timing("OV fp32", 5.0),
        timing("ORT int8", 3.0, "int8"),
        timing("OV bf16", 2.5, "bf16"),
    ]
    if bf16:
        timings.append(timing("compiled bf16", 2.0 * slower, "bf16", is_ours=True))
    return Measured(shape, timings)


def everywhere(**options) -> list[Measured]:
    return [at(shape, **options) for shape in SHAPES]


def test_our_fastest_path_meets_the_fastest_opponent_of_the_same_precision() -> None:
    found = {row.id: row for row in rows(everywhere(), "avx2")}
    assert found["inference.fp32.b1"].value == pytest.approx(5 / 4)
    assert found["inference.fp32.b1"].detail["faster_opponent"] == "OV fp32"
    assert found["inference.fp32.b1"].detail["ours"] == "compiled"
    assert found["inference.bf16.b32"].value == pytest.approx(12 / 2)
    assert found["inference.bf16.b32"].detail["isa"] == "avx2"
    assert found["inference.bf16.vs_best"].value == pytest.approx(2.5 / 2)


def test_targets_are_those_of_the_issue() -> None:
    found = {row.id: row.target for row in rows(everywhere(), "avx2")}
    assert found == {
        "inference.fp32.b1": 1.0,
        "inference.fp32.b32": 1.1,
        "inference.bf16.b1": 4.0,
        "inference.bf16.b32": 4.0,
        "inference.bf16.vs_best": 1.0,
    }


@pytest.mark.parametrize("slow", range(len(SHAPES)))
def test_the_worse_number_of_kpis_counts(slow: int) -> None:
    measured = everywhere()
    measured[slow] = at(SHAPES[slow], slower=2.0)
    found = {row.id: row for row in rows(measured, "avx2")}
    windows = SHAPES[slow].windows
    assert found[f"inference.fp32.b{windows}"].value == pytest.approx(5 / 8)
    assert found[f"inference.fp32.b{windows}"].met is False
    assert found[f"inference.fp32.b{windows}"].detail["kpis"] == SHAPES[slow].kpis
    assert found[f"inference.fp32.b{33 - windows}"].value == pytest.approx(5 / 4)
    assert found["inference.bf16.vs_best"].value == pytest.approx(2.5 / 4)


def test_without_a_bf16_path_its_figures_are_left_out_and_it_is_said_why() -> None:
    measured = everywhere(bf16=False)
    assert {row.id for row in rows(measured, "avx2")} == {"inference.fp32.b1", "inference.fp32.b32"}
    assert "bfloat16" in lacking(measured)
    assert lacking(everywhere()) == ""


def test_one_shape_without_a_bf16_path_leaves_its_batch_out() -> None:
    measured = everywhere()
    measured[0] = at(SHAPES[0], bf16=False)
    found = {row.id for row in rows(measured, "avx2")}
    assert {"inference.bf16.b1", "inference.bf16.vs_best"}.isdisjoint(found)
    assert "inference.bf16.b32" in found


def test_windows_have_the_shape_asked_for_and_are_the_same_again() -> None:
    windows = draw_windows(Shape(windows=3, kpis=2))
    assert [window.values.shape for window in windows] == [(2, 672)] * 3
    again = draw_windows(Shape(windows=3, kpis=2))
    assert all((a.values == b.values).all() for a, b in zip(windows, again, strict=True))


def test_every_kpi_of_the_windows_is_in_the_catalogue() -> None:
    (window,) = draw_windows(Shape(windows=1, kpis=4))
    catalogue = load_catalogue()
    assert all(catalogue.resolve(name).name == name for name in window.kpis)


def test_missing_opponents_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        opponents_module, "find_spec", lambda name: None if name == "openvino" else object()
    )
    with pytest.raises(Unavailable, match=r"^openvino not installed.*\[benchmark\]"):
        check_installed()


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    torch.manual_seed(3)
    forecaster = Forecaster(PRESETS["nano"])
    with torch.no_grad():
        for weight in forecaster.parameters():  # none may be zero, else half of it computes nothing
            weight.add_(torch.randn_like(weight) * 0.05)
    return Checkpoint("nano", "1", PRESETS["nano"], forecaster.state_dict(), "1")


def aside(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What it returns, on a thread of its own: opponents let theirs take tiny numbers for zero."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments, **options).result()


@needs_opponents
@pytest.mark.parametrize("shape", [Shape(1, 1), Shape(2, 3)], ids=["one", "several"])
def test_opponents_agree_and_every_path_is_timed(checkpoint: Checkpoint, shape: Shape) -> None:
    found = aside(measure_shape, checkpoint, [eager_path(checkpoint)], shape, rounds=2)
    moved = {timing.path: timing.moved for timing in found.timings}
    assert set(moved) == {
        EAGER,
        "ONNX Runtime fp32",
        "ONNX Runtime int8",
        "OpenVINO fp32",
        "OpenVINO bf16",
    }
    assert 0 < moved["ONNX Runtime int8"] < 0.5
    assert moved["OpenVINO bf16"] < 0.5
    assert all(timing.whole_ms > 0 and timing.network_ms for timing in found.timings)
    assert [timing.path for timing in found.timings if timing.is_ours] == [EAGER]


@needs_opponents
def test_a_path_that_computes_something_else_is_refused(checkpoint: Checkpoint) -> None:
    eager = eager_path(checkpoint)
    wrong = replace(eager, name="wrong", forecaster=lambda tokens: eager.forecaster(tokens) + 1e-3)
    with pytest.raises(Disagreement, match="wrong"):
        aside(measure_shape, checkpoint, [eager, wrong], Shape(1, 1), rounds=1)


def test_our_first_path_is_the_eager_one(checkpoint: Checkpoint) -> None:
    first: Path = eager_path(checkpoint)
    assert first.name == EAGER
    assert first.precision == "fp32"
