"""The quick way and pydantic's accept and refuse the same, and read the same numbers."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.codecs import json_requests
from service.codecs.json_requests import decode_histories, decode_json
from service.errors import InvalidRequestError, MalformedBodyError
from service.schemas import ForecastRequest, ObservationsRequest
from tests.service.fakes import forecast_request, series

pytestmark = pytest.mark.usefixtures("built_reader")

NUMBERS = st.floats(allow_nan=False, width=32) | st.integers(-(10**20), 10**20) | st.none()
SPACES = st.sampled_from(["", " ", "\n", "\t \r"])
DIGITS = st.text("0123456789", min_size=1, max_size=25)


@st.composite
def spelt_numbers(draw: st.DrawFn) -> str:
    """A number by JSON's grammar, in a spelling that people rarely choose."""
    whole = draw(st.just("0") | DIGITS.map(lambda digits: digits.lstrip("0") or "0"))
    fraction = draw(st.just("") | DIGITS.map(lambda digits: "." + digits))
    exponent = draw(
        st.just("")
        | st.tuples(st.sampled_from(["e", "E", "e+", "e-"]), st.integers(0, 30)).map(
            lambda parts: f"{parts[0]}{parts[1]}"
        )
    )
    return draw(st.sampled_from(["", "-"])) + whole + fraction + exponent


ODD_VALUES = st.sampled_from(
    "NaN Infinity -Infinity true '1' [] {} [1] 01 1. .5 +1 1e nul nulll 1e999 -1e999 1e-999 3.5e38 "
    "-0 - 1_2 0x1 123456789012345678901234567890 0.1234567890123456789 1\x00 1é".replace(
        "'", '"'
    ).split()
) | st.sampled_from(["", "1 2"])


def outcome(decode, body: bytes, model=ForecastRequest) -> Any:
    """What comes of a body: everything that was read, or everything that was said against it."""
    try:
        request = decode(body, model)
    except MalformedBodyError as error:
        return str(error)
    except InvalidRequestError as error:
        return error.faults
    rest = [
        one.model_dump(exclude={"kpis"}) | {"kpis": {k: v.tolist() for k, v in one.kpis.items()}}
        for one in request.series
    ]
    return repr((request.model_dump(exclude={"series"}), rest))


def alike(body: bytes, model=ForecastRequest) -> None:
    assert outcome(decode_histories, body, model) == outcome(decode_json, body, model)


def with_samples(text: str) -> bytes:
    body = json.dumps(forecast_request(series=[series(kpis={"A": [777], "B": [1, None]})]))
    return body.replace("777", text).encode()


