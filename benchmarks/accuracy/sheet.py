"""Score sheets: what was measured of one forecaster, as files that are checked in.

The checkpoints of some seeds and of the opponents are too many to ship. What was measured of them
is, so that the benchmark can print the whole table, and can say which figures it read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.accuracy.exam import Scores
from benchmarks.harness import RESULTS, machine

Part = Mapping[str, Scores]
"""Scores by case: a task, or a task and a variant of it."""


@dataclass(frozen=True)
class Sheet:
    """Scores of one forecaster.

    Attributes:
        subject: Its name, for example `rancast-small-seed1`.
        digest: `sha256:…` of its checkpoint, empty where there is none.
        parameters: Its number of weights, 0 where it has none.
        parts: Scores by part and case.
        fresh: Parts that were measured by this process; the others were read.
    """

    subject: str
    digest: str = ""
    parameters: int = 0
    parts: Mapping[str, Part] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()

    def with_part(self, name: str, part: Part) -> Sheet:
        """The sheet with one more part, measured just now."""
        return replace(self, parts={**self.parts, name: part}, fresh=self.fresh | {name})

    def over(self, earlier: Sheet | None) -> Sheet:
        """This sheet, with the parts that it lacks as `earlier` has them of the same file."""
        if earlier is None or earlier.digest != self.digest:
            return self
        return replace(self, parts={**earlier.parts, **self.parts})

    def wql(self, part: str, case: str) -> float | None:
        """One WQL, None where it is not on the sheet."""
        return self.score(part, case, "WQL")

    def score(self, part: str, case: str, metric: str) -> float | None:
        """One score, None where it is not on the sheet."""
        return self.parts.get(part, {}).get(case, {}).get(metric)


def sheet_path(subject: str, folder: Path = RESULTS) -> Path:
    """Where the sheet of a forecaster lies."""
    return folder / f"accuracy-{subject}.json"


def read_sheet(subject: str, folder: Path = RESULTS) -> Sheet | None:
    """The sheet of a forecaster, None where there is none."""
    path = sheet_path(subject, folder)
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return Sheet(record["subject"], record["digest"], record["parameters"], record["parts"])


def write_sheet(sheet: Sheet, folder: Path = RESULTS) -> Path:
    """Write a sheet with the machine described, in place of an earlier one."""
    record: dict[str, Any] = asdict(replace(sheet, fresh=frozenset()))
    del record["fresh"]
    folder.mkdir(parents=True, exist_ok=True)
    path = sheet_path(sheet.subject, folder)
    story = {
        "benchmark": "accuracy",
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
    }
    path.write_text(json.dumps({**story, **record}, indent=2) + "\n", encoding="utf-8")
    return path
