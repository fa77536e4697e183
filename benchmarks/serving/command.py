"""What is measured, and the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.harness import RESULTS, Result, main
from benchmarks.serving.bench import Bench, Figure
from benchmarks.serving.generator import Generator
from benchmarks.serving.overload import measure_overload
from benchmarks.serving.plain import measure_batching, measure_overhead
from benchmarks.serving.processes import Cores
from benchmarks.serving.rivals import measure_bentoml, measure_litserve
from benchmarks.serving.soak import measure_soak

NAME = "serving"
# Groups share a server and a run; the figures of each, in the order of the table.
FIGURES: Mapping[tuple[str, ...], Figure] = {
    ("serving.one_cell", "serving.bulk_json", "serving.bulk_arrow"): measure_overhead,
    ("serving.batching_rps", "serving.batching_cpu", "serving.batching_p50"): measure_batching,
    ("serving.vs_litserve",): measure_litserve,
    ("serving.vs_bentoml",): measure_bentoml,
    (
        "serving.overload_in_time",
        "serving.overload_goodput",
        "serving.overload_refusal_ms",
        "serving.overload_rungs",
    ): measure_overload,
    ("serving.soak",): measure_soak,
}


def measure(quick: bool, only: Sequence[str] = (), results: Path = RESULTS) -> Iterator[Result]:
    """All figures.

    Args:
        quick: Fewer and shorter turns.
        only: Patterns of the figures to measure, all where there are none; the others are those of
            the last run.
        results: Where its figures are.
    """
    earlier = earlier_figures(results) if only else {}
    with Generator(Cores.of_this_machine().generator) as generator:
        bench = Bench(generator, Cores.of_this_machine(), quick, _say)
        for names, figure in FIGURES.items():
            if not only or any(fnmatchcase(name, each) for name in names for each in only):
                yield from figure(bench)
            elif not quick:
                yield from (earlier[name] for name in names if name in earlier)


def earlier_figures(results: Path) -> dict[str, Result]:
    """The figures of the last run by name, none where there was none."""
    path = results / f"{NAME}.json"
    if not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["results"]
    return {row["id"]: Result(**row) for row in rows}


def run(arguments: Sequence[str] | None = None) -> None:
    """Measure, as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving")
    parser.add_argument("--quick", action="store_true", help="short run with a wider spread")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="FIGURE",
        help="measure these (and what is measured with them), as in serving.overload_*; the others "
        "stay as they were",
    )
    options = parser.parse_args(arguments)
    known = [name for names in FIGURES for name in names]
    for pattern in options.only:
        if not any(fnmatchcase(name, pattern) for name in known):
            parser.error(f"no figure is called {pattern}; there are {', '.join(known)}")
    flags = [f"--{flag}" for flag in ("quick", "json") if getattr(options, flag)]
    main(NAME, lambda quick: measure(quick, options.only), flags)


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
