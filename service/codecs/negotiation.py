"""Which form an answer has: the Accept header (RFC 9110, section 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from service.errors import NotAcceptableError

# Longer headers are no preference but an attack; what is behind is not read.
_MOST_RANGES = 64


def preferred_type(accept: str | None, offered: Sequence[str]) -> str:
    """The media type that a client likes best.

    Args:
        accept: The request's Accept header; None or blank takes anything.
        offered: Media types that the route can write, the best one first, which wins ties.

    Returns:
        One of `offered`.

    Raises:
        NotAcceptableError: The client takes none of them.
    """
    if accept is None or not accept.strip():
        return offered[0]
    ranges = [_range(part) for part in accept.split(",")[:_MOST_RANGES]]
    weights = {media_type: _weight(media_type, ranges) for media_type in offered}
    best = max(offered, key=lambda media_type: weights[media_type])
    if weights[best] <= 0:
        raise NotAcceptableError(
            f"expected Accept to allow {' or '.join(offered)}, got {accept[:200]!r}"
        )
    return best


def _range(text: str) -> tuple[str, float]:
    """A media range and its weight; one with a weight that cannot be read counts for nothing."""
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return media_range, _quality(value.strip())
    return media_range, 1.0


def _quality(text: str) -> float:
    whole, _, fraction = text.partition(".")
    digits = whole + fraction
    if whole not in ("0", "1") or not digits.isascii() or not digits.isdecimal():
        return 0.0
    return min(float(text), 1.0)


def _weight(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The weight that the most specific range gives to a media type; 0 where none holds."""
    wildcard = media_type.partition("/")[0] + "/*"
    for wanted in (media_type, wildcard, "*/*"):
        weights = [weight for media_range, weight in ranges if media_range == wanted]
        if weights:
            return max(weights)
    return 0.0
