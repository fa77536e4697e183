"""What a token may do, and which route demands it: the one table of the whole service.

A route that the table does not name demands `admin`: whoever adds one and forgets it here has
locked it, not opened it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, compile_path


class Scope(StrEnum):
    """What a token may do.

    `read` asks for forecasts and what they rest on, `write` sends observations, `admin` changes
    which models answer. `admin` includes the other two, which do not include each other.
    """

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    # Of a route, never of a token: files that ship with every copy of the service.
    NONE = "none"


GRANTABLE = (Scope.READ, Scope.WRITE, Scope.ADMIN)

# Method and path template, as the route has them, to what they demand.
DEMANDS: Mapping[tuple[str, str], Scope] = MappingProxyType(
    {
        ("POST", "/v1/forecast"): Scope.READ,
        ("GET", "/v1/cells"): Scope.READ,
        ("GET", "/v1/cells/{cell}"): Scope.READ,
        ("GET", "/v1/cells/{cell}/samples"): Scope.READ,
        ("GET", "/v1/cells/{cell}/forecast"): Scope.READ,
        ("GET", "/v1/model"): Scope.READ,
        ("GET", "/v1/accuracy"): Scope.READ,
        ("GET", "/v1/models"): Scope.READ,
        ("GET", "/v1/models/{model}"): Scope.READ,
        ("POST", "/v1/models/{model}:predict"): Scope.READ,
        ("GET", "/v1/timeseries/models"): Scope.READ,
        ("POST", "/v1/timeseries/forecast"): Scope.READ,
        ("GET", "/v2"): Scope.READ,
        ("GET", "/v2/models"): Scope.READ,
        ("GET", "/v2/models/{model}"): Scope.READ,
        ("GET", "/v2/models/{model}/ready"): Scope.READ,
        ("POST", "/v2/models/{model}/infer"): Scope.READ,
        ("GET", "/v2/models/{model}/versions/{version}"): Scope.READ,
        ("GET", "/v2/models/{model}/versions/{version}/ready"): Scope.READ,
        ("POST", "/v2/models/{model}/versions/{version}/infer"): Scope.READ,
        ("POST", "/v2/repository/index"): Scope.READ,
        ("GET", "/v1/routing"): Scope.READ,
        ("POST", "/v1/observations"): Scope.WRITE,
        ("PUT", "/v1/routing"): Scope.ADMIN,
        ("POST", "/v2/repository/models/{model}/load"): Scope.ADMIN,
        ("POST", "/v2/repository/models/{model}/unload"): Scope.ADMIN,
        ("POST", "/v2/repository/models/{model}/versions/{version}/load"): Scope.ADMIN,
        ("POST", "/v2/repository/models/{model}/versions/{version}/unload"): Scope.ADMIN,
        # For the platform; open by the setting open_paths, unless an operator closes them.
        ("GET", "/healthz"): Scope.READ,
        ("GET", "/readyz"): Scope.READ,
        ("GET", "/metrics"): Scope.READ,
        # Pages without any data: their scripts ask for it, with the token that they are given.
        ("GET", "/"): Scope.NONE,
        ("GET", "/docs"): Scope.NONE,
        ("GET", "/static/{name}"): Scope.NONE,
        ("GET", "/openapi.json"): Scope.NONE,
        ("HEAD", "/openapi.json"): Scope.NONE,
    }
)

# A path that no route has: whoever may come in at all is told that it does not exist.
_UNKNOWN_PATH = frozenset(GRANTABLE)


@dataclass(frozen=True, slots=True)
class RouteDemand:
    """What one method of one route demands."""

    method: str
    template: str
    scope: Scope


class OpenPaths:
    """Paths that need no token.

    Args:
        patterns: Each a path, or the beginning of paths where it ends in `*`.

    Raises:
        ValueError: A pattern does not begin with a slash, or has a `*` elsewhere.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            if not pattern.startswith("/") or "*" in pattern[:-1]:
                raise ValueError(
                    f"expected paths such as /healthz or /ric/v1/*, got {pattern!r}; begin it with "
                    "/ and write * at its end only"
                )
        self._paths = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
        self._beginnings = tuple(p[:-1] for p in patterns if p.endswith("*"))

    def __contains__(self, path: str) -> bool:
        return path in self._paths or path.startswith(self._beginnings)


class Demands:
    """Finds what a request demands, by the very expressions that the router matches.

    Args:
        routes: Routes of the application.
        open_paths: Paths that need no token.
    """

    def __init__(self, routes: Sequence[BaseRoute], open_paths: OpenPaths) -> None:
        self._open_paths = open_paths
        self._expressions: list[tuple[re.Pattern[str], str, frozenset[Scope] | None]] = []
        demands = tuple(route_demands(routes))
        for demand in demands:
            is_open = demand.scope is Scope.NONE or demand.template in open_paths
            needed = None if is_open else frozenset((demand.scope,))
            expression, _, _ = compile_path(demand.template)
            self._expressions.append((expression, demand.method, needed))
        # Found without a search; what is written any other way, and matches, is searched for.
        self._fixed = {
            (demand.method, demand.template): self._search(demand.method, demand.template)
            for demand in demands
            if "{" not in demand.template
        }

    def of(self, method: str, path: str) -> frozenset[Scope] | None:
        """Scopes of which a token needs one; None where no token is needed."""
        try:
            return self._fixed[method, path]
        except KeyError:
            return self._search(method, path)

    def _search(self, method: str, path: str) -> frozenset[Scope] | None:
        if path in self._open_paths:
            return None
        for expression, expected, needed in self._expressions:
            if method == expected and expression.match(path):
                return needed
        return _UNKNOWN_PATH


def route_demands(routes: Sequence[BaseRoute]) -> Iterable[RouteDemand]:
    """What each method of each route demands, in the order of the router."""
    for route in iter_route_contexts(routes):
        template = route.path or ""
        for method in sorted(route.methods or ()):
            yield RouteDemand(method, template, DEMANDS.get((method, template), Scope.ADMIN))
