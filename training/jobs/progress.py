"""What a job says of itself: JSON objects, one a line, among lines that are none.

    {"event": "start", ...}
    {"event": "step", "step": 300, "of": 2000, "loss": 0.21, "validation": 0.2, "trouble": null, …}
    {"event": "done", "checkpoint": "mine.safetensors"}
    {"event": "warning", "reason": "..."}
    {"event": "error", "reason": "..."}

A run that counts epochs says `epoch` in the place of `step`.

It is read with tolerance, because a job may be of another version: fields that are missing stay as
they were, fields and events that are not known are passed over. Whether a job succeeded is never
learnt here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

LONGEST_LINE = 65_536
"""Characters beyond which a line is no event; parsing it would cost more than it says."""

_LAUNCHERS = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ torch/")
"""How lines of torchrun begin, which say that a process ended and not why."""


@dataclass(frozen=True)
class Event:
    """One object that a job printed."""

    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Progress:
    """What a job has said so far; None where it has not.

    Attributes:
        done: Steps, or epochs, done.
        of: How many there are in all.
        unit: What is counted: step or epoch.
        loss: The last training loss.
        validation: The last validation loss.
        seconds: How long it has taken, as the job tells it.
        checkpoint: What it has written.
        warning: What it did without.
        trouble: What does not work now, and may again.
        error: Why it gave up.
    """

    done: int | None = None
    of: int | None = None
    unit: str = "step"
    loss: float | None = None
    validation: float | None = None
    seconds: float | None = None
    checkpoint: str | None = None
    warning: str | None = None
    trouble: str | None = None
    error: str | None = None

    def after(self, event: Event) -> Progress:
        """The progress once an event has been read."""
        fields, reason = event.fields, _text(event.fields.get("reason"))
        trouble = _text(fields["trouble"]) if "trouble" in fields else self.trouble
        told: dict[str, Any] = {
            "of": _count(fields.get("of")),
            "loss": _number(fields.get("loss")),
            "validation": _number(fields.get("validation")),
            "seconds": _number(fields.get("seconds")),
        }
        for unit in ("epoch", "step"):
            if (done := _count(fields.get(unit))) is not None:
                told |= {"done": done, "unit": unit}
        match event.kind:
            case "error":
                told["error"] = reason
            case "warning":
                told["warning"] = reason
            case "done":
                told["checkpoint"] = _text(fields.get("checkpoint"))
            case "start":
                # A new attempt: what the one before could not do is not its error.
                return Progress(of=told["of"])
        known = {name: value for name, value in told.items() if value is not None}
        return replace(self, **known, trouble=trouble)


def parse_event(line: str) -> Event | None:
    """The event that a line is, or None where it is another line."""
    text = line.strip()
    if not text.startswith("{") or len(text) > LONGEST_LINE:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = value.get("event")
    return Event(kind, value) if isinstance(kind, str) else None


def progress_of(lines: Iterable[str]) -> Progress | None:
    """What the lines of a job say together; None where no line is an event."""
    progress = None
    for line in lines:
        if event := parse_event(line):
            progress = (progress or Progress()).after(event)
    return progress


def last_words(lines: Iterable[str]) -> str | None:
    """Why a job gave up, by its own words: its last error, or else its last line of text.

    torchrun speaks last where it started the process; its words count where there are no others.
    """
    text, launchers, reason = None, None, None
    for line in lines:
        event = parse_event(line)
        if event is None:
            if _LAUNCHERS.match(line):
                launchers = line.strip()
            else:
                text = line.strip() or text
        elif event.kind == "error":
            reason = _text(event.fields.get("reason")) or reason
    spoken = reason or text or launchers
    return spoken.removeprefix("rancast: ") if spoken else None


def _count(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 0 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
