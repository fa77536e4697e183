"""From the JSON text of a body to a checked model.

The good case is quick: lists of samples are read by C++ and the little that is left by pydantic.
Where a list is in doubt, the whole is read by pydantic alone, so that both ways accept and refuse
the same. Either way the memory that a body takes is bounded before it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from service.codecs.cutting import OF_SERIES, cut_samples
from service.codecs.structure import check_lists, check_parts
from service.errors import InvalidRequestError, MalformedBodyError
from service.faults import faults_of
from service.schemas import CutLists

Body = TypeVar("Body", bound=BaseModel)


def decode_histories(text: bytes, model: type[Body]) -> Body:
    """Read and check a body whose only lists of numbers under a KPI's name are `Samples`.

    May be called from any thread.

    Raises:
        MalformedBodyError: It is not JSON.
        TooLargeError: It has too much structure.
        InvalidRequestError: It is JSON of another shape.
    """
    return decode_cut(text, model, (OF_SERIES,))


def decode_cut(text: bytes, model: type[Body], places: Sequence[str]) -> Body:
    """Read and check a body whose lists of samples stand at these places and no others.

    May be called from any thread.

    Args:
        text: The body.
        model: What it should be; its validators find the lists in the context `CutLists`.
        places: See `cut_samples`.

    Raises:
        MalformedBodyError: It is not JSON.
        TooLargeError: It has too much structure.
        InvalidRequestError: It is JSON of another shape.
    """
    cut = cut_samples(text, places)
    if cut is None:
        return decode_json(text, model)
    check_parts(cut.skeleton, len(text))
    try:
        return model.model_validate_json(cut.skeleton, context=CutLists(cut.lists, cut.whole))
    except ValidationError as error:
        complaint = error
    if _is_no_json(complaint):
        return decode_json(text, model)  # the whole text has other lines and columns
    raise _refusal(complaint, text)


def decode_json(text: bytes, model: type[Body]) -> Body:
    """Read and check a body of any shape; may be called from any thread.

    Raises:
        MalformedBodyError: It is not JSON.
        TooLargeError: It has too much structure.
        InvalidRequestError: It is JSON of another shape.
    """
    check_lists(text)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        complaint = error
    if _is_no_json(complaint):
        (only,) = complaint.errors(include_url=False, include_input=False)
        raise MalformedBodyError(f"expected JSON: {only['ctx']['error']}")
    raise _refusal(complaint, text)


def _is_no_json(complaint: ValidationError) -> bool:
    if complaint.error_count() != 1:
        return False
    (only,) = complaint.errors(include_url=False, include_input=False)
    return only["type"] == "json_invalid"


def _refusal(complaint: ValidationError, text: bytes) -> InvalidRequestError:
    """What is wrong with a body, in words."""
    first, *others = faults_of(complaint, text)
    return InvalidRequestError(first.path, first.reason, tuple(others))
