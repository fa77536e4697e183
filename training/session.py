"""What a training command has around its work: a team, a terminal and a report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

from training.progress_lines import JsonLines, NoReport, Report
from training.stopping import sigterm_interrupts
from training.team import ALONE, Team, joined_team


@dataclass(frozen=True)
class Session:
    """The surroundings of a run.

    Attributes:
        console: Where words for people go; silent in all processes but the leader.
        report: Where the course of the run is told to a program.
        team: The processes of the run.
    """

    console: Console
    report: Report = field(default_factory=NoReport)
    team: Team = ALONE

    @property
    def is_reported(self) -> bool:
        """Whether a program reads the report, so that nobody watches a bar."""
        return not isinstance(self.report, NoReport)


@contextmanager
def session(*, json_lines: bool) -> Iterator[Session]:
    """Join the team, and report what ends the run; SIGTERM stops it as Ctrl-C does.

    Args:
        json_lines: Report on stdout, one JSON object a line, instead of a bar on stderr.
    """
    with sigterm_interrupts(), joined_team() as team:
        speaks = json_lines and team.leads
        report: Report = JsonLines(sys.stdout) if speaks else NoReport()
        console = Console(stderr=True, quiet=not team.leads)
        try:
            yield Session(console, report, team)
        except BaseException as error:
            report.error(error)
            raise
