"""What every benchmark shares: interleaved timing, results with targets, and how they are shown.

A module `benchmarks.NAME` has one function `measure(quick) -> Iterable[Result]` and ends in
`main("NAME", measure)`. `python -m benchmarks.NAME` prints a table, with `--json` one JSON object a
line; `--quick` is the short run. A full run also writes `benchmarks/results/NAME.json` with the
machine described in general terms: no host name, no path.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


class Unavailable(Exception):
    """What a benchmark needs is not here; the message says what. Nothing is measured."""


RESULTS = Path(__file__).with_name("results")
_VERSIONS = (
    "torch",
    "numpy",
    "pyarrow",
    "lxml",
    "fastapi",
    "uvicorn",
    "onnxruntime",
    "openvino",
)


@dataclass(frozen=True)
class Result:
    """One figure.

    Attributes:
        id: Name of the figure, as the issues spell it, for example `ingest.pm_xml_vs_lxml`.
        value: What was measured.
        unit: Its unit; `x` for a ratio to the opponent.
        opponent: What it was compared with, empty where there is none.
        target: The bound that the figure should keep, None where it is for information.
        met: Whether it does, None without a target.
        detail: Anything that helps to judge the figure: medians, spread, sizes, notes.
    """

    id: str
    value: float
    unit: str
    opponent: str = ""
    target: float | None = None
    met: bool | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def at_most(
        id: str, value: float, unit: str, target: float, *, opponent: str = "", **detail: Any
    ) -> Result:
        """A figure that is better when it is lower."""
        return Result(id, value, unit, opponent, target, value <= target, detail)

    @staticmethod
    def at_least(
        id: str, value: float, unit: str, target: float, *, opponent: str = "", **detail: Any
    ) -> Result:
        """A figure that is better when it is higher."""
        return Result(id, value, unit, opponent, target, value >= target, detail)


def run_interleaved(
    functions: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    warmups: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time several functions turn by turn, so that a slow spell of the machine hits all of them.

    The order rotates from round to round; the garbage collector rests while a function runs, as in
    `timeit`: a collection between rounds would leave whichever comes first with cold caches.

    Args:
        functions: What to time, by name.
        repeats: Timed rounds.
        warmups: Rounds before them that do not count.
        clock: `time.perf_counter`, or `time.process_time` to compare CPU time.

    Returns:
        Seconds of every round by name, in the order of the rounds.

    Raises:
        ValueError: `repeats` is not positive.
    """
    if repeats < 1:
        raise ValueError(f"expected at least 1 repeat, got {repeats}")
    names = list(functions)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(warmups):
        for name in names:
            functions[name]()
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for turn in range(repeats):
            shift = turn % len(names) if names else 0
            for name in names[shift:] + names[:shift]:
                begin = clock()
                functions[name]()
                seconds[name].append(clock() - begin)
    finally:
        if was_enabled:
            gc.enable()
    return seconds


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median, lowest and quartile range of timings, for a result's detail."""
    ordered = sorted(seconds)
    quarter = len(ordered) // 4
    return {
        "median_seconds": statistics.median(ordered),
        "min_seconds": ordered[0],
        "quartile_range_seconds": ordered[-1 - quarter] - ordered[quarter],
        "runs": len(ordered),
    }


def machine() -> dict[str, Any]:
    """The machine in general terms: processor, cores, memory, system and library versions."""
    versions = {}
    for name in _VERSIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    memory_kib = _field("/proc/meminfo", "MemTotal").partition(" ")[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": cores,
        "memory_gib": round(int(memory_kib) / 2**20, 1) if memory_kib.isdecimal() else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _field(path: str, name: str) -> str:
    """Value of the first `name: value` line, empty where there is no such file or line."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def show(results: Sequence[Result], console: Console) -> None:
    """Print results as a table for people, with their scalar details beside them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for title in ("value", "target", "met", "against", "detail"):
        right = title in ("value", "target")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for result in results:
        detail = " ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in result.detail.items()
            if isinstance(value, str | int | float)
        )
        table.add_row(
            result.id,
            f"{result.value:.4g} {result.unit}",
            "" if result.target is None else f"{result.target:g}",
            "" if result.met is None else ("yes" if result.met else "NO"),
            result.opponent,
            detail,
        )
    console.print(table)


def main(
    name: str,
    measure: Callable[[bool], Iterable[Result]],
    arguments: Sequence[str] | None = None,
    *,
    results: Path = RESULTS,
) -> None:
    """Run a benchmark from the command line.

    Args:
        name: Name of the benchmark, also of its results file.
        measure: Called with True for a quick run; yields the figures.
        arguments: Command line, `sys.argv` by default.
        results: Folder that a full run writes `NAME.json` to.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--quick", action="store_true", help="short run with a wider spread")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    figures = []
    try:
        for result in measure(options.quick):
            figures.append(result)
            if options.json:
                sys.stdout.write(json.dumps(asdict(result)) + "\n")
                sys.stdout.flush()
    except Unavailable as reason:
        sys.stderr.write(f"{name}: nothing measured: {reason}\n")
        return
    if not options.json:
        show(figures, Console())
    if not options.quick:
        results.mkdir(parents=True, exist_ok=True)
        record = {
            "benchmark": name,
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "results": [asdict(figure) for figure in figures],
        }
        text = json.dumps(record, indent=2) + "\n"
        (results / f"{name}.json").write_text(text, encoding="utf-8")
