"""What a caller gets: answers of the service as arrays.

Axis legend: K KPIs, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.client.errors import UnexpectedAnswerError

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ModelName:
    """Who answered: name, version and digest of the checkpoint."""

    name: str
    version: str
    digest: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a forecast was made from.

    Attributes:
        start: Begin of the first sample that entered the model.
        end: End of the last one.
        missing_ratio: Share of samples without a value, 0 to 1.
        age_seconds: Time from the newest value to the answer, None where there is none.
    """

    start: datetime
    end: datetime
    missing_ratio: float
    age_seconds: float | None


@dataclass(frozen=True, slots=True, eq=False)
class CellForecast:
    """Quantiles of the coming samples of one cell.

    Attributes:
        cell: Its name.
        kpis: Names as the request spelt them, K of them.
        start: Begin of the first forecast sample.
        step_seconds: Length of a sample.
        levels: Quantile levels, Q of them.
        values: Quantiles (K, H, Q); NaN where nothing can be said.
        rung: How much work went into it: full, short or baseline.
        context: What it was made from.
    """

    cell: str
    kpis: tuple[str, ...]
    start: datetime
    step_seconds: float
    levels: tuple[float, ...]
    values: NDArray[np.float64]
    rung: str
    context: Context

    def quantile(self, kpi: str, level: float) -> NDArray[np.float64]:
        """One quantile of one KPI (H).

        Raises:
            ValueError: The forecast has no such KPI or level.
        """
        row: NDArray[np.float64] = self.values[self.kpis.index(kpi), :, self.levels.index(level)]
        return row


@dataclass(frozen=True, slots=True)
class ForecastAnswer:
    """One forecast a series, in the request's order, and who made them."""

    model: ModelName
    forecasts: tuple[CellForecast, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Samples that were not kept, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredCount:
    """What became of observations.

    Attributes:
        accepted: Samples that were stored.
        merged: Of these, samples that replaced a value.
        late: Samples older than the newest one of their KPI.
        rejected: Why others were not kept.
    """

    accepted: int
    merged: int
    late: int
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A cell at one period length, as the store holds it.

    Attributes:
        cell: Its name.
        kpis: What is stored of it.
        step_seconds: Period length.
        first: Begin of the oldest sample.
        last: End of the newest sample.
    """

    cell: str
    kpis: tuple[str, ...]
    step_seconds: float
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class CellPage:
    """Stored cells, and the name after which the next page begins; None at the end."""

    cells: tuple[StoredCell, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Model:
    """What answers, where it comes from and how good it is.

    Attributes:
        name: Of the checkpoint.
        version: Of the checkpoint.
        digest: Of its file.
        max_horizon: Longest horizon in steps.
        quantile_range: Lowest and highest level to ask for.
        card: All that the model card says.
    """

    name: str
    version: str
    digest: str
    max_horizon: int
    quantile_range: tuple[float, float]
    card: Mapping[str, Any]


def read_answer(body: bytes, reader: Callable[[Any], Answer]) -> Answer:
    """An answer from its JSON text.

    Raises:
        UnexpectedAnswerError: It is no JSON, or has another shape.
    """
    try:
        return reader(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnexpectedAnswerError(
            f"the answer is not one of the service's ({type(error).__name__}: {error}); check the "
            "address"
        ) from error


def to_forecast_answer(said: Any) -> ForecastAnswer:
    """Of `POST /v1/forecast` and `GET /v1/cells/{cell}/forecast`."""
    model = said["model"]
    return ForecastAnswer(
        ModelName(model["name"], model["version"], model["digest"]),
        tuple(_to_forecast(each) for each in said["forecasts"]),
    )


def _to_forecast(said: Any) -> CellForecast:
    kpis = said["kpis"]
    keys = list(next(iter(kpis.values()), {}))
    by_level = [[quantiles[key] for key in keys] for quantiles in kpis.values()]  # (K, Q, H)
    context = said["context"]
    return CellForecast(
        cell=said["cell"],
        kpis=tuple(kpis),
        start=_moment(said["start"]),
        step_seconds=said["step_seconds"],
        levels=tuple(float(key) for key in keys),
        values=np.array(by_level, dtype=np.float64).transpose(0, 2, 1),  # null becomes NaN
        rung=said["rung"],
        context=Context(
            _moment(context["start"]),
            _moment(context["end"]),
            context["missing_ratio"],
            context["age_seconds"],
        ),
    )


def to_stored_count(said: Any) -> StoredCount:
    """Of `POST /v1/observations`."""
    return StoredCount(
        said["accepted"],
        said["merged"],
        said["late"],
        tuple(Rejected(each["path"], each["reason"]) for each in said["rejected"]),
    )


def to_cell_page(said: Any) -> CellPage:
    """Of `GET /v1/cells`."""
    return CellPage(to_cells(said), said["next"])


def to_cells(said: Any) -> tuple[StoredCell, ...]:
    """Of `GET /v1/cells/{cell}`."""
    return tuple(
        StoredCell(
            each["cell"],
            tuple(each["kpis"]),
            each["step_seconds"],
            _moment(each["first"]),
            _moment(each["last"]),
        )
        for each in said["cells"]
    )


def to_model(said: Any) -> Model:
    """Of `GET /v1/model`."""
    least, most = said["quantile_range"]
    return Model(
        said["name"], said["version"], said["digest"], said["max_horizon"], (least, most), said
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
