"""A plan as JSON, written and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.errors import ServiceError
from service.plan.planning import SCHEMA, Plan

_PLAN = TypeAdapter(Plan)


class PlanFileError(ServiceError):
    """A file of a plan that cannot be written or read; the message says what was expected."""


def to_document(plan: Plan) -> dict[str, Any]:
    """Plain values, as the JSON has them."""
    document: dict[str, Any] = _PLAN.dump_python(plan, mode="json")
    return document


def from_document(document: dict[str, Any]) -> Plan:
    """The plan that `to_document` wrote.

    Raises:
        PlanFileError: It is of another version, or no plan.
    """
    if document.get("schema") != SCHEMA:
        raise PlanFileError(f"expected a plan of {SCHEMA}, got {document.get('schema')!r}")
    try:
        return _PLAN.validate_python(document)
    except ValidationError as error:
        raise PlanFileError(f"expected a plan of {SCHEMA}: {error}") from error


def write_document(plan: Plan, path: Path) -> None:
    """Write the JSON.

    Raises:
        PlanFileError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_PLAN.dump_json(plan, indent=2) + b"\n")
    except OSError as error:
        raise PlanFileError(f"{path} cannot be written: {error.strerror or error}") from error
