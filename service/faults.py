"""From a validator's complaints to faults that a client can mend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from service.errors import Fault
from service.room import SMALL_BYTES
from service.series import pointer

_MOST_FAULTS = 10
# More are not even looked at.
_MOST_COMPLAINTS = 1_000
_STAMP = "expected an RFC 3339 stamp with an offset, such as 2026-11-01T00:00:00Z"
_REASONS: Mapping[str, str] = {
    "missing": "expected this field, but it is missing",
    "extra_forbidden": "unknown field; remove it or correct its name",
    "finite_number": "expected a finite number; write null where nothing is known",
    "timezone_aware": _STAMP,
    "datetime_type": _STAMP,
    "datetime_parsing": _STAMP,
    "datetime_from_date_parsing": _STAMP,
    "float_type": "expected a number",
    "int_type": "expected a whole number",
}
# Parts that validators add: the key of a mapping, not its value; which form of several was read.
MARK = "[{}]"
_MARKS = frozenset(MARK.format(name) for name in ("key", "series", "rows", "numbers"))


def body_faults(errors: Sequence[Any]) -> list[Fault]:
    """Faults of a JSON body, each with a JSON Pointer; the first ten."""
    return [
        Fault(pointer(*(part for part in error["loc"] if part not in _MARKS)), _reason(error))
        for error in errors[:_MOST_FAULTS]
    ]


def faults_of(error: ValidationError, text: bytes) -> list[Fault]:
    """What a validator has against a JSON text, in a memory that does not grow with its faults.

    A complaint takes a hundred times what the field takes that it is about, and shows its input as
    Python objects. So what came is repeated of small texts only, and of very many faults no one is.

    Args:
        error: What the validator said.
        text: The whole text.
    """
    if error.error_count() > _MOST_COMPLAINTS:
        reason = (
            f"expected what the schema in /docs says, but {error.error_count()} values or fields "
            "are otherwise"
        )
        return [Fault("", reason)]
    return body_faults(error.errors(include_url=False, include_input=len(text) <= SMALL_BYTES))


def query_faults(errors: Sequence[Any]) -> list[Fault]:
    """Faults of query parameters, headers or path, as `query:NAME` and so on; the first ten."""
    return [
        Fault(":".join(str(part) for part in error["loc"][:2]), _reason(error))
        for error in errors[:_MOST_FAULTS]
    ]


def _reason(error: Any) -> str:
    reason = _REASONS.get(error["type"])
    given = error.get("input")
    if reason is None:
        reason = _uncapitalised(str(error["msg"]))
    if isinstance(given, str | int | float) and error["type"] != "extra_forbidden":
        text = repr(given)
        reason += f", got {text if len(text) <= 80 else text[:77] + '…'}"
    return reason


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:]
