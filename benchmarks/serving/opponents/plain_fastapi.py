"""The same route in plain FastAPI and pydantic, as a user would write it.

    python -m benchmarks.serving.opponents.plain_fastapi PORT {trivial,shipped}

Inference is done in the handler. One worker of uvicorn, with what it installs for speed, as ours.
"""

import argparse
from datetime import UTC, datetime

import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from kpi.window import KpiWindow
from model.predictor import Forecast, Predictor


class Series(BaseModel):
    """Samples of one cell."""

    cell: str
    start: datetime
    step_seconds: float
    kpis: dict[str, list[float | None]]


class ForecastRequest(BaseModel):
    """Histories, and what to forecast from them."""

    series: list[Series]
    horizon: int
    quantiles: list[float] = [0.1, 0.5, 0.9]


class Context(BaseModel):
    """What a forecast was made from."""

    start: datetime
    end: datetime
    missing_ratio: float


class CellForecast(BaseModel):
    """Quantiles of the coming samples of one cell."""

    cell: str
    start: datetime
    step_seconds: float
    kpis: dict[str, dict[str, list[float | None]]]
    rung: str
    context: Context


class ForecastResponse(BaseModel):
    """One forecast a series."""

    model: str
    forecasts: list[CellForecast]


def create_app(predictor: Predictor) -> FastAPI:
    """The application."""
    app = FastAPI()

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/v1/forecast", response_model=ForecastResponse)
    async def forecast(request: ForecastRequest) -> ForecastResponse:
        windows = [
            KpiWindow(
                cell=series.cell,
                kpis=tuple(series.kpis),
                start_ms=int(series.start.timestamp() * 1000),
                step_ms=int(series.step_seconds * 1000),
                values=np.array(list(series.kpis.values()), dtype=np.float32),
            )
            for series in request.series
        ]
        forecasts = predictor.predict(windows, request.horizon, request.quantiles)
        return ForecastResponse(
            model=predictor.identity.name, forecasts=[_answer(one) for one in forecasts]
        )

    return app


def _answer(forecast: Forecast) -> CellForecast:
    return CellForecast(
        cell=forecast.cell,
        start=_instant(forecast.start_ms),
        step_seconds=forecast.step_ms / 1000,
        kpis={
            kpi: {
                str(level): values[:, number].tolist()
                for number, level in enumerate(forecast.levels)
            }
            for kpi, values in zip(forecast.kpis, forecast.values, strict=True)
        },
        rung=forecast.rung.value,
        context=Context(
            start=_instant(forecast.context.start_ms),
            end=_instant(forecast.context.end_ms),
            missing_ratio=forecast.context.missing_ratio,
        ),
    )


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _predictor(name: str) -> Predictor:
    if name == "trivial":
        from benchmarks.serving.trivial import RepeatLast

        return RepeatLast()
    from benchmarks.serving.shipped import shipped_predictor

    return shipped_predictor()


def main() -> None:
    """Serve on the port that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("predictor", choices=["trivial", "shipped"])
    options = parser.parse_args()
    app = create_app(_predictor(options.predictor))
    uvicorn.run(app, host="127.0.0.1", port=options.port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
