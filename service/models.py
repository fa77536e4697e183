"""Which models are served, by name and version."""

from __future__ import annotations

from service.container import Running, Services
from service.errors import NotFoundError


def served_models(services: Services) -> list[Running]:
    """All models that are loaded; none before the start is over."""
    return [] if services.running is None else [services.running]


def find_model(services: Services, name: str, version: str | None = None) -> Running:
    """The parts that answer for one model.

    Args:
        services: The application's container.
        name: Name of the model, as its card says it.
        version: Its version; the one that is served by default where it is None.

    Raises:
        NotReadyError: The service starts, failed to start, or stops.
        NotFoundError: No model of that name and version is served.
    """
    services.require()
    named = [running for running in served_models(services) if running.card.name == name]
    if not named:
        raise NotFoundError(f"no model is called {name!r}; GET /v1/models lists them")
    found = [running for running in named if version in (None, running.card.version)]
    if not found:
        served = ", ".join(sorted(running.card.version for running in named))
        raise NotFoundError(f"model {name!r} has no version {version!r}; served: {served}")
    return found[0]


def model_versions(services: Services, name: str) -> list[str]:
    """Versions of a model that can be asked for by name."""
    return sorted({each.card.version for each in served_models(services) if each.card.name == name})
