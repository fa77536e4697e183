"""The table of values in the chart's README, from the comments in values.yaml.

A comment that begins with `# --` describes the key below it, which then is one row of the table
with all that is in it; keys inside that have such a comment are rows of their own. `##` begins a
section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

BEGIN, END = "<!-- values -->", "<!-- /values -->"
_KEY = re.compile(r"(?P<indent> *)(?P<name>[A-Za-z][A-Za-z0-9]*):(?: |$)")
_TYPES = {bool: "bool", int: "int", float: "float", str: "string", list: "list", dict: "object"}


class UndescribedValueError(Exception):
    """A value has no description, of its own or of what it is in."""


@dataclass(frozen=True)
class Row:
    """One value.

    Attributes:
        section: Heading that it stands under.
        path: Its keys, joined by dots.
        description: What it does.
        default: What it is unless somebody changes it.
    """

    section: str
    path: str
    description: str
    default: Any

    def text(self) -> str:
        """The row in Markdown."""
        kind = _TYPES.get(type(self.default), "")
        default = json.dumps(self.default, separators=(", ", ": "))
        cells = (f"`{self.path}`", kind, f"`{default}`", self.description)
        # A bar would end the cell, inside code as well.
        return " | ".join(["", *(cell.replace("|", "\\|") for cell in cells), ""]).strip()


def rows(values: str) -> list[Row]:
    """Every described value of a values.yaml, in its order.

    Raises:
        UndescribedValueError: A value is described nowhere.
    """
    content = yaml.safe_load(values)
    found = list(_described(values, content))
    described = {row.path for row in found}
    for path in _leaves(content, ()):
        if not any(".".join(path[:length]) in described for length in range(1, len(path) + 1)):
            raise UndescribedValueError(
                f"expected a comment that begins with `# --` above {'.'.join(path)}"
            )
    return found


def table(values: str) -> str:
    """All rows in Markdown, a table a section."""
    lines: list[str] = []
    section = None
    for row in rows(values):
        if row.section != section:
            section = row.section
            lines += ["", f"### {section}", ""]
            lines += ["| value | type | default | meaning |", "|---|---|---|---|"]
        lines.append(row.text())
    return "\n".join([*lines, ""])


def filled(readme: str, values: str) -> str:
    """The README with the table of these values between its marks."""
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(values)}\n{END}{tail}"


def _described(values: str, content: Any) -> Iterator[Row]:
    section = ""
    words: list[str] = []
    path: list[str] = []
    for line in values.splitlines():
        text = line.strip()
        if line.startswith("## "):
            section, words = line.removeprefix("## "), []
        elif text.startswith("# --"):
            words = [text.removeprefix("# --").strip()]
        elif text.startswith("#"):
            words += [text.removeprefix("#").strip()] if words else []
        elif match := _KEY.match(line):
            path = [*path[: len(match["indent"]) // 2], match["name"]]
            if words:
                yield Row(section, ".".join(path), " ".join(words), _at(content, path))
            words = []
        else:
            words = []


def _at(content: Any, path: list[str]) -> Any:
    for key in path:
        content = content[key]
    return content


def _leaves(content: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path
