"""A body of brackets is refused before it is read, one of samples is not."""

import json
from typing import Any

import numpy as np
import pytest

from service.codecs.json_requests import decode_cut, decode_histories, decode_json
from service.codecs.structure import FREE_PARTS, check_lists, check_parts, is_quick
from service.errors import InvalidRequestError, TooLargeError
from service.kserve.messages import OF_INPUTS, InferRequest
from service.kserve.timeseries import OF_SERIES, TimeseriesForecastRequest
from service.kserve.v1 import OF_INSTANCES, PredictRequest
from service.schemas import ForecastRequest
from tests.service.fakes import forecast_request, series

pytestmark = pytest.mark.usefixtures("built_reader")

MANY = FREE_PARTS + 1
FULL: dict[str, tuple[Any, tuple[str, ...], bytes]] = {
    "an unknown field": (ForecastRequest, (), b'{"x":[' + b"{}," * MANY + b"1]}"),
    "numbers that are no samples": (ForecastRequest, (), b'{"x":[' + b"1," * MANY + b"1]}"),
    "data": (
        InferRequest,
        (OF_INPUTS,),
        b'{"inputs":[{"name":"values","datatype":"FP32","shape":[1],"data":['
        + b"{}," * MANY
        + b"1]}]}",
    ),
    "metadata": (
        TimeseriesForecastRequest,
        OF_SERIES,
        b'{"metadata":[' + b"[]," * MANY + b'1],"model":"x"}',
    ),
    "rows": (PredictRequest, OF_INSTANCES, b'{"instances":[[' + b"[{}]," * MANY + b"[2]]]}"),
}


@pytest.mark.parametrize("case", FULL)
def test_a_body_of_little_but_structure_is_refused_before_it_is_read(case):
    model, places, body = FULL[case]
    with pytest.raises(TooLargeError, match=f"at most {FREE_PARTS} "):
        decode_cut(body, model, places) if places else decode_histories(body, model)


def test_without_the_reader_brackets_are_bounded_all_the_same(monkeypatch):
    monkeypatch.setattr("service.codecs.json_requests.cut_samples", lambda *_: None)
    model, places, body = FULL["rows"]
    with pytest.raises(TooLargeError, match="brackets"):
        decode_cut(body, model, places)


def test_ten_thousand_series_of_all_kpis_are_no_structure_too_much():
    one = json.dumps(
        series(
            cell="SubNetwork=1,ManagedElement=1,GNBDUFunction=1,NRCellDU=32",
            kpis={f"DRB.Kpi{i:02}": [1, 2, 3] for i in range(16)},
            events=[{"start": "2026-11-01T18:00:00Z", "end": "2026-11-01T21:00:00Z", "kind": "x"}],
        )
    )
    body = ('{"horizon":1,"series":[' + ",".join([one] * 10_000) + "]}").encode()
    assert len(decode_histories(body, ForecastRequest).series) == 10_000


def test_rows_are_no_structure():
    body = b'{"instances":[[' + b"[1]," * MANY + b"[2]]]}"
    (rows,) = decode_cut(body, PredictRequest, OF_INSTANCES).instances
    assert isinstance(rows, np.ndarray)
    assert rows.shape == (MANY + 1, 1)


def test_a_larger_body_may_have_more():
    text = b"," * (FREE_PARTS + 1)
    check_parts(text, 8 * len(text))
    with pytest.raises(TooLargeError):
        check_parts(text, 8 * len(text) - 8)
    with pytest.raises(TooLargeError):
        check_lists(b"[" * (FREE_PARTS + 1))


@pytest.mark.parametrize("first", ["", '"series":[{"kpis":{"a":["x"]}}],'])
def test_an_object_of_many_members_is_refused_before_each_is_an_error(first):
    names = ",".join(f'"[{{,{i}":1' for i in range(4097 - bool(first)))
    with pytest.raises(TooLargeError, match="at most 4096 members in one object, got 4097"):
        decode_histories(("{" + first + names + "}").encode(), ForecastRequest)
    fewer = names.rpartition(",")[0].rpartition(",")[0]
    with pytest.raises(InvalidRequestError):
        decode_histories(("{" + first + fewer + "}").encode(), ForecastRequest)


def test_commas_of_lists_and_texts_are_no_members(built_reader):
    for text, members in (
        (b"[1,2,3]", 0),
        (b'{"a":[1,2,3],"b":",,,"}', 2),
        (b'{"a":{"x":1,"y":2,"z":3},"b":4}', 3),
        (b'{"\\",":1,"b', 2),
        (b"[" * 300 + b"}", 0),
        (b"}},", 0),
    ):
        assert built_reader.most_members(text, len(text)) == members


def test_thousands_of_faults_are_counted_and_not_worded():
    kpis = {f"a{i}": "x" for i in range(4000)}
    body = json.dumps(forecast_request(series=[series(kpis=kpis)])).encode()
    with pytest.raises(InvalidRequestError, match="4000 values or fields are otherwise"):
        decode_json(body, ForecastRequest)


def test_a_small_body_is_quick_to_read_where_it_has_few_lists():
    assert is_quick(b'{"a":[' + b"1," * 30_000 + b"1]}")
    assert not is_quick(b'{"a":[' + b"{}," * 3000 + b"1]}")
    assert not is_quick(b" " * 70_000)
