"""From the JSON text of a body to a checked model.

The good case is quick: lists of samples are read by C++ and the little that is left by pydantic.
Whatever is in doubt there is read again by pydantic alone, which is the only one that words errors,
so that both ways accept and refuse the same.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from service.codecs.cutting import cut_samples
from service.errors import InvalidRequestError, MalformedBodyError, TooLargeError
from service.faults import faults_of
from service.schemas import CutLists

# An object takes some hundred times the two bytes of its braces while it is parsed.
_MOST_OBJECTS = 1_000_000

Body = TypeVar("Body", bound=BaseModel)


def decode_histories(text: bytes, model: type[Body]) -> Body:
    """Read and check a body whose only lists of numbers under a KPI's name are `Samples`.

    May be called from any thread.

    Raises:
        MalformedBodyError: It is not JSON.
        TooLargeError: It has more than a million objects.
        InvalidRequestError: It is JSON of another shape.
    """
    cut = cut_samples(text)
    if cut is not None and cut.lists:
        try:
            return model.model_validate_json(cut.skeleton, context=CutLists(cut.lists))
        except ValidationError:
            pass  # is worded from the whole text, which has other lines and columns
    return decode_json(text, model)


def decode_json(text: bytes, model: type[Body]) -> Body:
    """Read and check a body of any shape; may be called from any thread.

    Raises:
        MalformedBodyError: It is not JSON.
        TooLargeError: It has more than a million objects.
        InvalidRequestError: It is JSON of another shape.
    """
    if text.count(b"{") > _MOST_OBJECTS:
        raise TooLargeError(
            f"expected at most {_MOST_OBJECTS} objects in one body, got more; divide them over "
            "several"
        )
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        broken = _break_in(error)
        first, *others = faults_of(error, text)
    if broken is not None:
        raise MalformedBodyError(f"expected JSON: {broken}")
    raise InvalidRequestError(first.path, first.reason, tuple(others))


def _break_in(error: ValidationError) -> str | None:
    """Where a text breaks that is not JSON, None where it is; this is never one error of many."""
    if error.error_count() > 1:
        return None
    (only,) = error.errors(include_url=False, include_input=False)
    return str(only["ctx"]["error"]) if only["type"] == "json_invalid" else None
