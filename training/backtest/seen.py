"""Whether a checkpoint learnt from recordings that go on beyond the origins of a backtest.

A card says until when the recordings went that taught or calibrated its weights, not of which
cells they were: the backtest can only say that a score may flatter, and from when on it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kpi.window import KpiWindow
from model.checkpoint import Checkpoint
from training.backtest.config import BacktestConfig, origins_of

UNTIL = "data_until"
"""Key of a card's stories under which `training.dataset.latest_end` stands."""


def learnt_until_ms(checkpoint: Checkpoint) -> int | None:
    """When the latest recording ends that anything in a checkpoint was learnt from, UTC ms.

    Its weights, those that they were tuned from, and its calibration; None where no card says so,
    as with synthetic cells only.
    """
    stories: list[Any] = [checkpoint.training]
    if checkpoint.calibration is not None:
        stories.append(checkpoint.calibration.provenance)
    dates = [date for story in stories for date in _dates(story)]
    return max((round(date.timestamp() * 1000) for date in dates), default=None)


def seen_note(
    checkpoint: Checkpoint, windows: Sequence[KpiWindow], config: BacktestConfig
) -> str | None:
    """What a reader has to know where a checkpoint may have learnt from what is tested."""
    until_ms = learnt_until_ms(checkpoint)
    begins = [
        window.start_ms + origin * window.step_ms
        for window in windows
        for origin in origins_of(window, config)
    ]
    earlier = sum(begin < until_ms for begin in begins) if until_ms is not None else 0
    if until_ms is None or not earlier:
        return None
    until = datetime.fromtimestamp(until_ms / 1000, UTC)
    return (
        f"learnt from recordings up to {until:%Y-%m-%d %H:%M} UTC, after "
        f"{earlier / len(begins):.0%} of these origins: if these cells were among them, its scores "
        "flatter it; for fair ones test on later days"
    )


def _dates(story: object) -> Iterator[datetime]:
    """All dates under `UNTIL` in a story and the stories inside it."""
    if not isinstance(story, Mapping):
        return
    for key, value in story.items():
        if key == UNTIL and isinstance(value, str):
            yield datetime.fromisoformat(value)
        else:
            yield from _dates(value)
