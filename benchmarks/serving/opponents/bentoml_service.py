"""The shipped model behind BentoML with its own batching; runs in BentoML's environment.

    bentoml serve benchmarks.serving.opponents.bentoml_service:Forecasts --port PORT

After https://docs.bentoml.com, adaptive batching: a batchable API with `max_batch_size` and
`max_latency_ms` (here from BATCH_LATENCY_MS, because decorators are read at import), one worker.
Each request is a batch of one dict, which nobody validates.
"""

import os
from datetime import datetime
from typing import Any

import bentoml
import numpy as np

from benchmarks.inference.shapes import HORIZON, LEVELS
from benchmarks.serving.opponents.answers import plain_answer
from benchmarks.serving.shipped import shipped_predictor
from kpi.window import KpiWindow

BATCH_LIMIT = 32
LATENCY_VARIABLE = "BATCH_LATENCY_MS"
_LATENCY_MS = int(os.environ.get(LATENCY_VARIABLE, "60000"))


@bentoml.service(
    workers=1,
    traffic={"timeout": 60},
    logging={"access": {"enabled": False}},
    metrics={"enabled": True},
)
class Forecasts:
    """Forecasts one cell a request."""

    def __init__(self) -> None:
        self.predictor = shipped_predictor()

    @bentoml.api(  # type: ignore[untyped-decorator]
        route="/v1/forecast",
        batchable=True,
        max_batch_size=BATCH_LIMIT,
        max_latency_ms=_LATENCY_MS,
    )
    def forecast(self, series: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Forecast a batch."""
        windows = [
            KpiWindow(
                cell=one["cell"],
                kpis=tuple(one["kpis"]),
                start_ms=int(datetime.fromisoformat(one["start"]).timestamp() * 1000),
                step_ms=int(one["step_seconds"] * 1000),
                values=np.array(list(one["kpis"].values()), dtype=np.float32),
            )
            for one in series
        ]
        return [plain_answer(one) for one in self.predictor.predict(windows, HORIZON, LEVELS)]
