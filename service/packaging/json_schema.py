"""Validating against JSON Schemas that came from somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.packaging.errors import PackageError, UnusableSchemaError

_MOST_LETTERS = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a document does not fit its schema.

    Attributes:
        place: Path into the document, with slashes; empty for all of it.
        message: Why.
        value: What is there.
        pattern: The pattern that it does not match, where it is one.
    """

    place: str
    message: str
    value: Any
    pattern: str | None


def faults(schema: Mapping[str, Any], document: Any) -> list[Fault]:
    """Where a document does not fit, in the order of the places.

    References are looked up in the schema alone, and never fetched.

    Args:
        schema: A JSON Schema; draft 7 where it does not say which.
        document: What it is to hold for.

    Raises:
        UnusableSchemaError: The schema is none, or has references that lead nowhere.
        PackageError: The library is not installed.
    """
    try:
        import jsonschema
        from referencing import Registry
        from referencing.exceptions import Unresolvable
    except ImportError as error:
        raise PackageError(
            "validating needs jsonschema: install rancast's extra `packaging`"
        ) from error
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft7Validator)
    try:
        kind.check_schema(schema)
        found = list(kind(schema, registry=Registry()).iter_errors(document))
    except jsonschema.SchemaError as error:
        raise UnusableSchemaError(
            f"expected a JSON Schema as {kind.META_SCHEMA['$schema']} has it, got: "
            f"{error.message[:_MOST_LETTERS]}"
        ) from error
    except Unresolvable as error:
        raise UnusableSchemaError(
            f"expected references inside the schema, got one that leads nowhere: {error.ref}"
        ) from error
    except RecursionError as error:
        raise UnusableSchemaError(
            "expected a schema that comes to an end, got one that is endless"
        ) from error
    return sorted(
        (
            Fault(
                "/".join(map(str, fault.path)),
                str(fault.message)[:_MOST_LETTERS],
                fault.instance,
                fault.schema.get("pattern") if isinstance(fault.schema, dict) else None,
            )
            for fault in found
        ),
        key=lambda fault: fault.place,
    )
