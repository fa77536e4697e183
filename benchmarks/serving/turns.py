"""Servers measured turn by turn, each alone: the others stand still meanwhile.

A slow spell of the machine then hits all of them, and what is compared is compared within a round.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.serving.generator import ClosedLoad, Record
from benchmarks.serving.outcomes import ANSWERED, answer_seconds
from benchmarks.serving.processes import Server


class UnansweredError(Exception):
    """A server did not answer what it was asked; its times would mean nothing."""


@dataclass(frozen=True)
class Contender:
    """A server and how it is asked.

    Attributes:
        server: It runs.
        requests: In the form that it reads.
    """

    server: Server
    requests: Sequence[bytes]


@dataclass(frozen=True)
class Length:
    """How long a turn is.

    Attributes:
        clients: At a time, each with one request under way.
        seconds: At most.
        most_requests: At most, None for any number.
    """

    clients: int
    seconds: float
    most_requests: int | None = None


@dataclass(frozen=True)
class Turn:
    """One turn of one server.

    Attributes:
        answers: Requests that were answered.
        rps: Answers a second.
        p50_ms: Of a whole round trip.
        p99_ms: Of the same.
        cpu_ms: CPU time of the server a request.
    """

    answers: int
    rps: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float


Offer = Callable[[ClosedLoad], Record]


def alternate(
    contenders: Mapping[str, Contender],
    length: Length | Mapping[str, Length],
    rounds: int,
    offer: Offer,
    *,
    warmups: int = 1,
) -> dict[str, list[Turn]]:
    """Measure all in turn; the order rotates from round to round.

    Args:
        contenders: By name; several may share a server.
        length: Of a turn, of all or by name.
        rounds: That count.
        offer: Offers a load from another process.
        warmups: Rounds before them that do not count.

    Returns:
        Turns by name, in the order of the rounds.

    Raises:
        UnansweredError: A server answered something else than 200.
    """
    names = list(contenders)
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    for one in contenders.values():
        one.server.pause()
    for number in range(-warmups, rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            chosen = length if isinstance(length, Length) else length[name]
            turn = _turn(name, contenders[name], chosen, offer)
            if number >= 0:
                turns[name].append(turn)
    for one in contenders.values():
        one.server.resume()
    return turns


def _turn(name: str, contender: Contender, length: Length, offer: Offer) -> Turn:
    server = contender.server
    load = ClosedLoad(
        server.port, contender.requests, length.clients, length.seconds, length.most_requests
    )
    server.resume()
    before_s = server.cpu_s()
    record = offer(load)
    spent_s = server.cpu_s() - before_s
    server.pause()
    return turn_of(name, record, spent_s)


def turn_of(name: str, record: Record, cpu_s: float) -> Turn:
    """What a record says of a server.

    Args:
        name: Of the server.
        record: Of a closed load.
        cpu_s: What the server took meanwhile.

    Raises:
        UnansweredError: Something was not answered with 200.
    """
    other = sorted({int(status) for status in record.status if status != ANSWERED})
    if other or not len(record.status):
        raise UnansweredError(
            f"expected {name} to answer with 200, got {other or 'nothing'} among "
            f"{len(record.status)} requests"
        )
    seconds = answer_seconds(record)
    answers = len(seconds)
    return Turn(
        answers=answers,
        rps=answers / float(np.max(record.done_s)),
        p50_ms=float(np.percentile(seconds, 50) * 1000),
        p99_ms=float(np.percentile(seconds, 99) * 1000),
        cpu_ms=cpu_s / answers * 1000,
    )


def ratios(above: Sequence[Turn], below: Sequence[Turn], figure: str) -> list[float]:
    """One figure of a server by that of another, round by round."""
    return [
        getattr(one, figure) / getattr(other, figure)
        for one, other in zip(above, below, strict=True)
    ]


def medians(turns: Sequence[Turn]) -> dict[str, Any]:
    """The median of each figure over the rounds."""
    rows = [asdict(turn) for turn in turns]
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}
