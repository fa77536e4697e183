"""The ingest benchmark measures what it says it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ingest
from benchmarks.harness import Result
from kpi.readers import read


def test_made_file_has_the_shape_of_a_real_one(tmp_path: Path) -> None:
    path = tmp_path / "made.xml"
    path.write_text(ingest.made_file())
    assert 140_000 < path.stat().st_size < 200_000
    samples = sum(len(batch) for batch in read(path))
    assert 10_000 < samples < 15_000


def test_without_the_real_file_the_result_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ingest, "_SAMPLES", tmp_path / "nowhere")
    monkeypatch.setattr(
        ingest,
        "run_interleaved",
        lambda functions, **_: {name: [1.0, run() and 1.0] for name, run in functions.items()},
    )
    (result,) = ingest.measure(True)
    assert isinstance(result, Result)
    assert result.id == "ingest.pm_xml_vs_lxml"
    assert result.detail["file"] == "made file of the same shape"
    assert result.value == 1.0
