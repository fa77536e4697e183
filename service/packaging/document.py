"""JSON and YAML documents as packages hold them, read without trusting them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from service.packaging.errors import PackageError

# What a document may come to once its aliases are put in: values.yaml of large charts have a
# hundredth of it, and a bomb of nine lists in nine lists a thousand times as much.
MOST_WEIGHT = 2_000_000
_MOST_LETTERS = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def as_json(document: Mapping[str, Any]) -> bytes:
    """A document as people read it, always the same bytes for the same content."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def read_json(content: bytes) -> Any:
    """What a JSON file holds, read as strictly as the tools of a RIC read it.

    Raises:
        PackageError: It is no JSON, has a byte order mark, or is not in UTF-8.
    """
    if content.startswith(_BYTE_ORDER_MARK):
        raise PackageError("expected JSON without a byte order mark, which a RIC's tools refuse")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise PackageError(f"expected JSON, got: {error}") from error


def read_yaml(content: bytes) -> Any:
    """What a YAML file holds.

    Raises:
        PackageError: It is no YAML, or is a bomb of aliases.
    """
    try:
        document = yaml.safe_load(content)
        weight = _weight(document, {})
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise PackageError(f"expected YAML, got: {error}") from error
    if weight > MOST_WEIGHT:
        raise PackageError(
            f"expected at most {MOST_WEIGHT} values and letters once aliases are put in, got "
            f"{weight}"
        )
    return document


def shown(value: Any) -> str:
    """A value as messages show it: whole where it is short."""
    text = repr(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"


def _weight(value: Any, known: dict[int, int]) -> int:
    """Values and letters of a document as if nothing in it were shared."""
    if isinstance(value, str | bytes):
        return 1 + len(value)
    if not isinstance(value, dict | list | tuple | set):
        return 1
    if (found := known.get(id(value))) is not None:
        if not found:
            raise ValueError("a value that holds itself")
        return found
    known[id(value)] = 0
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    known[id(value)] = weight = 1 + sum(_weight(each, known) for each in inner)
    return weight


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
