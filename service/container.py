"""What the parts of a running application share, in one typed object on `app.state`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fastapi import Request

from kpi.catalogue import Catalogue
from service.body_work import BodyWork
from service.budget import BudgetPolicy
from service.clock import Clock
from service.engine import Engine
from service.errors import NotReadyError
from service.ingestion import Ingestion
from service.metrics import Metrics
from service.models.registry import Models
from service.models.repository import ModelRepository
from service.realised.ledger import AccuracyLedger
from service.room import BodyRoom
from service.series import SeriesLimits
from service.settings import Settings


class Phase(StrEnum):
    """Where the service stands between its start and its end."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


@dataclass(slots=True)
class Running:
    """The parts that exist once the service is started.

    Attributes:
        engine: Answers forecasts.
        models: Those in service, by one of which it does.
        repository: Loads and unloads them.
        ingestion: Takes observations into the store.
        accuracy: Keeps forecasts of stored cells until their observations arrive.
    """

    engine: Engine
    models: Models
    repository: ModelRepository
    ingestion: Ingestion
    accuracy: AccuracyLedger


@dataclass(slots=True)
class Services:
    """Everything that routes need.

    Attributes:
        settings: What the operator chose.
        clock: The only source of time.
        metrics: The only way to count.
        catalogue: What each KPI is.
        policy: Turns a request's budget into a deadline.
        limits: What one request may hold.
        room: What large bodies may hold together.
        body_work: What small bodies are likely to hold.
        phase: Where the service stands.
        reason: Why it is not ready, empty where it is.
        running: The parts that exist once it is started, None before.
    """

    settings: Settings
    clock: Clock
    metrics: Metrics
    catalogue: Catalogue
    policy: BudgetPolicy
    limits: SeriesLimits
    room: BodyRoom
    body_work: BodyWork
    phase: Phase = Phase.STARTING
    reason: str = "the model is being loaded"
    running: Running | None = None

    def require(self) -> Running:
        """The parts of the started service.

        Raises:
            NotReadyError: It starts, failed to start, or stops.
        """
        if self.running is None or self.phase is not Phase.READY:
            raise NotReadyError(self.reason)
        return self.running

    def unreadiness(self) -> str | None:
        """Why the service is not ready, None where it is."""
        if self.running is None or self.phase is not Phase.READY:
            return self.reason
        return None if self.running.engine.is_running else "the engine has stopped"

    @property
    def model_names(self) -> list[str]:
        """Names of the models in service; none before the start is over."""
        return [] if self.running is None else self.running.models.names

    def move_to(self, phase: Phase, reason: str = "") -> None:
        """Enter a phase."""
        self.phase = phase
        self.reason = reason


def services_of(request: Request) -> Services:
    """The container of the application that answers this request."""
    services = request.app.state.services
    assert isinstance(services, Services)
    return services
