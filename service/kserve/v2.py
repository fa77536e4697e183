"""The model as a function of tensors, for the Open Inference Protocol (KServe V2).

Axis legend: B series, K KPIs, T samples, H steps of the horizon, Q quantile levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.predictor import Forecast, Predictor, Rung
from service.checks import check_horizon, check_levels
from service.demands import Stated
from service.engine import Priority
from service.errors import InvalidRequestError
from service.kserve.inputs import InputTensors
from service.kserve.messages import InferRequest, TensorMetadata
from service.kserve.parameters import Parameters
from service.kserve.provenance import age_seconds
from service.kserve.series import (
    DEFAULT_STEP_SECONDS,
    Calendar,
    bare_series,
    check_names,
    check_start,
    check_step,
    feature_names,
)
from service.kserve.tensors import TEXT, Sent, Tensor
from service.schemas import Series
from service.series import pointer

DEFAULT_HORIZON = 24


# (B, K, T); one a series or one for all; names.
INPUTS = (
    TensorMetadata(name="values", datatype="FP32", shape=[-1, -1, -1]),
    TensorMetadata(name="start_ms", datatype="INT64", shape=[-1]),
    TensorMetadata(name="step_seconds", datatype="FP64", shape=[-1]),
    TensorMetadata(name="cell", datatype=TEXT, shape=[-1]),
    TensorMetadata(name="kpi", datatype=TEXT, shape=[-1]),
)
# (B, K, H, Q); the levels; one a series; names.
OUTPUTS = (
    TensorMetadata(name="forecast", datatype="FP32", shape=[-1, -1, -1, -1]),
    TensorMetadata(name="quantile", datatype="FP64", shape=[-1]),
    TensorMetadata(name="start_ms", datatype="INT64", shape=[-1]),
    TensorMetadata(name="step_seconds", datatype="FP64", shape=[-1]),
    TensorMetadata(name="cell", datatype=TEXT, shape=[-1]),
    TensorMetadata(name="kpi", datatype=TEXT, shape=[-1]),
    TensorMetadata(name="rung", datatype=TEXT, shape=[-1]),
    TensorMetadata(name="missing_ratio", datatype="FP32", shape=[-1]),
    TensorMetadata(name="age_seconds", datatype="FP64", shape=[-1]),
)
_BINARY_OUTPUT = "binary_data_output"
PARAMETERS = (
    "horizon",
    "quantiles",
    "budget_ms",
    "minimum_rung",
    "priority",
    "step_seconds",
    "time_zone",
    "country",
    _BINARY_OUTPUT,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request asks.

    Attributes:
        series: B series of the same K KPIs.
        kpis: What the client calls them.
        places: JSON Pointer to each input by its name.
        horizon: Steps H.
        levels: Quantile levels, Q of them.
        demands: What the parameters say of budget, rung and priority.
        outputs: Names of the tensors that are wanted, in order.
        binary: Those of them whose data are wanted as bytes.
    """

    series: list[Series]
    kpis: list[str]
    places: Mapping[str, str]
    horizon: int
    levels: tuple[float, ...]
    demands: Stated
    outputs: tuple[str, ...]
    binary: frozenset[str]


def to_plan(sent: Sent, predictor: Predictor, now_ms: int) -> Plan:
    """Check a request and make series of its tensors.

    Args:
        sent: The request.
        predictor: Who will answer it.
        now_ms: The time of the request.

    Raises:
        InvalidRequestError: A tensor, an output or a parameter is unknown or cannot be used.
    """
    request = sent.request
    parameters = Parameters(request.parameters or {})
    parameters.check_known(PARAMETERS)
    horizon, levels = _asked(parameters, predictor)
    tensors = InputTensors(request, sent.tensors)
    tensors.check_known([spec.name for spec in INPUTS])
    values = tensors.numbers("values", dimensions=3)
    if values is None or not values.size:
        raise InvalidRequestError("/inputs", "expected a tensor values with a size over 0")
    batch, kpi_count, _ = values.shape
    kpis = tensors.texts("kpi", kpi_count)
    cells = tensors.texts("cell", batch)
    plan_kpis = feature_names(kpi_count) if kpis is None else kpis
    check_names(plan_kpis, tensors.place("kpi"))
    cells = [str(position) for position in range(batch)] if cells is None else cells
    for cell in cells:
        check_names([cell], tensors.place("cell"))
    steps = _steps(tensors, parameters, batch)
    starts = tensors.one_each("start_ms", batch)
    if starts is not None:
        for start in starts:
            check_start(start, tensors.place("start_ms"))
    calendar = Calendar(parameters.text("time_zone"), parameters.text("country"))
    outputs, binary = _wanted(request, parameters)
    return Plan(
        series=[
            bare_series(
                cells[position],
                plan_kpis,
                values[position].astype(np.float64),
                step_seconds=steps[position],
                start_ms=None if starts is None else starts[position],
                now_ms=now_ms,
                calendar=calendar,
            )
            for position in range(batch)
        ],
        kpis=plan_kpis,
        places={spec.name: tensors.place(spec.name) for spec in INPUTS},
        horizon=horizon,
        levels=levels,
        demands=Stated(
            parameters.number("budget_ms"),
            parameters.choice("minimum_rung", Rung),
            parameters.choice("priority", Priority),
        ),
        outputs=outputs,
        binary=binary,
    )


