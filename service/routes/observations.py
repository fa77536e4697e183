"""`POST /v1/observations`: samples into the store."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request

from kpi.errors import JournalError
from kpi.limits import MergeResult
from service.codecs.requests import read_observations
from service.container import services_of
from service.errors import StorageError
from service.routes.responses import histories_body, problems
from service.schemas import ObservationsResponse, RejectedObservation
from service.series import SentObservations, pointer

router = APIRouter(tags=["store"])


@router.post(
    "/v1/observations",
    summary="Keep samples",
    description="Merges the samples into the store and answers once the journal holds them. "
    "Sending the same samples again changes nothing; a later value of the same cell, KPI, period "
    "length and period end replaces the earlier one. A null is a sample without a value.",
    response_model=ObservationsResponse,
    responses=problems(400, 413, 415, 422, 429, 503),
    openapi_extra=histories_body("ObservationsRequest", "Samples to keep."),
)
async def observations(request: Request) -> ObservationsResponse:
    """Merge, then answer."""
    services = services_of(request)
    ingestion = services.require().ingestion
    with services.room.visit() as visit:
        histories = await read_observations(request, services, visit)
        sent = await asyncio.to_thread(
            histories.observations,
            services.limits,
            services.catalogue,
            arrival_ms=services.clock.now_ms(),
        )
        try:
            result = await ingestion.merge_in_turn(sent.batch)
        except JournalError as error:
            raise StorageError(f"{error}; send the request again when it can be") from error
    return ObservationsResponse(
        accepted=result.accepted,
        merged=result.merged,
        late=result.late,
        rejected=_rejected(sent, result),
    )


def _rejected(sent: SentObservations, result: MergeResult) -> list[RejectedObservation]:
    rejected = [
        RejectedObservation(
            path=sent.pointer(one.path),
            reason=f"{one.reason} ({one.count} {'sample' if one.count == 1 else 'samples'})",
        )
        for one in result.rejected
    ]
    if result.expired:
        rejected.append(
            RejectedObservation(
                path=pointer(sent.place),
                reason=f"older than the history that is kept ({result.expired} samples)",
            )
        )
    return rejected
