"""The part of the chart's schema that describes the settings of the service.

It is written from the settings themselves, so that a name or a value that the service would refuse
at its start is refused before anything is installed.
"""

from __future__ import annotations

from typing import Any

from service.settings import Settings

# What follows from other values of the chart.
RESERVED = frozenset({"host", "port", "open_access", "journal_path"})
_KEPT = (
    "type",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
)


def settings_schema() -> dict[str, Any]:
    """JSON schema (draft-07) of each setting that values may name."""
    whole = Settings.model_json_schema()
    definitions = whole.get("$defs", {})
    return {
        name: _one(field, definitions)
        for name, field in whole["properties"].items()
        if name not in RESERVED
    }


def _one(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    described = {"description": field["description"]}
    if "$ref" in field:
        field = definitions[field["$ref"].rpartition("/")[2]]
    # Of "a number or unset" the number: who does not set it leaves it out.
    (field,) = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
    if field["type"] == "array":
        return described | {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        }
    if "off" in field.get("enum", ()):
        described["description"] += ' Quote "off", which YAML takes for false.'
    return described | {key: field[key] for key in _KEPT if key in field}
