"""Running a simulated network: its history at once, then period by period until it is stopped."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from training.simulate.cell import Gnb
from training.simulate.dialects import DIALECTS, Dialect
from training.simulate.faults import FaultPlan
from training.simulate.local_time import local_datetime
from training.simulate.options import SimulateOptions
from training.simulate.report import Report
from training.simulate.reporter import Reporter
from training.simulate.state import State, open_state
from training.simulate.stop import Stop, stop_on_signals
from training.simulate.writer import write_whole

HISTORY_DIRECTORY = "history"
LIVE_DIRECTORY = "live"

Phase = Literal["history", "live"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        phase: Part of the run.
        done: Periods of this part that are written, those of earlier runs included in the history.
        total: Periods of this part, None where it goes on until stopped.
        period_end_ms: End of the newest written period, milliseconds since 1970.
        files: Files that this run wrote.
    """

    phase: Phase
    done: int
    total: int | None
    period_end_ms: int
    files: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did.

    Attributes:
        gnbs: Number of gNBs.
        cells: Number of cells.
        history_periods: Periods of the history that this run wrote.
        live_periods: Live periods that this run wrote.
        files: Files written.
        bytes: Their size.
        samples: Values in them, missing ones included.
        first_ms: Begin of the first period of the directory.
        end_ms: End of the newest period, which is where a next run goes on.
        history_seconds: Wall time of the history.
        is_stopped: The run was stopped before it was complete.
    """

    gnbs: int
    cells: int
    history_periods: int
    live_periods: int
    files: int
    bytes: int
    samples: int
    first_ms: int
    end_ms: int
    history_seconds: float
    is_stopped: bool


ProgressCallback = Callable[[Progress], None]


def simulate(
    options: SimulateOptions,
    progress: ProgressCallback | None = None,
    *,
    stop: Stop | None = None,
    now_seconds: Callable[[], float] = time.time,
) -> Summary:
    """Write the history of a network and go on live until the periods are written or it is stopped.

    A directory that an earlier run wrote is continued at the next period, with the same options.
    SIGINT and SIGTERM end a run in the main thread after the file that is being written.

    Args:
        options: What to simulate.
        progress: Called after each written day or period.
        stop: Ends the run when set, as a signal does.
        now_seconds: Clock that a new history ends at, seconds since 1970.

    Raises:
        DirectoryError: The output directory holds something else.
        OSError: A file cannot be written.
    """
    stop = stop or Stop()
    with stop_on_signals(stop):
        state = open_state(options, int(now_seconds() * 1000))
        return _Run(options, state, progress or _ignore, stop).run()


@dataclass
class _Tally:
    files: int = 0
    bytes: int = 0
    samples: int = 0
    history_periods: int = 0
    live_periods: int = 0


@dataclass
class _Run:
    options: SimulateOptions
    state: State
    progress: ProgressCallback
    stop: Stop
    tally: _Tally = field(default_factory=_Tally)
    kept: deque[tuple[int, Path]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        network = self.options.network()
        self.reporter = Reporter(network, FaultPlan(self.options.seed, self.options.faults))
        names = self.options.dialects
        self.sources: list[tuple[Gnb, Dialect]] = [
            (gnb, DIALECTS[names[gnb.index % len(names)]]) for gnb in network.gnbs
        ]
        self.zone = network.zone

    def run(self) -> Summary:
        begin = time.perf_counter()
        self.state.save(self.options.out)
        self._history()
        history_seconds = time.perf_counter() - begin
        if not self.stop.is_set():
            self._live()
        return Summary(
            gnbs=len(self.sources),
            cells=self.options.cells,
            history_periods=self.tally.history_periods,
            live_periods=self.tally.live_periods,
            files=self.tally.files,
            bytes=self.tally.bytes,
            samples=self.tally.samples,
            first_ms=self.state.first * self.options.period_ms,
            end_ms=self.state.next * self.options.period_ms,
            history_seconds=history_seconds,
            is_stopped=self._remaining() > 0,
        )

    def _remaining(self) -> float:
        history = max(self.state.live - self.state.next, 0)
        periods = math.inf if self.options.periods is None else self.options.periods
        return history + periods - self.tally.live_periods

    def _history(self) -> None:
        directory = self.options.out / HISTORY_DIRECTORY
        for first, count in self._days(self.state.next, self.state.live):
            for gnb, dialect in self.sources:
                if self.stop.is_set():
                    return
                if self.options.history_layout == "day" and dialect.many_periods:
                    report = self.reporter.daily(gnb, first, count)
                    if report is not None:
                        self._write(directory, dialect, report)
                else:
                    for step in range(first, first + count):
                        self._write_due(directory, gnb, dialect, step)
            self._advance(first + count)
            self.tally.history_periods += count
            self._tell("history", self.state.next - self.state.first, self._history_total())

    def _live(self) -> None:
        directory = self.options.out / LIVE_DIRECTORY
        begin = time.monotonic()
        while self._remaining() > 0:
            # Paced by the begin of the run, not by the last period: delays do not add up.
            due = begin + self.tally.live_periods / self.options.speed
            if self.stop.wait(max(due - time.monotonic(), 0.0)):
                return
            step = self.state.next
            for gnb, dialect in self.sources:
                paths = self._write_due(directory, gnb, dialect, step)
                self.kept.extend((step, path) for path in paths)
            self._remove_before(step + 1 - self.options.kept_periods)
            self._advance(step + 1)
            self.tally.live_periods += 1
            self._tell("live", self.tally.live_periods, self.options.periods)

    def _write_due(self, directory: Path, gnb: Gnb, dialect: Dialect, step: int) -> list[Path]:
        """Write the files of a gNB that arrive at the end of period `step`."""
        return [
            self._write(directory, dialect, self.reporter.single(gnb, delivery))
            for delivery in self.reporter.plan.due(gnb, step, self._first_single(dialect))
        ]

    def _remove_before(self, step: float) -> None:
        """Remove the live files that were written in a period before `step`."""
        while self.kept and self.kept[0][0] < step:
            self.kept.popleft()[1].unlink(missing_ok=True)

    def _first_single(self, dialect: Dialect) -> int:
        """First period that has files of its own."""
        is_daily = self.options.history_layout == "day" and dialect.many_periods
        return self.state.live if is_daily else self.state.first

    def _write(self, directory: Path, dialect: Dialect, report: Report) -> Path:
        content = dialect.encode(report, compact=self.options.compact)
        path = directory / dialect.file_name(report)
        path, size = write_whole(path, content, compress=self.options.compress)
        self.tally.files += 1
        self.tally.bytes += size
        self.tally.samples += report.samples
        return path

    def _days(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Periods from `first` to `end` in groups of one local day: first and count of each."""
        while first < end:
            count = 1
            day = self._day(first)
            while first + count < end and self._day(first + count) == day:
                count += 1
            yield first, count
            first += count

    def _day(self, period: int) -> int:
        return local_datetime(period * self.options.period_ms, self.zone).toordinal()

    def _advance(self, period: int) -> None:
        self.state = self.state.at(period)
        self.state.save(self.options.out)

    def _history_total(self) -> int:
        return self.state.live - self.state.first

    def _tell(self, phase: Phase, done: int, total: int | None) -> None:
        end_ms = self.state.next * self.options.period_ms
        self.progress(Progress(phase, done, total, end_ms, self.tally.files))


def _ignore(progress: Progress) -> None:
    """Nobody listens."""
