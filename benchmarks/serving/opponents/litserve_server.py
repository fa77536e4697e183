"""The shipped model behind LitServe with its own batching; runs in LitServe's environment.

    python -m benchmarks.serving.opponents.litserve_server PORT --batch-timeout SECONDS

After https://lightning.ai/docs/litserve: `max_batch_size` and `batch_timeout` of the API, one
worker. The body is the dict that LitServe hands over, which nobody validates.
"""

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import litserve
import numpy as np

from benchmarks.inference.shapes import HORIZON, LEVELS
from benchmarks.serving.opponents.answers import plain_answer
from benchmarks.serving.shipped import shipped_predictor
from kpi.window import KpiWindow
from model.predictor import Forecast

BATCH_LIMIT = 32
TIMEOUT_S = 60


class ForecastApi(litserve.LitAPI):  # type: ignore[misc]
    """Forecasts one cell a request."""

    def setup(self, device: str) -> None:  # noqa: ARG002
        """Load the model in the worker."""
        self.predictor = shipped_predictor()

    def decode_request(self, request: dict[str, Any]) -> KpiWindow:
        """A window from the body."""
        (series,) = request["series"]
        return KpiWindow(
            cell=series["cell"],
            kpis=tuple(series["kpis"]),
            start_ms=int(datetime.fromisoformat(series["start"]).timestamp() * 1000),
            step_ms=int(series["step_seconds"] * 1000),
            values=np.array(list(series["kpis"].values()), dtype=np.float32),
        )

    def batch(self, inputs: list[KpiWindow]) -> list[KpiWindow]:
        """The predictor takes a list."""
        return inputs

    def predict(self, windows: Sequence[KpiWindow]) -> list[Forecast]:
        """Forecast a batch."""
        return self.predictor.predict(windows, HORIZON, LEVELS)

    def unbatch(self, output: list[Forecast]) -> list[Forecast]:
        """The predictor gives a list."""
        return output

    def encode_response(self, output: Forecast) -> dict[str, Any]:
        """The answer, which LitServe writes as JSON."""
        return plain_answer(output)


def main() -> None:
    """Serve on the port that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--batch-timeout", type=float, required=True)
    options = parser.parse_args()
    api = ForecastApi(
        api_path="/v1/forecast", max_batch_size=BATCH_LIMIT, batch_timeout=options.batch_timeout
    )
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=TIMEOUT_S)
    server.run(
        host="127.0.0.1",
        port=options.port,
        num_api_servers=1,
        log_level="warning",
        generate_client_file=False,
        access_log=False,
    )


if __name__ == "__main__":
    main()
