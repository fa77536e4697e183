"""Where a run stands, as one JSON object a line: what a program that started the run reads.

The training loop counts optimiser steps, so there are no epochs:

{"event": "start", "command": "train", "of": 2000, "checkpoint": "…", "processes": 1}
{"event": "step", "step": 200, "of": 2000, "loss": 0.41, "validation": 0.39, "trouble": null, …}
{"event": "done", "checkpoint": "…", "digest": "sha256:…", "step": 2000, "of": 2000, …}
{"event": "error", "reason": "…", "status": 42}

The first comes at once, the last is `done` or `error`; figures that are not known are null, and so
is the trouble of a run whose state could be saved.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from model.checkpoint import Checkpoint
from training.exit_status import status_of
from training.fit import Progress
from training.storage import Place

LINE_SECONDS = 5.0
"""Least time between two lines about steps, unless there is a new validation loss or trouble."""


class Report(Protocol):
    """Takes what happens in a run."""

    def start(self, command: str, place: Place, steps: int | None, processes: int) -> None:
        """A run of so many steps begins; None where their number depends on the data."""

    def step(self, progress: Progress) -> None:
        """A step was done."""

    def done(self, place: Place, checkpoint: Checkpoint) -> None:
        """The checkpoint is written."""

    def error(self, error: BaseException) -> None:
        """The run ends without a checkpoint."""


class NoReport:
    """Says nothing."""

    def start(self, command: str, place: Place, steps: int | None, processes: int) -> None:
        """Says nothing."""

    def step(self, progress: Progress) -> None:
        """Says nothing."""

    def done(self, place: Place, checkpoint: Checkpoint) -> None:
        """Says nothing."""

    def error(self, error: BaseException) -> None:
        """Says nothing."""


class JsonLines:
    """Writes the lines, each at once and whole."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to a stream.

        Args:
            stream: Where to.
            clock: Seconds that only grow.
        """
        self._stream = stream
        self._clock = clock
        self._started_at = self._told_at = clock()
        self._told_validation: float | None = None
        self._last: Progress | None = None

    def start(self, command: str, place: Place, steps: int | None, processes: int) -> None:
        """The first line."""
        self._write("start", command=command, of=steps, checkpoint=str(place), processes=processes)

    def step(self, progress: Progress) -> None:
        """A line now and then: for a validation, for trouble, for the first and the last step."""
        now = self._clock()
        before, self._last = self._last, progress
        is_new = (
            before is None
            or progress.trouble != before.trouble
            or progress.validation_loss != self._told_validation
            or progress.step == progress.steps
        )
        if not (is_new or now - self._told_at >= LINE_SECONDS):
            return
        self._told_at, self._told_validation = now, progress.validation_loss
        self._write(
            "step",
            step=progress.step,
            of=progress.steps,
            loss=_figure(progress.loss),
            validation=_figure(progress.validation_loss),
            seconds=round(now - self._started_at, 3),
            seconds_left=_figure(progress.seconds_left),
            trouble=progress.trouble,
        )

    def done(self, place: Place, checkpoint: Checkpoint) -> None:
        """The last line of a run that went well."""
        self._write(
            "done",
            checkpoint=str(place),
            digest=checkpoint.digest,
            step=checkpoint.training.get("steps") if self._last is None else self._last.step,
            of=None if self._last is None else self._last.steps,
            validation=None if self._last is None else _figure(self._last.validation_loss),
            seconds=round(self._clock() - self._started_at, 3),
        )

    def error(self, error: BaseException) -> None:
        """The last line of a run that did not."""
        stopped = isinstance(error, KeyboardInterrupt)
        reason = "stopped by Ctrl-C or SIGTERM" if stopped else str(error) or type(error).__name__
        self._write("error", reason=reason, status=status_of(error))

    def _write(self, event: str, **content: Any) -> None:
        line = json.dumps({"event": event, **content}, ensure_ascii=False, allow_nan=False)
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except BrokenPipeError:
            # Nobody reads any more. The run goes on, and what is still in the stream goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


def _figure(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
