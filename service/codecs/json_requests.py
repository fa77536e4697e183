"""From the JSON text of a body to a checked model.

The good case is quick: lists of samples are read by C++ and the little that is left by pydantic.
Whatever is in doubt there is read again by pydantic alone, which is the only one that words errors,
so that both ways accept and refuse the same.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from service.codecs.cutting import cut_samples
from service.errors import InvalidRequestError, MalformedBodyError
from service.faults import body_faults
from service.schemas import CutLists

Body = TypeVar("Body", bound=BaseModel)


def decode_histories(text: bytes, model: type[Body]) -> Body:
    """Read and check a body whose only lists of numbers under a KPI's name are `Samples`.

    May be called from any thread.

    Raises:
        MalformedBodyError: It is not JSON.
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
        InvalidRequestError: It is JSON of another shape.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":
        raise MalformedBodyError(f"expected JSON: {errors[0]['ctx']['error']}")
    first, *others = body_faults(errors)
    raise InvalidRequestError(first.path, first.reason, tuple(others))
