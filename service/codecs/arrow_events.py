"""Planned events in a column of an Arrow request: lists of structs of start, end and kind."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kpi.window import PlannedEvent
from service.codecs.arrow_columns import instants_ms, names_of
from service.errors import InvalidRequestError
from service.schemas import MAX_EVENTS, Event
from service.series import pointer
from service.timestamps import to_ms

_REQUIRED = {"start", "end"}
_DEFAULT_KIND = str(Event.model_fields["kind"].default)
# Instants that JSON can write (RFC 3339 has years of four digits).
_FIRST_MS = to_ms(datetime.min.replace(tzinfo=UTC))
_LAST_MS = to_ms(datetime.max.replace(tzinfo=UTC))


def events_of(column: str, array: pa.Array) -> dict[int, tuple[PlannedEvent, ...]]:
    """Events by row, of the rows that have some; null and an empty list are no events.

    Raises:
        InvalidRequestError: An event has no start or end, one outside the years 1 to 9999, or ends
            before it starts; a row has too many; or the column is of another type.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return {}
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_struct(kind.value_type):
        raise InvalidRequestError(
            pointer(column), f"expected lists of structs of start, end and kind, got {kind}"
        )
    fields = [kind.value_type.field(i).name for i in range(kind.value_type.num_fields)]
    if not _REQUIRED <= {*fields} <= _REQUIRED | {"kind"} or len({*fields}) < len(fields):
        raise InvalidRequestError(
            pointer(column), f"expected events with start, end and kind, got {fields}"
        )
    offsets = array.offsets.to_numpy().astype(np.int64)
    lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
    if (lengths > MAX_EVENTS).any():
        raise InvalidRequestError(
            pointer(column, int(np.argmax(lengths > MAX_EVENTS))),
            f"expected at most {MAX_EVENTS} events, got {lengths.max()}",
        )
    events = _events(column, array.values)
    return {
        row: tuple(events[offsets[row] : offsets[row] + lengths[row]])
        for row in np.flatnonzero(lengths).tolist()
    }


def _events(column: str, structs: pa.StructArray) -> list[PlannedEvent]:
    """All events one behind another; faults are named by their number among them."""
    if structs.null_count:
        raise InvalidRequestError(pointer(column), "expected events, got null among them")
    starts = _instants_ms(f"{column}.start", structs.field("start"))
    ends = _instants_ms(f"{column}.end", structs.field("end"))
    is_bad = ends <= starts
    if is_bad.any():
        raise InvalidRequestError(
            pointer(f"{column}.end", int(np.argmax(is_bad))), "expected an end after the start"
        )
    if structs.type.get_field_index("kind") < 0:
        kinds = [_DEFAULT_KIND] * len(structs)
    else:
        names = names_of(f"{column}.kind", structs.field("kind"), optional=True)
        with_default = [*names.distinct, _DEFAULT_KIND]
        kinds = [with_default[code] for code in names.codes.tolist()]
    return [
        PlannedEvent(start, end, kind)
        for start, end, kind in zip(starts.tolist(), ends.tolist(), kinds, strict=True)
    ]


def _instants_ms(column: str, array: pa.Array) -> NDArray[np.int64]:
    instants = instants_ms(column, array)
    is_bad = (instants < _FIRST_MS) | (instants > _LAST_MS)
    if is_bad.any():
        raise InvalidRequestError(
            pointer(column, int(np.argmax(is_bad))), "expected an instant of the years 1 to 9999"
        )
    return instants
