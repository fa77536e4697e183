"""What a request wants of the engine: from its body or query, its headers, and the profile.

What the body or the query states wins over the headers, those over the defaults. A request that
states its budget in a header can be refused before its body is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from fastapi import Request

from model.predictor import Rung
from service.budget import BUDGET_HEADER, PRIORITY_HEADER, RUNG_HEADER, BudgetPolicy, Deadline
from service.container import Running, Services
from service.engine import Ask, Priority
from service.errors import InvalidRequestError
from service.models.reference import parse_reference
from service.models.served import ServedModel
from service.timing import timing_of

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Stated:
    """What a body or a query says of it; None where it says nothing.

    Attributes:
        budget_ms: Latency budget.
        minimum_rung: The least rung that is an answer.
        priority: Whose answer waits for whose.
    """

    budget_ms: float | None = None
    minimum_rung: Rung | None = None
    priority: Priority | None = None


NOTHING_STATED = Stated()

_HEADERS_KEY = "rancast.demands"
_NAMES = tuple(
    name.lower().encode("ascii") for name in (BUDGET_HEADER, RUNG_HEADER, PRIORITY_HEADER)
)


@dataclass(frozen=True, slots=True)
class Headed:
    """What the headers say of it, as they say it; None where they say nothing.

    Attributes:
        budget_ms: Latency budget.
        minimum_rung: The least rung that is an answer.
        priority: Whose answer waits for whose.
    """

    budget_ms: str | None
    minimum_rung: str | None
    priority: str | None


def headed(request: Request) -> Headed:
    """What the headers of a request say; they are looked through once."""
    scope = request.scope
    found: Headed | None = scope.get(_HEADERS_KEY)
    if found is None:
        found = scope[_HEADERS_KEY] = headed_in(scope["headers"])
    return found


def headed_in(headers: Iterable[tuple[bytes, bytes]]) -> Headed:
    """What headers say, as ASGI has them; of several of one name the first counts."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        if name in _NAMES:
            values.setdefault(name, value.decode("latin-1"))
    return Headed(*map(values.get, _NAMES))


def ask_of(
    request: Request,
    services: Services,
    horizon: int,
    levels: Sequence[float],
    stated: Stated = NOTHING_STATED,
    place: Callable[[str], str] = lambda name: f"/{name}",
) -> Ask:
    """What this request wants; its deadline counts from its arrival.

    Args:
        request: For its arrival and its headers.
        services: For the profile's budgets.
        horizon: Steps to forecast.
        levels: Quantile levels.
        stated: What the body or the query says.
        place: Where a field of `stated` stood, for an error.

    Raises:
        InvalidRequestError: The budget is outside the profile's bounds, or a header makes no sense.
    """
    said = headed(request)
    rung = stated.minimum_rung or _chosen(said.minimum_rung, RUNG_HEADER, Rung, Rung.BASELINE)
    priority = stated.priority or _priority(said)
    deadline = _deadline(request, services, stated.budget_ms, place("budget_ms"), priority)
    return Ask(horizon, tuple(levels), deadline, rung, priority)


def choose_model(running: Running, stated: str | None, path: str) -> ServedModel:
    """Who answers a request.

    Args:
        running: For the models in service.
        stated: NAME or NAME@VERSION, as the request has it; None for whoever answers such requests.
        path: Where it stood, for an error.

    Raises:
        InvalidRequestError: It is no name of a model.
        NotFoundError: It is not served.
    """
    if stated is None:
        return running.models.choose()
    try:
        reference = parse_reference(stated)
    except ValueError as error:
        raise InvalidRequestError(path, str(error)) from None
    return running.models.choose(reference)


def check_door(request: Request, services: Services, model: ServedModel) -> None:
    """Refuse a request by its headers alone, before its body costs anything.

    Args:
        request: For its headers.
        services: For the engine, and the profile's budgets.
        model: Who will answer, as far as that is known before the body is.

    Raises:
        InvalidRequestError: A header makes no sense.
        NotReadyError: The engine starts or stops.
        OverloadedError: The queue is full, or the budget of the header cannot be kept.
    """
    engine = services.require().engine
    said = headed(request)
    if said.budget_ms is None:
        # The body may state any budget, and its priority where the header does not.
        engine.check_permits(_priority(said))
        return
    timing = timing_of(request)
    deadline, rung, priority = demand_of(services.policy, said, timing.arrival_s)
    # Whoever leaves while the body is read leaves in time or too late as well.
    timing.budget_ms = deadline.budget_ms
    engine.check_door(model.ladder, deadline, rung, priority)


def demand_of(
    policy: BudgetPolicy, said: Headed, arrival_s: float
) -> tuple[Deadline, Rung, Priority]:
    """What headers ask for of a request that came at `arrival_s`.

    Raises:
        InvalidRequestError: A header makes no sense.
    """
    priority = _priority(said)
    deadline = policy.deadline(
        arrival_s,
        stated_ms=None,
        path="",
        header=said.budget_ms,
        patient=priority is Priority.BATCH,
    )
    rung = _chosen(said.minimum_rung, RUNG_HEADER, Rung, Rung.BASELINE)
    return deadline, rung, priority


def chosen(text: str, choices: type[Choice], path: str) -> Choice:
    """The choice that a text names, in small letters or large ones.

    Args:
        text: What the request says.
        choices: What it may say.
        path: Where it says so, for an error.

    Raises:
        InvalidRequestError: It names none.
    """
    try:
        return choices(text.strip().lower())
    except ValueError:
        words = ", ".join(choice.value for choice in choices)
        raise InvalidRequestError(path, f"expected one of {words}, got {text!r}") from None


def _deadline(
    request: Request,
    services: Services,
    stated_ms: float | None,
    path: str,
    priority: Priority,
) -> Deadline:
    timing = timing_of(request)
    deadline = services.policy.deadline(
        timing.arrival_s,
        stated_ms=stated_ms,
        path=path,
        header=headed(request).budget_ms,
        patient=priority is Priority.BATCH,
    )
    timing.budget_ms = deadline.budget_ms
    return deadline


def _priority(said: Headed) -> Priority:
    return _chosen(said.priority, PRIORITY_HEADER, Priority, Priority.CONTROL)


def _chosen(text: str | None, header: str, choices: type[Choice], default: Choice) -> Choice:
    if text is None:
        return default
    return chosen(text, choices, f"header:{header}")
