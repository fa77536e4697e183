"""`GET /v1/cells…`: what the store holds, and forecasts from it.

A cell's name is percent-encoded and may hold slashes, commas and equals signs; see
`service.middleware.RawCellNames`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated
from urllib.parse import unquote

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from kpi.catalogue import Catalogue
from kpi.errors import UnknownCellError
from kpi.store import CellSummary, KpiStore
from model.errors import ModelError
from model.holidays import check_country
from model.predictor import Rung
from service.answers import samples_answer, seconds
from service.bodies import JSON_MEDIA_TYPE
from service.checks import check_horizon, check_levels, parse_levels
from service.codecs.answer_forms import answer_form
from service.container import services_of
from service.demands import Stated, ask_of, check_door, choose_model
from service.engine import Priority
from service.errors import InvalidRequestError, NotFoundError
from service.forecasting import answer_forecast
from service.metrics import Stage
from service.routes.responses import arrow_answer, demand_headers, problems
from service.schemas import (
    DEFAULT_LEVELS,
    MAX_STEP_SECONDS,
    CellEntry,
    CellResponse,
    CellsResponse,
    ForecastResponse,
    SamplesResponse,
)
from service.series import NamedWindow
from service.timestamps import is_time_zone, to_rfc3339
from service.timing import timing_of

router = APIRouter(tags=["store"])

_DEFAULT_HORIZON = 24
_DEFAULT_SAMPLES = 672

CellName = Annotated[
    str,
    Path(
        description="The cell's name, percent-encoded (a slash as %2F).",
        examples=["ManagedElement%3D1%2CNRCellDU%3D32"],
    ),
]


class _Selection(BaseModel):
    """Which ring of a cell, and which KPIs of it."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kpi: list[str] = Field(
        default_factory=list, description="KPI, repeated for several; all by default."
    )
    step_seconds: float | None = Field(
        None,
        gt=0,
        le=MAX_STEP_SECONDS,
        description="Period length; the finest that is stored by default.",
    )

    @property
    def step_ms(self) -> int | None:
        return None if self.step_seconds is None else round(self.step_seconds * 1000)


class ForecastQuery(_Selection):
    """Query of a stored cell's forecast."""

    horizon: int | None = Field(
        None,
        description="Steps to forecast; 24, or the model's maximum, by default.",
        examples=[24],
    )
    quantiles: str | None = Field(
        None, description="Levels, separated by commas.", examples=["0.1,0.5,0.9"]
    )
    time_zone: str | None = Field(
        None, description="IANA zone that the cell's daily life follows.", examples=["UTC"]
    )
    country: str | None = Field(
        None,
        description="Country whose public holidays hold for the cell, as in ES or ES-CT; the "
        "deployment's by default.",
        examples=["ES-CT"],
    )
    budget_ms: float | None = Field(None, description="Latency budget from arrival to answer.")
    minimum_rung: Rung | None = Field(None, description="Least rung that is an answer.")
    priority: Priority | None = Field(None, description="Whose answer waits for whose.")
    model: str | None = Field(
        None,
        description="Who answers: NAME or NAME@VERSION; the default model, or the canary, where it "
        "is not given.",
        examples=["rancast-small@1.0.0"],
    )


class SamplesQuery(_Selection):
    """Query of a stored cell's samples."""

    steps: int = Field(
        _DEFAULT_SAMPLES, ge=1, le=1_000_000, description="Newest samples to return, at most."
    )


class PageQuery(BaseModel):
    """Query of a page of cells."""

    model_config = ConfigDict(extra="forbid")

    after: str | None = Field(None, description="`next` of the page before.")
    limit: int = Field(100, ge=1, le=1000, description="Entries on the page, at most.")


@router.get(
    "/v1/cells",
    summary="List the stored cells",
    description="A page of cells in order of their names; a cell reported at two period lengths "
    "has two entries.",
    response_model=CellsResponse,
    responses=problems(422, 503),
)
async def cells(request: Request, query: Annotated[PageQuery, Query()]) -> CellsResponse:
    """One page."""
    store = services_of(request).require().ingestion.store
    # One more than asked for tells whether there is a next page.
    found = await asyncio.to_thread(store.cells, query.after, query.limit)
    more = bool(found) and bool(await asyncio.to_thread(store.cells, found[-1].cell, 1))
    return CellsResponse(
        cells=[_entry(summary) for summary in found],
        next=found[-1].cell if more else None,
    )


@router.get(
    "/v1/cells/{cell}",
    summary="Describe a stored cell",
    description="Its KPIs and the span that is stored, once for each period length.",
    response_model=CellResponse,
    responses=problems(404, 503),
)
async def cell(request: Request, cell: CellName) -> CellResponse:
    """One cell."""
    store = services_of(request).require().ingestion.store
    summaries = await asyncio.to_thread(_summaries, store, unquote(cell))
    return CellResponse(cells=[_entry(summary) for summary in summaries])


