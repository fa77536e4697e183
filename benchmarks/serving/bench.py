"""What every figure is measured with: the load generator, the cores, and how long a turn is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.harness import Result
from benchmarks.serving.generator import Generator
from benchmarks.serving.processes import Cores, Server, our_service, python_module, running


@dataclass(frozen=True)
class Bench:
    """Tools of a run.

    Attributes:
        generator: Offers loads.
        cores: Which core is whose.
        quick: Fewer and shorter turns.
        say: Told what is being measured.
    """

    generator: Generator
    cores: Cores
    quick: bool
    say: Callable[[str], None]

    def our_service(self, **settings: str) -> AbstractContextManager[Server]:
        """The service as its users start it, with the shipped checkpoint."""
        return running(
            python_module("service"),
            self.cores.server,
            ready_path="/readyz",
            environment=our_service(**settings),
        )

    @property
    def placement(self) -> str:
        """Where server and generator run, in words."""
        if self.cores.server == self.cores.generator:
            return "server and generator share the only core"
        return "server on one core, generator on another"


Figure = Callable[[Bench], Iterator[Result]]
