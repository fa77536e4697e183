"""`GET /v1/accuracy`: how good the forecasts of stored cells turned out to be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from kpi.catalogue import KpiKind
from model.predictor import Rung
from service.container import services_of
from service.realised.ledger import LedgerFigures, Statement
from service.realised.scores import Score, ScoreRow
from service.routes.responses import problems
from service.schemas import ModelName, Stamp
from service.timestamps import to_rfc3339

router = APIRouter(tags=["model"])


class AccuracyQuery(BaseModel):
    """Query of the realised accuracy."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(None, description="Name of a model; all by default.")
    version: str | None = Field(None, description="Version of a model; all by default.")
    kind: KpiKind | None = Field(None, description="Kind of KPI; all by default.")


class RealisedScore(BaseModel):
    """Scores of so many observations."""

    model_config = ConfigDict(extra="forbid")

    samples: int = Field(description="Observations, once for each forecast of them.")
    coverage: float | None = Field(
        description="Share of them between the outermost levels; null where there is none, or only "
        "one level.",
    )
    wql: float | None = Field(
        description="Weighted quantile loss, lower is better; null where all of them are 0."
    )
    relative_width: float | None = Field(
        description="Distance of the outermost levels relative to the observations; null likewise."
    )


class HorizonAccuracy(BaseModel):
    """Accuracy of one kind of KPI, so many steps ahead."""

    model_config = ConfigDict(extra="forbid")

    kind: KpiKind
    first_step: int = Field(description="First step ahead.", examples=[4])
    last_step: int | None = Field(description="Last step; null where there is none.", examples=[7])
    recent: RealisedScore = Field(description="Over the last `recent_days`.")
    total: RealisedScore = Field(description="Since the start of the service.")


class ModelAccuracy(BaseModel):
    """Accuracy of one model at one rung, of forecasts at the same levels."""

    model_config = ConfigDict(extra="forbid")

    model: ModelName
    rung: Rung
    levels: list[float] = Field(description="The quantile levels.", examples=[[0.1, 0.5, 0.9]])
    nominal_coverage: float | None = Field(
        description="What the coverage should be; null for a single level.", examples=[0.8]
    )
    since: Stamp = Field(description="End of the earliest observation that counts.")
    until: Stamp = Field(description="End of the latest one.")
    recent_since: Stamp = Field(description="From when on observations count as recent.")
    accuracy: list[HorizonAccuracy]


class Unscored(BaseModel):
    """Forecast values that no observation met, by reason."""

    model_config = ConfigDict(extra="forbid")

    evicted: int = Field(description="Newer forecasts needed the room.")
    expired: int = Field(description="Their observations did not come.")
    replaced: int = Field(description="A newer forecast from the same sample on took the place.")
    refused: int = Field(description="Too large, too many at once, or too many sets of levels.")


class AccuracyResponse(BaseModel):
    """What became of the forecasts of stored cells."""

    model_config = ConfigDict(extra="forbid")

    recent_days: int
    kept_forecasts: int = Field(description="Forecasts that wait for their observations.")
    waiting_values: int = Field(description="Their values that wait: one a KPI and step.")
    unscored: Unscored
    models: list[ModelAccuracy] = Field(
        description="By name, version, digest, rung and levels; only those with a score."
    )


@router.get(
    "/v1/accuracy",
    summary="Read the realised accuracy",
    description="Forecasts of stored cells against what came: coverage and weighted quantile loss "
    "by model, kind of KPI and steps ahead. Everything that was acknowledged before is counted.",
    response_model=AccuracyResponse,
    responses=problems(422, 503),
)
async def accuracy(request: Request, query: Annotated[AccuracyQuery, Query()]) -> AccuracyResponse:
    """What the ledger holds, filtered."""
    ledger = services_of(request).require().accuracy
    figures = await ledger.current()
    return AccuracyResponse(
        recent_days=ledger.recent_days,
        kept_forecasts=figures.forecasts,
        waiting_values=figures.waiting,
        unscored=Unscored(**{fate.value: number for fate, number in figures.lost.items()}),
        models=list(_models(figures, query)),
    )


def _models(figures: LedgerFigures, query: AccuracyQuery) -> Iterator[ModelAccuracy]:
    for statement in figures.statements:
        identity = statement.key.model
        rows = [row for row in statement.rows if query.kind in (None, row.kind)]
        named = query.model in (None, identity.name) and query.version in (None, identity.version)
        if rows and named:
            yield _model(statement, rows)


def _model(statement: Statement, rows: list[ScoreRow]) -> ModelAccuracy:
    identity, rung, levels = statement.key
    nominal = statement.key.nominal_coverage
    return ModelAccuracy(
        model=ModelName(name=identity.name, version=identity.version, digest=identity.digest),
        rung=rung,
        levels=list(levels),
        nominal_coverage=None if nominal is None else round(nominal, 6),
        since=to_rfc3339(statement.since_ms),
        until=to_rfc3339(statement.until_ms),
        recent_since=to_rfc3339(max(statement.recent_since_ms, 0)),
        accuracy=[
            HorizonAccuracy(
                kind=row.kind,
                first_step=row.first_step,
                last_step=row.last_step,
                recent=_score(row.recent, nominal),
                total=_score(row.total, nominal),
            )
            for row in rows
        ],
    )


def _score(score: Score, nominal_coverage: float | None) -> RealisedScore:
    has_interval = nominal_coverage is not None
    return RealisedScore(
        samples=score.samples,
        coverage=_rounded(score.coverage if has_interval else None),
        wql=_rounded(score.wql),
        relative_width=_rounded(score.relative_width if has_interval else None),
    )


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)
