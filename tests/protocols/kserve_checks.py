"""KServe's own client and types against a running service; runs in KServe's environment.

    .venv-kserve/bin/python tests/protocols/kserve_checks.py http://127.0.0.1:8080 rancast-small

prints one JSON object: for each check null, or what went wrong.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import numpy as np
from kserve import InferInput, InferRequest
from kserve.inference_client import InferenceRESTClient, RESTConfig
from kserve.protocol.infer_type import RequestedOutput
from kserve.protocol.rest.timeseries import types as timeseries
from kserve.protocol.rest.v2_datamodels import (
    InferenceResponse,
    ListModelsResponse,
    ModelMetadataResponse,
    ModelReadyResponse,
    ServerLiveResponse,
    ServerMetadataResponse,
    ServerReadyResponse,
)

VALUES = np.array([[[12, np.nan, 15.5], [3, 4, 4]]], dtype=np.float32)


class Checks:
    """One method a check; each raises where the service is not what KServe expects."""

    def __init__(self, url: str, model: str) -> None:
        self.url = url
        self.model = model
        self.v1 = InferenceRESTClient(RESTConfig(protocol="v1"))
        self.v2 = InferenceRESTClient(RESTConfig(protocol="v2"))
        self.http = httpx.AsyncClient(base_url=url)

    async def v1_model_is_ready(self) -> None:
        assert await self.v1.is_model_ready(self.url, self.model)

    async def v1_predicts_what_the_frameworks_sample_sends(self) -> None:
        rows = {"signature_name": "serving_default", "instances": [[[2.56, 2.5]] * 10]}
        answer = await self.v1.infer(self.url, rows, model_name=self.model)
        assert np.array(answer["predictions"]).shape == (1, 2)

    async def v1_error_is_read(self) -> None:
        await self._refused(self.v1.infer(self.url, {"instances": []}, model_name=self.model), 400)
        await self._refused(self.v1.infer(self.url, {}, model_name="no-such-model"), 404)

    async def v2_server_lives_and_is_ready(self) -> None:
        assert await self.v2.is_server_live(self.url)
        assert await self.v2.is_server_ready(self.url)
        assert await self.v2.is_model_ready(self.url, self.model)
        assert not await self.v2.is_model_ready(self.url, "no-such-model")

    async def v2_answers_have_the_types_of_the_protocol(self) -> None:
        model = f"/v2/models/{self.model}"
        for path, kind in {
            "/v2": ServerMetadataResponse,
            "/v2/health/live": ServerLiveResponse,
            "/v2/health/ready": ServerReadyResponse,
            "/v2/models": ListModelsResponse,
            model: ModelMetadataResponse,
            f"{model}/ready": ModelReadyResponse,
        }.items():
            answer = await self.http.get(path)
            assert answer.status_code == 200, path
            kind.model_validate(answer.json(), strict=True)

    async def v2_infers_from_json(self) -> None:
        answer = await self.v2.infer(self.url, self._request(binary=False), self.model)
        self._check(answer)
        sent, _ = self._request(binary=False).to_rest()
        raw = await self.http.post(f"/v2/models/{self.model}/infer", content=_dumps(sent))
        InferenceResponse.model_validate(raw.json(), strict=True)

    async def v2_infers_from_bytes(self) -> None:
        headers: dict[str, str] = {}
        answer = await self.v2.infer(
            self.url, self._request(binary=True), self.model, response_headers=headers
        )
        self._check(answer)
        assert headers["content-type"] == "application/octet-stream"

    async def v2_gives_the_outputs_that_were_asked_for(self) -> None:
        wanted = [RequestedOutput("kpi"), RequestedOutput("forecast", {"binary_data": True})]
        request = self._request(binary=True, outputs=wanted)
        answer = await self.v2.infer(self.url, request, self.model)
        assert [output.name for output in answer.outputs] == ["kpi", "forecast"]
        assert answer.outputs[0].data == ["RRU.PrbTotDl", "DRB.MeanActiveUeDl"]

    async def v2_error_is_read(self) -> None:
        wrong = InferRequest(self.model, [InferInput("x", [1], "FP32", [1.0])])
        await self._refused(self.v2.infer(self.url, wrong, self.model), 400)

    async def time_series_has_the_types_of_the_protocol(self) -> None:
        request = timeseries.ForecastRequest.model_validate(
            {
                "model": self.model,
                "inputs": [
                    {
                        "type": "univariate_time_series",
                        "name": "RRU.PrbTotDl",
                        "series": [12.0, 13.0, 15.5],
                        "frequency": "minute",
                        "frequency_multiplier": 15,
                        "start_timestamp": "2026-11-01T00:00:00Z",
                    },
                    {
                        "type": "multivariate_time_series",
                        "name": "cell-1",
                        "series": [[1.0, 2.0], [3.0, 4.0]],
                        "frequency": "H",
                    },
                ],
                "options": {"horizon": 4, "quantiles": [0.1, 0.5, 0.9]},
            }
        )
        raw = await self.http.post("/v1/timeseries/forecast", content=request.model_dump_json())
        answer = timeseries.ForecastResponse.model_validate(raw.json(), strict=False)
        first, second = (output.content[0] for output in answer.outputs)
        assert answer.status is timeseries.Status.COMPLETED
        assert first.start_timestamp == "2026-11-01T00:45:00Z"
        assert first.frequency is timeseries.Frequency.MINUTE
        assert np.shape(first.mean_forecast) == (4,)
        assert np.shape(second.mean_forecast) == (4, 2)
        assert second.quantiles is not None
        assert {key: np.shape(rows) for key, rows in second.quantiles.items()} == {
            "0.1": (4, 2),
            "0.5": (4, 2),
            "0.9": (4, 2),
        }

    async def time_series_error_has_the_types_of_the_protocol(self) -> None:
        for body, status in (({"model": self.model}, 400), (None, 400)):
            raw = await self.http.post("/v1/timeseries/forecast", content=_dumps(body))
            assert raw.status_code == status
            timeseries.ErrorResponse.model_validate(raw.json(), strict=True)

    def _request(
        self, *, binary: bool, outputs: list[RequestedOutput] | None = None
    ) -> InferRequest:
        values = InferInput("values", [1, 2, 3], "FP32")
        # As JSON it has no NaN, which the client writes as null.
        values.set_data_from_numpy(VALUES, binary_data=binary)
        kpi = InferInput("kpi", [2], "BYTES")
        names = np.array(["RRU.PrbTotDl", "DRB.MeanActiveUeDl"], dtype=np.object_)
        kpi.set_data_from_numpy(names, binary_data=binary)
        parameters: dict[str, Any] = {"horizon": 4, "quantiles": "0.1,0.5,0.9"}
        if binary:
            parameters["binary_data_output"] = True
        return InferRequest(
            self.model,
            [values, kpi],
            request_id="42",
            parameters=parameters,
            request_outputs=outputs,
        )

    def _check(self, answer: Any) -> None:
        assert (answer.id, answer.model_name) == ("42", self.model)
        outputs = {output.name: output for output in answer.outputs}
        forecast = outputs["forecast"].as_numpy()
        assert forecast.shape == (1, 2, 4, 3)
        assert forecast.dtype == np.float32
        assert np.isfinite(forecast).all()
        assert (np.diff(forecast, axis=-1) >= 0).all()

    async def _refused(self, call: Awaitable[Any], status: int) -> None:
        refusal: httpx.HTTPStatusError | None = None
        try:
            await call
        except httpx.HTTPStatusError as error:
            refusal = error
        assert refusal is not None, f"expected status {status}"
        assert refusal.response.status_code == status
        assert refusal.response.json()["error"] in str(refusal)


def _dumps(body: Any) -> bytes:
    return json.dumps(body).encode()


async def _run(url: str, model: str) -> dict[str, str | None]:
    checks = Checks(url, model)
    results: dict[str, str | None] = {}
    for name in (each for each in vars(Checks) if each.startswith(("v1_", "v2_", "time_series_"))):
        check: Callable[[], Awaitable[None]] = getattr(checks, name)
        try:
            await check()
            results[name] = None
        except Exception:
            results[name] = traceback.format_exc()
    return results


def main() -> None:
    """Run all checks against the service and model that the command line names."""
    url, model = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(_run(url, model))) + "\n")


if __name__ == "__main__":
    main()
