"""The models in service, and which of them answers a request.

A request that names no model is answered by the default one, or by the canary: each such request is
drawn by itself, so that both forecast the same cells and their realised accuracies can be compared.
One request is answered by one model, whatever happens to the others meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from enum import StrEnum

from service.errors import ConflictError, NotFoundError
from service.metrics import Metrics
from service.models.reference import ModelReference, version_order
from service.models.routing import Routing
from service.models.served import ServedModel


class Role(StrEnum):
    """What a model does for requests that name none."""

    DEFAULT = "default"
    CANARY = "canary"
    NAMED = "named"


class Models:
    """Models by name and version.

    Args:
        metrics: Shows them.
        routing: Who answers requests that name none.
        draw: A number from 0 to 1, excluding 1, that decides whether the canary answers.
    """

    def __init__(
        self,
        metrics: Metrics,
        routing: Routing | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._metrics = metrics
        self._routing = routing or Routing()
        self._draw = draw
        self._served: dict[tuple[str, str], ServedModel] = {}
        self._base: tuple[str, str] | None = None

    @property
    def served(self) -> Sequence[ServedModel]:
        """All of them, by name and then from the lowest version to the highest."""
        return sorted(
            self._served.values(), key=lambda model: (model.key[0], version_order(model.key[1]))
        )

    @property
    def names(self) -> list[str]:
        """Names by which models can be asked for."""
        return sorted({name for name, _ in self._served})

    @property
    def routing(self) -> Routing:
        """Who answers requests that name no model."""
        return self._routing

    @property
    def default(self) -> ServedModel:
        """Who answers requests that name no model.

        Raises:
            NotFoundError: It is not served.
        """
        model = self._default(self._routing)
        if model is None:
            raise self._unknown(self._routing.default)
        return model

    @property
    def canary(self) -> ServedModel | None:
        """Who answers a share of them; None where there is none, or it is not served."""
        reference = self._routing.canary
        model = None if reference is None else self._highest(reference)
        return None if model is self._default(self._routing) else model

    def put(self, model: ServedModel, *, base: bool = False) -> None:
        """Serve a model from now on, in the place of the one with its name and version.

        Args:
            model: The model.
            base: Whether it answers where the routing names no default.
        """
        old = self._served.get(model.key)
        if old is not None:
            self._metrics.hide_model(old.identity)
        self._served[model.key] = model
        if base:
            self._base = model.key
        self._metrics.show_model(model.identity)
        for step in model.ladder.steps:
            self._metrics.show_cost(
                model.identity, step.rung, call_s=step.cost.call_s, work_s=step.cost.work_s
            )
        if model.path is not None:
            self._metrics.show_inference(model.identity, model.path)
        self._show_shares()

    def remove(self, model: ServedModel) -> None:
        """Serve a model no more; requests that it was chosen for are answered by it all the same.

        Raises:
            ConflictError: It is the last one that can be the default.
        """
        if self._served.get(model.key) is not model:
            return
        del self._served[model.key]
        if self._default(self._routing) is None:
            self._served[model.key] = model
            raise ConflictError(
                f"{_spelt(model)} answers the requests that name no model; let another one do that "
                "first (PUT /v1/routing)"
            )
        self._metrics.hide_model(model.identity)
        self._show_shares()

    def route(self, routing: Routing) -> None:
        """Let other models answer requests that name none.

        Raises:
            NotFoundError: The default is not served, or the canary is not.
        """
        if self._default(routing) is None:
            raise self._unknown(routing.default)
        if routing.canary is not None and self._highest(routing.canary) is None:
            raise self._unknown(routing.canary)
        self._routing = routing
        self._show_shares()

    def find(self, reference: ModelReference | None = None) -> ServedModel:
        """The model that this names, the default one for None.

        A name without a version means the default where that has the name, and the highest version
        elsewhere.

        Raises:
            NotFoundError: It is not served.
        """
        default = self.default
        if reference is None or (reference.version is None and default.key[0] == reference.name):
            return default
        found = self._highest(reference)
        if found is None:
            raise self._unknown(reference)
        return found

    def choose(self, reference: ModelReference | None = None) -> ServedModel:
        """The model that answers one request: `find`, or the canary in its place.

        The canary stands for the default where the request names no model, and where it gives a
        name, without a version, that both have.

        Raises:
            NotFoundError: It is not served.
        """
        found, canary = self.find(reference), self.canary
        if canary is None or found is not self.default:
            return found
        if reference is not None and (reference.version or reference.name != canary.key[0]):
            return found
        return canary if self._draw() < self._routing.canary_share else found

    def versions(self, name: str) -> list[str]:
        """Versions of a model that are served, from the lowest to the highest."""
        return [model.key[1] for model in self.served if model.key[0] == name]

    def role(self, model: ServedModel) -> Role:
        """What a model does for requests that name none."""
        if model is self._default(self._routing):
            return Role.DEFAULT
        return Role.CANARY if model is self.canary else Role.NAMED

    def _default(self, routing: Routing) -> ServedModel | None:
        if routing.default is not None:
            return self._highest(routing.default)
        return None if self._base is None else self._served.get(self._base)

    def _highest(self, reference: ModelReference) -> ServedModel | None:
        if reference.version is not None:
            return self._served.get((reference.name, reference.version))
        versions = self.versions(reference.name)
        return self._served[reference.name, versions[-1]] if versions else None

    def _unknown(self, reference: ModelReference | None) -> NotFoundError:
        if reference is None:
            return NotFoundError("no model is served")
        if reference.version is not None and (versions := self.versions(reference.name)):
            return NotFoundError(
                f"model {reference.name!r} has no version {reference.version!r}; served: "
                f"{', '.join(versions)}"
            )
        return NotFoundError(f"no model is called {reference.name!r}; GET /v1/models lists them")

    def _show_shares(self) -> None:
        default, canary = self._default(self._routing), self.canary
        if default is None:
            return
        share = 0.0 if canary is None else self._routing.canary_share
        shares = {default.identity: 1 - share}
        if canary is not None:
            shares[canary.identity] = share
        self._metrics.show_shares(shares)


def _spelt(model: ServedModel) -> str:
    return "@".join(model.key)
