"""Against LitServe and BentoML with their own batching, around the same model and compiled code.

Each is tried with several settings of how long it waits for company; the one by which it does best
counts. Of four figures (requests a second and p99, with 8 clients and with 64) the worst counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Result
from benchmarks.inference.shapes import CONTEXT_STEPS
from benchmarks.serving.bench import Bench
from benchmarks.serving.bodies import cells, demands, forecast_requests
from benchmarks.serving.environments import BENTOML, LITSERVE, Environment
from benchmarks.serving.processes import Server, free_port, python_module, running
from benchmarks.serving.turns import (
    Contender,
    Length,
    Turn,
    UnansweredError,
    alternate,
    medians,
    ratios,
)

CLIENTS = (8, 64)
LEAST = 1.0
OURS, THEIRS = "ours", "theirs"
LITSERVE_TIMEOUTS_S = (0.001, 0.005, 0.02)
BENTOML_LATENCIES_MS = (500, 2_000, 60_000)

_CELLS = 64
_LATENCY_VARIABLE = "BATCH_LATENCY_MS"


@dataclass(frozen=True)
class Setting:
    """An opponent as it is started.

    Attributes:
        words: What was chosen.
        command: That starts it on a port.
        ready_path: Answers 200 when it can be used.
        port: Where it listens.
        variables: Of its environment.
    """

    words: str
    command: Sequence[str]
    ready_path: str
    port: int
    variables: Mapping[str, str]

    def start(self, core: int) -> AbstractContextManager[Server]:
        """Run it."""
        return running(
            self.command,
            core,
            ready_path=self.ready_path,
            port=self.port,
            environment=self.variables,
        )


@dataclass(frozen=True)
class Match:
    """Ours against an opponent of one setting.

    Attributes:
        words: The opponent's setting.
        turns: By number of clients, then by side.
    """

    words: str
    turns: Mapping[int, Mapping[str, Sequence[Turn]]]

    @property
    def ratios(self) -> dict[str, float]:
        """How many times better ours is, in each of the four figures."""
        found = {}
        for clients, sides in self.turns.items():
            own, other = sides[OURS], sides[THEIRS]
            found[f"rps_{clients}"] = statistics.median(ratios(own, other, "rps"))
            found[f"p99_{clients}"] = statistics.median(ratios(other, own, "p99_ms"))
        return found

    @property
    def worst(self) -> float:
        """The least of them."""
        return min(self.ratios.values())


def measure_litserve(bench: Bench) -> Iterator[Result]:
    """Against LitServe."""
    yield from _measure(bench, "serving.vs_litserve", LITSERVE, _litserve_settings())


def measure_bentoml(bench: Bench) -> Iterator[Result]:
    """Against BentoML."""
    yield from _measure(bench, "serving.vs_bentoml", BENTOML, _bentoml_settings())


def _measure(
    bench: Bench, name: str, environment: Environment, settings: Sequence[Setting]
) -> Iterator[Result]:
    if not environment.is_built:
        bench.say(f"{name} is left out: {environment.remedy}")
        return
    windows = cells(_CELLS, CONTEXT_STEPS)
    rounds, seconds = (1, 1.5) if bench.quick else (3, 2.0)
    matches = []
    with bench.our_service() as ours:
        for setting in settings[1:2] if bench.quick else settings:
            bench.say(f"{name}: {setting.words}")
            with setting.start(bench.cores.server) as theirs:
                contenders = {
                    OURS: Contender(ours, forecast_requests(windows, **demands())),
                    THEIRS: Contender(theirs, forecast_requests(windows)),
                }
                try:
                    turns = {
                        clients: alternate(
                            contenders, Length(clients, seconds), rounds, bench.generator.offer
                        )
                        for clients in CLIENTS
                    }
                except UnansweredError as error:
                    bench.say(f"{name}: {setting.words} is left out: {error}")
                    ours.resume()
                    continue
            matches.append(Match(setting.words, turns))
    if not matches:
        bench.say(f"{name} is left out: no setting of the opponent answered everything")
        return
    yield rival_row(name, environment.words, matches, placement=bench.placement)


def rival_row(name: str, opponent: str, matches: Sequence[Match], **detail: Any) -> Result:
    """The figure of one opponent: its best setting, in what is worst for ours.

    Args:
        name: Of the figure.
        opponent: In words.
        matches: One a setting, at least one.
        detail: Of the figure.
    """
    best = min(matches, key=lambda match: match.worst)
    return Result.at_least(
        name,
        best.worst,
        "x",
        LEAST,
        opponent=opponent,
        setting=best.words,
        **best.ratios,
        settings={match.words: match.ratios for match in matches},
        medians={
            str(clients): {side: medians(turns) for side, turns in sides.items()}
            for clients, sides in best.turns.items()
        },
        **detail,
    )


def _litserve_settings() -> list[Setting]:
    found = []
    for timeout_s in LITSERVE_TIMEOUTS_S:
        port = free_port()
        command = python_module(
            "benchmarks.serving.opponents.litserve_server",
            str(port),
            "--batch-timeout",
            str(timeout_s),
            interpreter=LITSERVE.interpreter,
        )
        found.append(Setting(f"batch_timeout={timeout_s:g}", command, "/health", port, {}))
    return found


def _bentoml_settings() -> list[Setting]:
    service = "benchmarks.serving.opponents.bentoml_service:Forecasts"
    found = []
    for latency_ms in BENTOML_LATENCIES_MS:
        port = free_port()
        command = python_module(
            "bentoml",
            *("serve", service, "--host", "127.0.0.1", "--port", str(port)),
            interpreter=BENTOML.interpreter,
        )
        variables = {_LATENCY_VARIABLE: str(latency_ms), "BENTOML_DO_NOT_TRACK": "true"}
        found.append(Setting(f"max_latency_ms={latency_ms}", command, "/readyz", port, variables))
    return found
