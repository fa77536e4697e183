"""Tables of measured figures in the documentation, made from what the benchmarks wrote.

A page says where a table belongs, which figures it shows and which of their details, by a comment:

    <!-- figures accuracy: accuracy.*.zero_shot accuracy.*.tuned | min max lightgbm -->
    <!-- end -->

`python -m benchmarks.tables` writes the tables anew; a test holds the pages to the results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"(?P<begin><!-- figures (?P<name>\w+): (?P<ids>[^|>]+?)(?: \| (?P<details>[^>]+?))? -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)


def pages() -> list[Path]:
    """All pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def renewed(text: str, results: Path = RESULTS) -> str:
    """A page with its tables made from the results.

    Raises:
        KeyError: The results lack a benchmark or a figure that the page names.
    """

    def table(match: re.Match[str]) -> str:
        found = _chosen(_read(match["name"], results), match["ids"].split())
        rows = _table(found, (match["details"] or "").split())
        return f"{match['begin']}\n{rows}\n\n{match['end']}"

    return _BLOCK.sub(table, text)


def _read(name: str, results: Path) -> list[Mapping[str, Any]]:
    path = results / f"{name}.json"
    if not path.is_file():
        raise KeyError(f"expected results of the benchmark {name}, there is no {path.name}")
    figures: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return figures


def _chosen(
    figures: Sequence[Mapping[str, Any]], patterns: Sequence[str]
) -> list[Mapping[str, Any]]:
    chosen = []
    for pattern in patterns:
        matching = [figure for figure in figures if fnmatchcase(figure["id"], pattern)]
        if not matching:
            raise KeyError(f"expected a figure {pattern}, the results have none")
        chosen += [figure for figure in matching if figure not in chosen]
    return chosen


def _table(figures: Sequence[Mapping[str, Any]], details: Sequence[str]) -> str:
    heads = ["figure", "measured", *(name.replace("_", " ") for name in details)]
    # Where nothing was asked, nothing says so in every row.
    is_judged = any(_asked(figure) or figure["met"] is not None for figure in figures)
    if is_judged:
        heads += ["asked", "met"]
    lines = [heads, ["---"] * len(heads)]
    for figure in figures:
        unit = figure["unit"] if figure["unit"] not in ("ratio", "share", "WQL") else ""
        lines.append(
            [
                f"`{figure['id']}`",
                f"{_number(figure['value'])} {unit}".strip(),
                *(_number(figure["detail"].get(name)) for name in details),
            ]
        )
        if is_judged:
            met = {True: "yes", False: "**no**", None: ""}[figure["met"]]
            lines[-1] += [_asked(figure), met]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _asked(figure: Mapping[str, Any]) -> str:
    return str(figure["detail"].get("inside") or _number(figure["target"]))


def _number(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"


def main() -> None:
    """Write the tables of all pages anew."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
