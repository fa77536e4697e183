"""What is asked of the model, checked against what it can answer, before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from model.predictor import Predictor
from service.errors import InvalidRequestError
from service.schemas import MAX_LEVELS


def check_horizon(horizon: int, predictor: Predictor, path: str) -> None:
    """Refuse a horizon that the model cannot answer.

    Raises:
        InvalidRequestError: It is not in 1..max_horizon.
    """
    if not 1 <= horizon <= predictor.max_horizon:
        raise InvalidRequestError(
            path, f"expected a horizon of 1 to {predictor.max_horizon} steps, got {horizon}"
        )


def check_levels(levels: Sequence[float], predictor: Predictor, path: str) -> None:
    """Refuse quantile levels that the model cannot answer.

    Raises:
        InvalidRequestError: They do not ascend, or one is outside the trained range.
    """
    if any(later <= earlier for earlier, later in pairwise(levels)):
        raise InvalidRequestError(
            path, f"expected quantiles in ascending order, each once, got {list(levels)}"
        )
    least, most = predictor.level_range
    for level in levels:
        if not least <= level <= most:
            raise InvalidRequestError(
                path,
                f"expected quantiles of {least:g} to {most:g}, which this model was trained on, "
                f"got {level:g}",
            )


def parse_levels(text: str, path: str) -> list[float]:
    """Quantile levels of a text such as `0.1,0.5,0.9`.

    Raises:
        InvalidRequestError: They are no numbers, or too many.
    """
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidRequestError(
            path, f"expected numbers separated by commas, got {text!r}"
        ) from None
    if len(levels) > MAX_LEVELS:
        raise InvalidRequestError(
            path, f"expected at most {MAX_LEVELS} quantiles, got {len(levels)}"
        )
    return levels
