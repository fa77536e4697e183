"""The benchmark harness: fair turns, honest verdicts, no host or path in results."""

from __future__ import annotations

import gc
import json
import socket
from itertools import count
from pathlib import Path

import pytest

from benchmarks.harness import Result, machine, main, run_interleaved, spread


def test_functions_take_turns_in_rotating_order() -> None:
    calls: list[str] = []
    run_interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=2, warmups=0
    )
    assert calls == ["a", "b", "b", "a"]


def test_warmups_run_but_do_not_count() -> None:
    calls: list[str] = []
    seconds = run_interleaved({"a": lambda: calls.append("a")}, repeats=3, warmups=2)
    assert len(calls) == 5
    assert len(seconds["a"]) == 3


def test_seconds_are_differences_of_the_given_clock() -> None:
    ticks = count(0.0, 0.5)
    seconds = run_interleaved({"a": lambda: None}, repeats=2, clock=lambda: next(ticks))
    assert seconds == {"a": [0.5, 0.5]}


def test_garbage_collector_rests_during_timing_and_is_restored_after_a_failure() -> None:
    assert gc.isenabled()
    states: list[bool] = []

    def fail() -> None:
        states.append(gc.isenabled())
        raise KeyError

    with pytest.raises(KeyError):
        run_interleaved({"a": fail}, repeats=1, warmups=0)
    assert states == [False]
    assert gc.isenabled()


def test_disabled_garbage_collector_stays_disabled() -> None:
    gc.disable()
    try:
        run_interleaved({"a": lambda: None}, repeats=1)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_no_repeats_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        run_interleaved({"a": lambda: None}, repeats=0)


def test_spread_gives_median_and_quartile_range() -> None:
    found = spread([4.0, 1.0, 2.0, 3.0, 100.0])
    assert found["median_seconds"] == 3.0
    assert found["min_seconds"] == 1.0
    assert found["quartile_range_seconds"] == 2.0


def test_verdict_follows_the_direction_of_the_target() -> None:
    assert Result.at_most("t", 2.5, "x", 2.5).met is True
    assert Result.at_most("t", 2.6, "x", 2.5).met is False
    assert Result.at_least("t", 2.5, "x", 2.5).met is True
    assert Result.at_least("t", 2.4, "x", 2.5).met is False


def test_json_gives_one_object_a_line_with_every_field(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(
        "demo",
        lambda quick: [Result.at_most("demo.a", 1.0, "s", 2.0, opponent="b", quick=quick)],
        ["--json", "--quick"],
        results=tmp_path,
    )
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "id": "demo.a",
        "value": 1.0,
        "unit": "s",
        "opponent": "b",
        "target": 2.0,
        "met": True,
        "detail": {"quick": True},
    }
    assert not list(tmp_path.iterdir()), "a quick run writes no results"


def test_full_run_prints_a_table_and_writes_results_without_host_or_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    main(
        "demo",
        lambda _: [Result("demo.a", 3.25, "s"), Result.at_least("demo.b", 1, "x", 2, runs=3)],
        [],
        results=folder,
    )
    out = capsys.readouterr().out
    assert "demo.a" in out
    assert "NO" in out
    text = (folder / "demo.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert [r["id"] for r in record["results"]] == ["demo.a", "demo.b"]
    assert record["machine"]["cores"] >= 1
    assert str(tmp_path) not in text
    assert socket.gethostname() not in text


def test_machine_is_described_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    found = machine()
    assert found["memory_gib"] is None
    assert found["python"]