def place_of(plan: Plan, rest: str) -> str:
    """Where a fault of a series lies in the request, from the rest of a pointer into the series."""
    field = rest.removeprefix("/").partition("/")[0]
    if field in ("time_zone", "country"):
        return pointer("parameters", field)
    inputs = {"start": "start_ms", "step_seconds": "step_seconds", "kpis": "values"}
    return plan.places[inputs.get(field, "values")]


def to_outputs(plan: Plan, forecasts: Sequence[Forecast], now_ms: int) -> list[Tensor]:
    """The tensors that were asked for.

    Args:
        plan: What was asked.
        forecasts: One a series.
        now_ms: The time of the answer.
    """
    return [
        Tensor(spec.name, spec.datatype, _output(spec.name, plan, forecasts, now_ms))
        for name in plan.outputs
        for spec in OUTPUTS
        if spec.name == name
    ]


def _output(name: str, plan: Plan, forecasts: Sequence[Forecast], now_ms: int) -> NDArray[Any]:
    match name:
        case "forecast":
            return np.stack([forecast.values for forecast in forecasts])  # (B, K, H, Q)
        case "quantile":
            return np.array(plan.levels)
        case "start_ms":
            return np.array([forecast.start_ms for forecast in forecasts], dtype=np.int64)
        case "step_seconds":
            return np.array([forecast.step_ms / 1000 for forecast in forecasts])
        case "cell":
            return np.array([forecast.cell for forecast in forecasts], dtype=object)
        case "kpi":
            return np.array(plan.kpis, dtype=object)
        case "rung":
            return np.array([forecast.rung.value for forecast in forecasts], dtype=object)
        case "missing_ratio":
            return np.array([forecast.context.missing_ratio for forecast in forecasts])
        case _:
            ages_s = [age_seconds(forecast, now_ms) for forecast in forecasts]
            return np.array(ages_s, dtype=np.float64)  # None becomes NaN


def _asked(parameters: Parameters, predictor: Predictor) -> tuple[int, tuple[float, ...]]:
    horizon = parameters.whole("horizon")
    if horizon is None:
        horizon = min(DEFAULT_HORIZON, predictor.max_horizon)
    check_horizon(horizon, predictor, parameters.place("horizon"))
    levels = parameters.levels("quantiles")
    check_levels(levels, predictor, parameters.place("quantiles"))
    return horizon, tuple(levels)


def _steps(tensors: InputTensors, parameters: Parameters, batch: int) -> list[float]:
    stated = parameters.number("step_seconds")
    sent = tensors.one_each("step_seconds", batch)
    if sent is None:
        step_seconds = DEFAULT_STEP_SECONDS if stated is None else stated
        check_step(step_seconds, parameters.place("step_seconds"))
        return [step_seconds] * batch
    if stated is not None:
        raise InvalidRequestError(
            parameters.place("step_seconds"), "expected it once, but there is an input of that name"
        )
    for step_seconds in sent:
        check_step(step_seconds, tensors.place("step_seconds"))
    return sent


def _wanted(
    request: InferRequest, parameters: Parameters
) -> tuple[tuple[str, ...], frozenset[str]]:
    known = [spec.name for spec in OUTPUTS]
    all_binary = parameters.flag(_BINARY_OUTPUT)
    if not request.outputs:
        return tuple(known), frozenset(known if all_binary else ())
    binary: set[str] = set()
    for position, output in enumerate(request.outputs):
        if output.name not in known:
            raise InvalidRequestError(
                pointer("outputs", position, "name"),
                f"expected one of {', '.join(known)}, got {output.name!r}",
            )
        if Parameters(output.parameters or {}, "outputs", position).flag(
            "binary_data", default=all_binary
        ):
            binary.add(output.name)
    names = [output.name for output in request.outputs]
    check_names(names, pointer("outputs"))
    return tuple(names), frozenset(binary)
