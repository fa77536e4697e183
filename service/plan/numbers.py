"""Numbers as people read them in the tables and words of a plan."""

from __future__ import annotations

_MS_PER_S = 1_000


def digits(value: float) -> str:
    """About three digits, and never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def duration(milliseconds: float) -> str:
    """A time with its unit."""
    if abs(milliseconds) >= _MS_PER_S:
        return f"{digits(milliseconds / _MS_PER_S)} s"
    return f"{digits(milliseconds)} ms"