@router.get(
    "/v1/cells/{cell}/samples",
    summary="Read a stored cell's samples",
    description="The newest samples on their regular grid, null where there is none; the answer "
    "has the shape of a series of POST /v1/forecast.",
    response_model=SamplesResponse,
    responses=problems(404, 422, 503),
)
async def samples(
    request: Request, cell: CellName, query: Annotated[SamplesQuery, Query()]
) -> Response:
    """The end of the cell's window."""
    services = services_of(request)
    store = services.require().ingestion.store
    body = await asyncio.to_thread(
        _samples, store, unquote(cell), query, services.catalogue, services.settings.time_zone
    )
    return Response(body, media_type=JSON_MEDIA_TYPE)


@router.get(
    "/v1/cells/{cell}/forecast",
    summary="Forecast a stored cell",
    description="As POST /v1/forecast, from what the store holds of the cell.",
    response_model=ForecastResponse,
    responses=arrow_answer() | problems(404, 406, 422, 429, 503, 504),
    openapi_extra=demand_headers(),
)
async def forecast(
    request: Request,
    cell: CellName,
    query: Annotated[ForecastQuery, Query()],
) -> Response:
    """Answer from the store."""
    services = services_of(request)
    running = services.require()
    model = choose_model(running, query.model, "query:model")
    predictor = model.predictor
    form = answer_form(request)
    check_door(request, services, model)
    horizon = (
        min(_DEFAULT_HORIZON, predictor.max_horizon) if query.horizon is None else query.horizon
    )
    check_horizon(horizon, predictor, "query:horizon")
    levels = (
        DEFAULT_LEVELS
        if query.quantiles is None
        else parse_levels(query.quantiles, "query:quantiles")
    )
    check_levels(levels, predictor, "query:quantiles")
    stated = Stated(query.budget_ms, query.minimum_rung, query.priority)
    ask = ask_of(request, services, horizon, levels, stated, lambda name: f"query:{name}")
    if query.time_zone is not None and not is_time_zone(query.time_zone):
        raise InvalidRequestError(
            "query:time_zone",
            f"expected an IANA name such as Europe/Madrid, got {query.time_zone!r}",
        )
    try:
        check_country(query.country)
    except ModelError as error:
        raise InvalidRequestError("query:country", str(error)) from error
    zone = query.time_zone or services.settings.time_zone
    country = query.country or services.settings.holiday_country
    with timing_of(request).stage(Stage.WINDOW):
        named = await asyncio.to_thread(
            _window, running.ingestion.store, unquote(cell), query, services.catalogue, zone
        )
    named = named._replace(window=replace(named.window, country=country))
    return await answer_forecast(
        request, services, running, model, [named], ask, form, on_forecasts=running.accuracy.keep
    )


def _summaries(store: KpiStore, name: str) -> list[CellSummary]:
    try:
        return store.cell(name)
    except UnknownCellError as error:
        raise NotFoundError(f"{error}; GET /v1/cells lists them") from error


def _window(
    store: KpiStore, name: str, query: _Selection, catalogue: Catalogue, time_zone: str
) -> NamedWindow:
    """The window, whose KPIs keep the spelling of the query."""
    if len({catalogue.canonical(kpi) for kpi in query.kpi}) < len(query.kpi):
        raise InvalidRequestError("query:kpi", f"expected each KPI once, got {query.kpi}")
    try:
        window = store.window(
            name, kpis=query.kpi or None, step_ms=query.step_ms, time_zone=time_zone
        )
    except UnknownCellError as error:
        raise NotFoundError(f"{error}; GET /v1/cells lists the cells") from error
    return NamedWindow(window, dict(zip(window.kpis, query.kpi or window.kpis, strict=True)))


def _samples(
    store: KpiStore, name: str, query: SamplesQuery, catalogue: Catalogue, time_zone: str
) -> bytes:
    """The end of the window, as a `SamplesResponse`."""
    named = _window(store, name, query, catalogue, time_zone)
    window = named.window
    first = max(0, window.steps - query.steps)
    return samples_answer(
        window.cell,
        window.start_ms + first * window.step_ms,
        window.step_ms,
        named.spell(window.kpis),
        np.asarray(window.values[:, first:]),  # (K, steps)
    )


def _entry(summary: CellSummary) -> CellEntry:
    return CellEntry(
        cell=summary.cell,
        kpis=list(summary.kpis),
        step_seconds=seconds(summary.step_ms),
        first=to_rfc3339(summary.first_ms),
        last=to_rfc3339(summary.last_ms),
    )
