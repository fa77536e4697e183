"""What the codec reads it has written, and whatever else comes is refused."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from service.errors import InvalidRequestError, MalformedBodyError, RequestError
from service.kserve.tensors import NUMBERS, Tensor, decode, encode

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
HEAD = {"model_name": "m", "id": "42"}


def one_input(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6], **changes}


def read(*inputs: dict[str, Any], tail: bytes = b"") -> dict[str, Tensor]:
    text = json.dumps({"inputs": inputs}).encode()
    return dict(decode(text + tail, str(len(text)) if tail else None).tensors)


def as_request(answer: bytes, length: int | None) -> tuple[bytes, str]:
    """An answer sent back: its outputs are the inputs."""
    end = len(answer) if length is None else length
    said = json.loads(answer[:end])
    text = json.dumps({"inputs": said["outputs"]}).encode()
    return text + answer[end:], str(len(text))


@given(st.data(), st.sampled_from(sorted(NUMBERS)), st.booleans())
def test_numbers_come_back_as_they_were_written(data, datatype, binary):
    kind = NUMBERS[datatype]
    elements = hnp.from_dtype(kind, allow_nan=False, allow_infinity=False)
    values = data.draw(hnp.arrays(kind, SHAPES, elements=elements))
    sent = Tensor("x", datatype, values)
    answer, length = encode(HEAD, [sent], frozenset(["x"] if binary else ()))
    back = decode(*as_request(answer, length)).tensors["x"]
    assert back.values.shape == values.shape
    np.testing.assert_array_equal(back.values.astype(kind), values)
    assert back.values.dtype == (kind if kind.kind in "iu" else np.float64)


@given(hnp.arrays(np.float32, SHAPES))
def test_bytes_keep_every_bit_of_a_number(values):
    answer, length = encode(HEAD, [Tensor("x", "FP32", values)], frozenset(["x"]))
    back = decode(*as_request(answer, length)).tensors["x"]
    np.testing.assert_array_equal(back.values.astype(np.float32), values)


@given(st.lists(st.text(), max_size=5), st.booleans())
def test_texts_come_back_as_they_were_written(texts, binary):
    values = np.empty(len(texts), dtype=object)
    values[:] = texts
    sent = [Tensor("x", "BYTES", values), Tensor("y", "FP32", np.ones(2))]
    answer, length = encode(HEAD, sent, frozenset(["x", "y"] if binary else ()))
    back = decode(*as_request(answer, length)).tensors
    assert back["x"].values.tolist() == texts
    assert back["y"].values.tolist() == [1.0, 1.0]


def test_a_nested_list_is_the_same_tensor_as_a_flat_one():
    nested = read(one_input(data=[[1, 2, 3], [4, 5, 6]]))["x"]
    np.testing.assert_array_equal(nested.values, read(one_input())["x"].values)


def test_null_is_nan_and_nan_is_null():
    tensor = read(one_input(data=[1, None, 3, 4, 5, 6]))["x"]
    assert np.isnan(tensor.values[0, 1])
    answer, _ = encode(HEAD, [tensor], frozenset())
    assert json.loads(answer)["outputs"][0]["data"] == [1, None, 3, 4, 5, 6]


def test_only_the_outputs_that_are_named_follow_as_bytes():
    outputs = [Tensor(name, "FP32", np.ones(2)) for name in ("a", "b")]
    answer, length = encode(HEAD, outputs, frozenset(["b"]))
    a, b = json.loads(answer[:length])["outputs"]
    assert a["data"] == [1, 1]
    assert "data" not in b
    assert b["parameters"] == {"binary_data_size": 8}
    assert answer[length:] == np.ones(2, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"data": [1, 2]}, "data", "6 elements"),
        ({"data": [[1, 2, 3], [4, 5]]}, "data", "nested otherwise"),
        ({"data": [[1, 2, 3], 4]}, "data", "nested otherwise"),
        ({"data": [1, 2, 3, 4, 5, "6"]}, "data", "str"),
        ({"data": [1, 2, 3, 4, 5, True]}, "data", "bool"),
        ({"data": [1, 2, 3, 4, 5, 10**400]}, "data", "too large"),
        ({"data": [1, 2, 3, 4, 5, None], "datatype": "INT64"}, "data", "NoneType"),
        (
            {"data": [1, 2, 3, 4, 5, 2**70], "datatype": "INT64"},
            "data",
            "got 118059",
        ),
        ({"data": [1, 2, 3, 4, 5, 300], "datatype": "INT8"}, "data", "-128 to 127"),
        ({"data": [1, 2, 3, 4, 5, -1], "datatype": "UINT64"}, "data", "got -1"),
        ({"data": [1, 2, 3, 4, 5, 6.0], "datatype": "INT64"}, "data", "float"),
        ({"data": [1, 2, 3, 4, 5, 6.5], "datatype": "INT64"}, "data", "float"),
        ({"data": [[[1, 2, 3, 4, 5, 6]]]}, "data", "nested otherwise"),
        ({"data": [[1, 2], [3, 4], [5, 6]]}, "data", "nested otherwise"),
        ({"data": [], "shape": [2**31, 2**31, 0]}, "shape", "2147483647"),
        ({"data": [], "shape": [2**20] * 7 + [0], "datatype": "BYTES"}, "shape", "elements"),
        ({"datatype": "BYTES"}, "data", "strings"),
        ({"datatype": "FP8"}, "datatype", "FP32"),
        ({"shape": [2, -3]}, "shape/1", "greater than"),
        ({"shape": [2.5]}, "shape/0", "whole number"),
        ({"data": None}, "data", "either"),
        ({"parameters": {"binary_data_size": 24}}, "data", "either"),
        ({"data": None, "parameters": {"binary_data_size": 24}}, "parameters", "0 bytes"),
        ({"data": None, "parameters": {"binary_data_size": "0"}}, "parameters", "'0'"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_its_place(changes, place, words):
    with pytest.raises(InvalidRequestError) as caught:
        read(one_input(**changes))
    assert caught.value.faults[0].path.startswith(f"/inputs/0/{place}")
    assert words in caught.value.faults[0].reason


@pytest.mark.parametrize(
    ("changes", "tail", "words"),
    [
        ({}, bytes(20), "24 bytes"),
        ({"datatype": "BYTES", "shape": [1]}, b"\x05\0\0\0abc", "UTF-8"),
        ({"datatype": "BYTES", "shape": [1]}, b"\x01\0\0\0\xff", "UTF-8"),
        ({"datatype": "BYTES", "shape": [1]}, b"\x01\0", "UTF-8"),
        ({"datatype": "BYTES", "shape": [2]}, b"\x01\0\0\0a", "1 elements"),
    ],
)
def test_bytes_that_are_no_tensor_are_refused(changes, tail, words):
    sent = one_input(**changes, parameters={"binary_data_size": len(tail)})
    del sent["data"]
    with pytest.raises(InvalidRequestError, match=words):
        read(sent, tail=tail)


def test_bytes_that_belong_to_no_tensor_are_refused():
    with pytest.raises(MalformedBodyError, match="3 bytes"):
        read(one_input(), tail=b"abc")


def test_floats_are_written_by_the_shortest_decimals_that_mean_them():
    outputs = [
        Tensor("a", "FP64", np.array([86400.001, 0.123456789, np.nan])),
        Tensor("b", "FP32", np.array([123456792, 0.1, 12.1], dtype=np.float32)),
        Tensor("c", "FP32", np.array([0.1, 1 / 3])),  # as float64 inside
        Tensor("d", "UINT64", np.array([2**63 + 1], dtype=np.uint64)),
    ]
    answer, _ = encode(HEAD, outputs, frozenset())
    texts = [text.split(b"]", 1)[0] for text in answer.split(b'"data":[')[1:]]
    assert texts == [
        b"86400.001,0.123456789,null",
        b"123456790.0,0.1,12.1",
        b"0.1,0.33333334",
        b"9223372036854775809",
    ]
    assert np.float32(123456790.0) == np.float32(123456792)


def test_whole_numbers_are_not_wrapped():
    values = np.array([1, 2**63 + 1], dtype="<u8")
    sent = one_input(datatype="UINT64", shape=[2], parameters={"binary_data_size": 16})
    del sent["data"]
    assert read(sent, tail=values.tobytes())["x"].values.tolist() == values.tolist()
    listed = one_input(datatype="UINT64", shape=[2], data=values.tolist())
    assert read(listed)["x"].values.tolist() == values.tolist()


def test_a_large_start_keeps_every_millisecond():
    tensor = read(one_input(datatype="INT64", shape=[1], data=[2**60 + 1]))["x"]
    assert tensor.values.tolist() == [2**60 + 1]


@pytest.mark.usefixtures("built_reader")
def test_numbers_of_a_request_never_become_objects(monkeypatch):
    monkeypatch.setattr("service.kserve.tensors._from_list", None)
    names = one_input(name="kpi", datatype="BYTES", shape=[0], parameters={"binary_data_size": 0})
    del names["data"]
    tensors = read(
        one_input(data=[[1, None, 2.5], [4, 5, 6]]),
        one_input(name="start_ms", datatype="INT64", shape=[2], data=[1793491200000, 2]),
        names,
    )
    np.testing.assert_array_equal(tensors["x"].values, [[1, np.nan, 2.5], [4, 5, 6]])
    assert tensors["start_ms"].values.tolist() == [1793491200000, 2]


DATA = st.recursive(
    st.integers(-300, 300)
    | st.floats(-9, 9)
    | st.none()
    | st.sampled_from(["a", 2**63, 2**53 + 1]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.usefixtures("built_reader")
@given(
    st.lists(st.tuples(DATA, SHAPES, st.sampled_from([*NUMBERS, "BYTES"])), min_size=1, max_size=3)
)
def test_with_and_without_the_native_reader_a_request_means_the_same(sent):
    inputs = [
        one_input(name=str(i), data=data, shape=shape, datatype=datatype)
        for i, (data, shape, datatype) in enumerate(sent)
    ]

    def outcome() -> Any:
        try:
            tensors = read(*inputs)
        except InvalidRequestError as error:
            return error.faults
        return [(one.values.dtype, one.values.shape, repr(one.values)) for one in tensors.values()]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.codecs.json_requests.cut_samples", lambda *_: None)
        alone = outcome()
    assert outcome() == alone


@pytest.mark.parametrize("header", ["9" * 5000, "x", "-1", "1e1", "99999", "", "²"])
def test_a_length_that_is_none_is_refused(header):
    with pytest.raises(InvalidRequestError) as caught:
        decode(b"{}", header)
    assert caught.value.faults[0].path == "header:Inference-Header-Content-Length"


def test_an_input_that_is_there_twice_is_refused():
    with pytest.raises(InvalidRequestError, match="twice"):
        read(one_input(), one_input())


@given(st.binary(max_size=80), st.none() | st.integers(0, 90).map(str))
def test_any_bytes_are_read_or_refused(body, length):
    with suppress(RequestError):
        decode(body, length)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=8,
    ),
    st.sampled_from(["name", "shape", "datatype", "data", "parameters"]),
    st.sampled_from(["FP32", "INT64", "BYTES"]),
)
def test_an_input_with_any_value_in_any_field_is_read_or_refused(value, field, datatype):
    with suppress(InvalidRequestError, MalformedBodyError):
        read({**one_input(datatype=datatype), field: value})
