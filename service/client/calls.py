"""Each call of the service as a value: what is sent, and how its answer is read.

The blocking and the asynchronous client differ in how they wait, and in nothing else; what they
have in common is here and in `service.client.attempts`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from service.client.answers import (
    CellPage,
    ForecastAnswer,
    Model,
    StoredCell,
    StoredCount,
    to_cell_page,
    to_cells,
    to_forecast_answer,
    to_model,
    to_stored_count,
)
from service.client.series import Series, series_body

Answer = TypeVar("Answer")

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Demands:
    """What a forecast demands of the server; None: its default.

    Attributes:
        minimum_rung: Least rung that is an answer: full, short or baseline.
        priority: control or batch.
        model: Who answers: NAME or NAME@VERSION.
    """

    minimum_rung: str | None = None
    priority: str | None = None
    model: str | None = None

    def stated(self) -> dict[str, str]:
        """Those that are stated, by their names in requests."""
        named = {
            "minimum_rung": self.minimum_rung,
            "priority": self.priority,
            "model": self.model,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One call.

    Attributes:
        method: Of HTTP.
        path: Percent-encoded, below the base address.
        reader: Makes the answer of decoded JSON.
        query: Of the address.
        body: JSON, None where nothing is sent.
        has_budget: Whether the service is told how long the answer may take.
        may_resend: Whether making it twice does no harm.
    """

    method: str
    path: str
    reader: Callable[[Any], Answer]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    has_budget: bool = False
    may_resend: bool = True


def forecast_call(
    series: Sequence[Series],
    horizon: int,
    quantiles: Sequence[float] | None,
    demands: Demands,
) -> Call[ForecastAnswer]:
    """`POST /v1/forecast`."""
    body: dict[str, Any] = {
        "series": [series_body(each) for each in series],
        "horizon": horizon,
        **demands.stated(),
    }
    if quantiles is not None:
        body["quantiles"] = [float(level) for level in quantiles]
    return Call("POST", "/v1/forecast", to_forecast_answer, body=_json(body), has_budget=True)


def cell_forecast_call(
    cell: str,
    horizon: int | None,
    quantiles: Sequence[float] | None,
    kpis: Sequence[str] | None,
    step_seconds: float | None,
    time_zone: str | None,
    country: str | None,
    demands: Demands,
) -> Call[ForecastAnswer]:
    """`GET /v1/cells/{cell}/forecast`."""
    query = {
        "horizon": horizon,
        "quantiles": None if quantiles is None else ",".join(repr(float(q)) for q in quantiles),
        "kpi": list(kpis) if kpis else None,
        "step_seconds": step_seconds,
        "time_zone": time_zone,
        "country": country,
        **demands.stated(),
    }
    stated = {name: value for name, value in query.items() if value is not None}
    return Call("GET", f"{_cell(cell)}/forecast", to_forecast_answer, query=stated, has_budget=True)


def observations_call(series: Sequence[Series], *, may_resend: bool) -> Call[StoredCount]:
    """`POST /v1/observations`.

    Samples that are sent again change nothing, unless others have corrected them meanwhile.
    """
    body = {"series": [series_body(each) for each in series]}
    return Call(
        "POST", "/v1/observations", to_stored_count, body=_json(body), may_resend=may_resend
    )


def cells_call(after: str | None) -> Call[CellPage]:
    """A page of `GET /v1/cells`."""
    query: dict[str, Any] = {"limit": _PAGE}
    if after is not None:
        query["after"] = after
    return Call("GET", "/v1/cells", to_cell_page, query=query)


def cell_call(cell: str) -> Call[tuple[StoredCell, ...]]:
    """`GET /v1/cells/{cell}`."""
    return Call("GET", _cell(cell), to_cells)


def model_call() -> Call[Model]:
    """`GET /v1/model`."""
    return Call("GET", "/v1/model", to_model)


def _cell(name: str) -> str:
    return f"/v1/cells/{quote(name, safe='')}"


def _json(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