def is_quick(body: bytes, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a body is read without pydantic's having to read its samples."""
    monkeypatch.setattr(json_requests, "decode_json", lambda *_: None)
    return decode_histories(body, ForecastRequest) is not None


def test_a_good_body_is_read_the_quick_way_with_and_without_nulls(monkeypatch):
    many = [series(cell=f"c{i}", kpis={"A": [1, None, 2.5e-3], "B": [-7, 0, None]}) for i in (1, 2)]
    assert is_quick(json.dumps(forecast_request(series=many), indent=1).encode(), monkeypatch)


def test_a_body_for_observations_is_read_the_quick_way(monkeypatch):
    monkeypatch.setattr(json_requests, "decode_json", lambda *_: None)
    body = json.dumps({"series": [series()]}).encode()
    (one,) = decode_histories(body, ObservationsRequest).series
    np.testing.assert_array_equal(one.kpis["RRU.PrbTotDl"], [12.0, np.nan, 15.5])


@given(st.lists(NUMBERS, min_size=1, max_size=20), SPACES)
def test_numbers_are_read_as_pydantic_reads_them(numbers, space):
    text = json.dumps(numbers).strip("[]").replace(", ", f"{space},{space}")
    alike(with_samples(f"{space}{text}{space}"))


@given(st.lists(spelt_numbers(), min_size=1, max_size=5))
@example(["1e22", "1e23", "9007199254740993", "0.000000000000000000000001", "1e-7"])
@example(["8.5e-324", "2.2250738585072014e-308", "3.4028234663852886e38", "3.4028235e38"])
def test_numbers_in_any_spelling_are_read_as_pydantic_reads_them(spellings):
    alike(with_samples(",".join(spellings)))


@given(ODD_VALUES, st.sampled_from(["{}", "1,{}", "{},1", "null,{},2"]))
def test_what_is_no_sample_is_refused_in_the_same_words(odd, form):
    alike(with_samples(form.format(odd)))


@given(st.data())
def test_a_damaged_body_is_read_or_refused_as_pydantic_would(data):
    events = [{"start": "2026-11-01T18:00:00Z", "end": "2026-11-01T21:00:00Z"}]
    good = json.dumps(forecast_request(series=[series(events=events), series(cell='"\\é')]))
    body = bytearray(good.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        piece = data.draw(
            st.binary(max_size=2)
            | st.sampled_from(list(b'[]{},:"\\0-e n')).map(lambda code: bytes([code]))
        )
        body[at : at + data.draw(st.integers(0, 3))] = piece
        if not body:
            break
    alike(bytes(body))
    alike(bytes(body), ObservationsRequest)


@pytest.mark.parametrize(
    "text",
    [
        '{"series": [{"kpis": {"A": 0}}]}',
        '{"series": [{"kpis": {"A": [0]}}], "series": 1}',
        '{"series": {"0": {"kpis": {"A": [1]}}}, "horizon": 1}',
        '{"other": [{"kpis": {"A": [1]}}], "series": [{"kpis": [[1]]}], "horizon": 1}',
        '{"series": [{"events": {"A": [1]}, "kpis": {"A": [1]}}], "horizon": 1}',
        "[" * 300,
        '{"a":' * 300,
        '{"series": [{"kpis": {"A": [1, 2',
        '{"series": [{"kpis": {"A": [1]]}]}',
        '"',
        '"\\',
        "]",
        "",
    ],
)
def test_bodies_of_another_shape_are_refused_in_the_same_words(text):
    alike(text.encode())


def test_a_key_that_is_there_twice_counts_as_its_last_one_does():
    text = json.dumps(forecast_request(series=[series(kpis={"A": [1, 2]})]))
    text = text.replace('"A": [1, 2]', '"A": [1, 2], "B": [5, 6], "A": [3, 4]')
    alike(text.encode())
    (one,) = decode_histories(text.encode(), ForecastRequest).series
    assert one.kpis["A"].tolist() == [3, 4]


def test_no_client_can_name_a_list_that_is_not_its_own():
    text = json.dumps(forecast_request(series=[series(kpis={"A": [0], "B": [5]})]))
    (one,) = decode_histories(text.encode(), ForecastRequest).series
    assert {name: values.tolist() for name, values in one.kpis.items()} == {"A": [0], "B": [5]}


def test_a_large_body_lets_other_threads_run_and_a_small_one_does_not(built_reader, monkeypatch):
    called = []

    def spy(name):
        def cut(*arguments):
            called.append(name)
            return getattr(built_reader, name)(*arguments)

        return cut

    spied = type(built_reader)(spy("at_once"), spy("aside"), "spied")
    monkeypatch.setattr("service.codecs.cutting.load", lambda: spied)
    decode_histories(json.dumps(forecast_request()).encode(), ForecastRequest)
    long = forecast_request(series=[series(kpis={"A": [0.5] * 100_000})])
    decode_histories(json.dumps(long).encode(), ForecastRequest)
    assert called == ["at_once", "aside"]


def test_without_the_library_bodies_are_read_as_well(built_reader, monkeypatch):
    missing = type(built_reader)(None, None, "not built")
    monkeypatch.setattr("service.codecs.cutting.load", lambda: missing)
    (one,) = decode_histories(json.dumps(forecast_request()).encode(), ForecastRequest).series
    assert one.kpis["DRB.MeanActiveUeDl"].tolist() == [3, 4, 4]
