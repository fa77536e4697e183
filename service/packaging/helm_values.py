"""Values of a chart with others over them, as `helm --set KEY=VALUE` makes them of text.

The participant that installs an rApp hands `overrideParams` to Helm in that way. What Helm makes of
them can be said before: text becomes a number or a constant where it looks like one, a number with
a decimal point does not, and the chart's schema then holds for the result
(https://helm.sh/docs/intro/using_helm/#the-format-and-limitations-of---set).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.packaging.chart import Chart
from service.packaging.document import read_json
from service.packaging.errors import PackageError, UnusableSchemaError
from service.packaging.json_schema import Fault, faults

SCHEMA_FILE = "values.schema.json"
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None, "0": 0}
# With a zero in front it stays text, and so does a number with a point.
_INTEGER = re.compile(r"[+-][0-9]+|[1-9][0-9]*")
_LARGEST = (1 << 63) - 1
_DOT = re.compile(r"(?<!\\)\.")


def path_of(key: str) -> list[str]:
    """Names on the way to a value; a dot behind a backslash is part of a name."""
    return [part.replace("\\.", ".") for part in _DOT.split(key)]


def typed(text: str) -> Any:
    """What Helm makes of the text behind the equals sign."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    # Bounded before it is read: Python refuses to read thousands of digits.
    if len(text) > len(str(_LARGEST)) + 1 or not _INTEGER.fullmatch(text):
        return text
    number = int(text)
    return number if -_LARGEST - 1 <= number <= _LARGEST else text


def with_overrides(values: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """Values of a chart with others over them; what becomes null is left out.

    Args:
        values: The chart's own.
        overrides: Text by dotted name.
    """
    merged = copy.deepcopy(dict(values))
    for key, text in overrides.items():
        _put(merged, path_of(key), typed(text))
    return merged


def misfits(chart: Chart, overrides: Mapping[str, str]) -> list[Fault]:
    """Where values do not fit the schema that a chart brings; nothing where it brings none.

    Raises:
        UnusableSchemaError: The schema is none.
        PackageError: The library that validates is not installed.
    """
    if SCHEMA_FILE not in chart.files:
        return []
    try:
        schema = read_json(chart.files[SCHEMA_FILE])
    except PackageError as error:
        raise UnusableSchemaError(str(error)) from error
    if not isinstance(schema, dict):
        raise UnusableSchemaError(f"expected a JSON object, got a {type(schema).__name__}")
    return faults(schema, with_overrides(chart.values, overrides))


def _put(level: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    *way, last = keys
    for key in way:
        inner = level.get(key)
        if not isinstance(inner, dict):
            inner = level[key] = {}
        level = inner
    if value is None:
        level.pop(last, None)
    else:
        level[last] = value
