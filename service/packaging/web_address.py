"""Absolute addresses of HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def is_web_address(value: Any) -> bool:
    """Whether a value is an absolute address of HTTP, with a host and without a password."""
    if not isinstance(value, str) or value != value.strip() or " " in value:
        return False
    try:
        parts = urlsplit(value)
        # Asking for a port reads it.
        if parts.scheme not in ("http", "https") or "@" in parts.netloc:
            return False
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
