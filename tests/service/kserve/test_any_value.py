"""Whatever stands anywhere in a request, it is read or refused; nothing else may come out.

And with the native reader of samples the same comes out as without it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codecs.json_requests import decode_cut
from service.errors import RequestError
from service.kserve import timeseries, v1, v2
from service.kserve.tensors import decode
from service.schemas import Series
from service.series import SeriesLimits, to_windows
from tests.service.fakes import NOON_MS, RepeatLast, series, small_catalogue

LIMITS = SeriesLimits(max_series=10, max_kpis=3)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**30, -(2**63), "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
PREDICT = {
    "instances": [[[1, 2], [3, None]], [1, 2], series()],
    "parameters": {
        "horizon": 2,
        "quantiles": [0.1],
        "kpis": ["a", "b"],
        "step_seconds": 60,
        "start": "2026-11-01T10:00:00Z",
        "time_zone": "UTC",
        "country": "ES",
    },
}
INFER = {
    "inputs": [
        {"name": "values", "shape": [1, 1, 2], "datatype": "FP32", "data": [1, None]},
        {"name": "start_ms", "shape": [1], "datatype": "INT64", "data": [5]},
        {"name": "step_seconds", "shape": [1], "datatype": "FP64", "data": [5]},
        {"name": "cell", "shape": [1], "datatype": "BYTES", "data": ["a"]},
    ],
    "parameters": {"horizon": 2, "quantiles": "0.5", "time_zone": "UTC", "country": "ES"},
    "outputs": [{"name": "forecast", "parameters": {"binary_data": False}}],
}
FORECAST = {
    "model": "m",
    "inputs": [
        {
            "type": "multivariate_time_series",
            "name": "a",
            "series": [[1, None], [2, 3]],
            "frequency": "T",
            "frequency_multiplier": 15,
            "start_timestamp": "2026-11-01T00:00:00Z",
            "kpis": ["a", "b"],
            "cell": "c",
            "time_zone": "UTC",
            "country": "ES",
        }
    ],
    "options": {"horizon": 2, "quantiles": [0.1, 0.9]},
}


def predict(body: bytes) -> Sequence[Series]:
    request = decode_cut(body, v1.PredictRequest, v1.OF_INSTANCES)
    return v1.to_series(request, request.parameters, NOON_MS)


def infer(body: bytes) -> Sequence[Series]:
    return v2.to_plan(decode(body, None), RepeatLast(), NOON_MS).series


def forecast(body: bytes) -> Sequence[Series]:
    request = decode_cut(body, timeseries.TimeseriesForecastRequest, timeseries.OF_SERIES)
    return timeseries.to_series(request.inputs, NOON_MS)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def changed(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    body = copy.deepcopy(body)
    inside = body
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return body


def outcome(read: Callable[[bytes], Sequence[Series]], body: bytes) -> Any:
    """What comes of a body: the windows, or what is said against it."""
    try:
        windows = to_windows(read(body), LIMITS, small_catalogue(), "UTC")
    except RequestError as error:
        return str(error)
    return repr(windows)


def outcome_without_reader(read: Callable[[bytes], Sequence[Series]], body: bytes) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.codecs.json_requests.cut_samples", lambda *_: None)
        return outcome(read, body)


@pytest.mark.usefixtures("built_reader")
@pytest.mark.parametrize(
    ("read", "body"), [(predict, PREDICT), (infer, INFER), (forecast, FORECAST)]
)
@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused(
    read: Callable[[bytes], Sequence[Series]], body: Any, data: st.DataObject
) -> None:
    place = data.draw(st.sampled_from(sorted(places(body), key=repr)))
    sent = json.dumps(changed(body, place, data.draw(ANY_JSON))).encode()
    assert outcome(read, sent) == outcome_without_reader(read, sent)


@pytest.mark.usefixtures("built_reader")
@pytest.mark.parametrize(
    ("read", "body"), [(predict, PREDICT), (infer, INFER), (forecast, FORECAST)]
)
def test_a_good_request_is_read_without_an_object_a_number(read, body, monkeypatch):
    expected = outcome_without_reader(read, json.dumps(body).encode())
    monkeypatch.setattr("service.codecs.json_requests.decode_json", None)
    monkeypatch.setattr("service.kserve.tensors.decode_json", None)
    assert outcome(read, json.dumps(body).encode()) == expected
