"""An answer as plain lists and strings, for servers that write JSON from those."""

from __future__ import annotations

from typing import Any

from model.predictor import Forecast


def plain_answer(forecast: Forecast) -> dict[str, Any]:
    """What a client needs of a forecast."""
    return {
        "cell": forecast.cell,
        "start_ms": forecast.start_ms,
        "step_seconds": forecast.step_ms / 1000,
        "kpis": {
            kpi: {
                str(level): values[:, number].tolist()
                for number, level in enumerate(forecast.levels)
            }
            for kpi, values in zip(forecast.kpis, forecast.values, strict=True)
        },
        "rung": forecast.rung.value,
    }
