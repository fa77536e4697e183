"""Tables of `docs/operations.md`, made from what the code declares.

`python -m service.reference docs/operations.md` rewrites them; a test holds the page to them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.metric_families import FAMILIES
from service.realised.exposition import ACCURACY_FAMILIES
from service.settings import PREFIX, Settings


def settings_table() -> str:
    """Every setting: its variable, its default, what it means."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    # Pydantic puts inherited fields first; for a reader they are the special ones.
    fields = sorted(
        Settings.model_fields.items(), key=lambda f: f[0] not in Settings.__annotations__
    )
    for name, field in fields:
        rows.append(
            f"| `{PREFIX}{name.upper()}` | {_default(field.default)} | {field.description} |"
        )
    return "\n".join(rows)


def metrics_table() -> str:
    """Every metric family: its name, its kind, its labels, what it means."""
    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for family in (*FAMILIES, *ACCURACY_FAMILIES):
        labels = ", ".join(f"`{label}`" for label in family.labels)
        rows.append(f"| `{family.name}` | {family.kind} | {labels} | {family.text} |")
    return "\n".join(rows)


TABLES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {"settings": settings_table, "metrics": metrics_table}
)


def with_tables(page: str) -> str:
    """The page, with each table between its two marks written anew.

    Raises:
        ValueError: The page lacks the marks of a table.
    """
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text = table()
        page, found = pattern.subn(lambda marks, t=text: marks[1] + t + marks[2], page)  # type: ignore[misc]
        if found != 1:
            raise ValueError(f"expected one pair of marks <!-- {name} -->, found {found}")
    return page


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    shown = value.value if isinstance(value, Enum) else value
    if isinstance(value, tuple):
        shown = ",".join(value)
    return f"`{str(shown).lower() if isinstance(shown, bool) else shown}`"


def main(path: Path) -> None:
    """Rewrite the tables of a page."""
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
