"""What stands beside a forecast in the answers of KServe's protocols."""

from __future__ import annotations

from typing import Any

import orjson

from model.predictor import Forecast
from service import timestamps


def provenance(forecast: Forecast, now_ms: int) -> dict[str, Any]:
    """What the forecast rests on, as in the answer of `POST /v1/forecast`.

    Args:
        forecast: Whose provenance it is.
        now_ms: The time of the answer, from which the age counts.
    """
    context = forecast.context
    return {
        "rung": forecast.rung.value,
        "context": {
            "start": timestamps.to_rfc3339(context.start_ms),
            "end": timestamps.to_rfc3339(context.end_ms),
            "missing_ratio": round(context.missing_ratio, 6),
            "age_seconds": age_seconds(forecast, now_ms),
        },
    }


def age_seconds(forecast: Forecast, now_ms: int) -> float | None:
    """Seconds from the end of the newest value to now, None where there is none."""
    newest_ms = forecast.context.newest_ms
    return None if newest_ms is None else timestamps.age_seconds(newest_ms, now_ms)


def json_bytes(value: Any) -> bytes:
    """Compact JSON; arrays of numbers may be in it, contiguous, and what is not finite is null."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
