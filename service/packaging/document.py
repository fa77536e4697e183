"""JSON documents as packages hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_json(document: Mapping[str, Any]) -> bytes:
    """A document as people read it, always the same bytes for the same content."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
