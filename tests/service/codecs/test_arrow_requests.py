import json
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codecs.arrow_requests import decode_arrow_forecast, decode_arrow_observations
from service.codecs.json_requests import decode_json
from service.errors import InvalidRequestError, MalformedBodyError, RequestError, TooLargeError
from service.schemas import ForecastRequest
from service.series import SeriesLimits, to_observations, to_windows
from service.timestamps import to_rfc3339
from tests.service.codecs.arrow_bodies import EVENTS, INSTANT, ROWS, arrow_body, arrow_table
from tests.service.fakes import NOON_MS, small_catalogue

LIMITS = SeriesLimits(max_series=3, max_kpis=2)
START_MS = NOON_MS - 7_200_000


def windows(table, limits=LIMITS, zone="UTC", country=None, **options):
    _, histories = decode_arrow_forecast(arrow_body(table, **{"horizon": 2, **options}), limits)
    return histories.windows(limits, small_catalogue(), zone, country)


def refusal(table, limits=LIMITS, **options):
    with pytest.raises(InvalidRequestError) as caught:
        windows(table, limits, **options)
    return caught.value.faults[0].path, caught.value.faults[0].reason


def test_rows_of_one_cell_are_one_window():
    (named,) = windows(arrow_table())
    window = named.window
    assert (window.cell, window.kpis) == ("a", ("RRU.PrbTotDl", "DRB.MeanActiveUeDl"))
    assert (window.start_ms, window.step_ms, window.time_zone) == (START_MS, 900_000, "UTC")
    np.testing.assert_array_equal(window.values, [[12, np.nan, 15.5], [3, 4, 4]])
    assert window.values.dtype == np.float32


def test_series_keep_the_order_of_their_first_rows_even_where_rows_are_mixed():
    rows = [("b", "A", [1]), ("a", "A", [2]), ("b", "pmPrbUsedDl", [3]), ("a", "B", [4])]
    b, a = windows(arrow_table(rows))
    assert (b.window.cell, b.window.values.tolist()) == ("b", [[1], [3]])
    assert b.spell(b.window.kpis) == ["A", "pmPrbUsedDl"]
    assert (a.window.cell, a.window.values.tolist()) == ("a", [[2], [4]])


@pytest.mark.parametrize(
    "columns",
    [
        {"values": pa.array([[1], [2, 3]], pa.list_(pa.float32()))},
        {"start": pa.array([START_MS, START_MS + 900_000], INSTANT)},
        {"step_seconds": [900, 60]},
        {"time_zone": ["Europe/Madrid", None]},
        {"country": ["ES", "JP"]},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_rows_that_differ_in_anything_but_their_kpi_are_series_of_their_own(columns):
    one, other = windows(arrow_table(**columns))
    assert one.window.kpis == ("RRU.PrbTotDl",)
    assert other.window.kpis == ("DRB.MeanActiveUeDl",)


def test_samples_without_nulls_stay_in_the_body():
    body = arrow_body(
        arrow_table([("a", "A", [1, 2]), ("a", "B", [3, 4]), ("b", "A", [5])]), horizon=1
    )
    _, histories = decode_arrow_forecast(body, LIMITS)
    buffer = np.frombuffer(body, np.uint8)
    for named in histories.windows(LIMITS, small_catalogue(), "UTC"):
        assert np.shares_memory(named.window.values, buffer)


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pa.list_(each)
            for each in (pa.float16(), pa.float64(), pa.int16(), pa.uint32(), pa.int64())
        ),
        pa.large_list(pa.float32()),
        pa.list_(pa.float32(), 3),
    ],
    ids=str,
)
def test_lists_and_numbers_may_be_of_any_common_type(kind):
    table = arrow_table(values=pa.array([[1, 2, 3], [4, None, 6]], kind))
    (named,) = windows(table)
    np.testing.assert_array_equal(named.window.values, [[1, 2, 3], [4, np.nan, 6]])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_may_have_any_unit_and_zone(unit):
    start = pa.array([START_MS] * 2, INSTANT).cast(pa.timestamp(unit, tz="Europe/Madrid"))
    (named,) = windows(arrow_table(start=start))
    assert named.window.start_ms == START_MS


def test_names_may_be_dictionaries_that_repeat_themselves_and_hold_more_than_is_used():
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["a", "", "a"]))
    kpis = pa.array(["A", "B"]).dictionary_encode()
    (named,) = windows(arrow_table(cell=cells, kpi=kpis))
    assert (named.window.cell, named.window.kpis) == ("a", ("A", "B"))


def test_batches_with_dictionaries_of_their_own_are_one_table():
    one, other = (arrow_table([(cell, "A", [1])]) for cell in "xy")
    table = pa.concat_tables([one, other])
    table = table.set_column(0, "cell", table.column("cell").dictionary_encode())
    assert [named.window.cell for named in windows(table)] == ["x", "y"]


def test_zone_country_and_events_are_those_of_the_row_or_the_deployments():
    event = {"start": START_MS, "end": START_MS + 60_000, "kind": "match"}
    table = arrow_table(
        [("a", "A", [1]), ("b", "A", [1])],
        time_zone=["Asia/Tokyo", None],
        country=pa.array([None, "ES-CT"]).dictionary_encode(),
        events=pa.array([[event, {**event, "kind": None}], None], EVENTS),
    )
    a, b = (named.window for named in windows(table, zone="Europe/Madrid", country="JP"))
    assert (a.time_zone, a.country) == ("Asia/Tokyo", "JP")
    assert (b.time_zone, b.country) == ("Europe/Madrid", "ES-CT")
    assert [(e.end_ms - e.start_ms, e.kind) for e in a.events] == [
        (60_000, "match"),
        (60_000, "planned"),
    ]
    assert b.events == ()


def test_options_are_in_the_metadata():
    body = arrow_body(arrow_table(), horizon=5, quantiles=[0.5], budget_ms=9)
    options, _ = decode_arrow_forecast(body, LIMITS)
    assert (options.horizon, options.quantiles, options.budget_ms) == (5, [0.5], 9)


@pytest.mark.parametrize(
    ("options", "path"),
    [({"horizon": "2"}, "/horizon"), ({"surprise": 1}, "/surprise"), ({"series": []}, "/series")],
)
def test_options_that_cannot_be_used_are_refused_by_name(options, path):
    found, reason = refusal(arrow_table(), **options)
    assert found == path
    assert "metadata 'rancast'" in reason


def test_without_options_the_horizon_is_missed():
    with pytest.raises(InvalidRequestError, match="/horizon: expected this field"):
        decode_arrow_forecast(arrow_body(arrow_table()), LIMITS)


EVENT = {"start": 1000, "end": 1000, "kind": "x"}


@pytest.mark.parametrize(
    ("columns", "path", "words"),
    [
        ({"cell": None}, "/cell", "missing"),
        ({"unit": ["%", "1"]}, "/unit", "unknown column"),
        ({"cell": [1, 2]}, "/cell", "expected utf8"),
        ({"cell": ["a", None]}, "/cell/1", "got null"),
        ({"kpi": ["", "A"]}, "/kpi/0", "1 to 1024"),
        ({"kpi": ["A", "x" * 1025]}, "/kpi/1", "1 to 1024"),
        ({"kpi": ["pmPrbUsedDl", "RRU.PrbTotDl"]}, "/kpi/1", "once"),
        ({"start": [1, 2]}, "/start", "timestamp"),
        ({"start": pa.array([1, 2], pa.timestamp("ms"))}, "/start", "time zone"),
        ({"start": pa.array([1, None], INSTANT)}, "/start/1", "null"),
        ({"start": pa.array([-1, 1], INSTANT)}, "/start/0", "between 1970"),
        ({"start": pa.array([1, 2**62], pa.timestamp("s", "UTC"))}, "/start/1", "between 1970"),
        ({"start": pa.array([1, -(2**62)], pa.timestamp("s", "UTC"))}, "/start/1", "between 1970"),
        ({"start": pa.array([1, 2**62], INSTANT)}, "/start/1", "between 1970"),
        ({"step_seconds": ["1", "2"]}, "/step_seconds", "numbers"),
        ({"step_seconds": [1, None]}, "/step_seconds/1", "above 0"),
        ({"step_seconds": [1, float("nan")]}, "/step_seconds/1", "above 0"),
        ({"step_seconds": [1, 1e9]}, "/step_seconds/1", "above 0"),
        ({"step_seconds": [1, 0.0015]}, "/step_seconds/1", "milliseconds"),
        ({"values": [1.0, 2.0]}, "/values", "lists"),
        ({"values": [["1"], ["2"]]}, "/values", "lists"),
        ({"values": [[True], [False]]}, "/values", "lists"),
        ({"values": [[1.0], None]}, "/values/1", "null"),
        ({"values": [[1.0], []]}, "/values/1", "at least one"),
        ({"values": [[None], [0.0, 1e39]]}, "/values/1/1", "3.4e+38"),
        ({"values": [[-float("inf")], [0.0]]}, "/values/0/0", "3.4e+38"),
        ({"time_zone": ["UTC", "Mars/Olympus"]}, "/time_zone/1", "IANA"),
        ({"country": ["ES", "XX"]}, "/country/1", "such as ES"),
        ({"events": ["match", None]}, "/events", "structs"),
        ({"events": pa.array([[{"from": 1}], None])}, "/events", "start, end and kind"),
        ({"events": pa.array([[EVENT], None], EVENTS)}, "/events.end/0", "after the start"),
        ({"events": pa.array([[None], None], EVENTS)}, "/events", "null"),
        ({"events": pa.array([[EVENT] * 1001, None], EVENTS)}, "/events/0", "at most 1000"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_with_their_row(columns, path, words):
    found, reason = refusal(arrow_table(**columns))
    assert found == path
    assert words in reason


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("field", ["start", "end"])
def test_events_are_within_the_years_that_json_can_write(unit, field):
    instant = pa.timestamp(unit, tz="UTC")
    sent = {"start": -1000, "end": 2000}
    kind = pa.list_(pa.struct([("start", instant), ("end", instant)]))
    (event,) = windows(arrow_table(events=pa.array([[sent], None], kind)))[0].window.events
    assert event.start_ms == {"s": -1_000_000, "ms": -1000, "us": -1, "ns": -1}[unit]
    if unit == "ns":
        return  # cannot say years that far away
    far = {**sent, field: (1 if field == "end" else -1) * 2**62}
    path, words = refusal(arrow_table(events=pa.array([[far], None], kind)))
    assert (path, words) == (f"/events.{field}/0", "expected an instant of the years 1 to 9999")


def test_null_in_a_dictionary_is_no_name():
    zones = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([None, "Asia/Tokyo"]))
    rows = [("a", "A", [1.0]), ("b", "A", [1.0])]
    found = [one.window.time_zone for one in windows(arrow_table(rows, time_zone=zones))]
    assert found == ["UTC", "Asia/Tokyo"]
    path, words = refusal(arrow_table(cell=zones.dictionary_decode().dictionary_encode()))
    assert path == "/cell/0"
    assert refusal(arrow_table(cell=zones)) == (path, words)


def test_a_column_that_is_there_twice_is_refused():
    table = arrow_table()
    assert refusal(table.append_column("cell", table.column("cell"))) == (
        "/cell",
        "expected this column once",
    )


def test_a_request_without_rows_is_refused():
    assert (
        refusal(arrow_table([], kpi=pa.array([], pa.string()), cell=pa.array([], pa.string())))[0]
        == "/cell"
    )


def test_counts_are_bounded():
    three = [("a", name, [1.0]) for name in "ABC"]
    path, reason = refusal(arrow_table(three))
    assert (path, reason) == ("/kpi/0", "expected at most 2 KPIs in a series, got 3")
    with pytest.raises(TooLargeError, match="at most 3 series in one request, got 4"):
        windows(arrow_table([(cell, "A", [1.0]) for cell in "abcd"]))
    with pytest.raises(TooLargeError, match="at most 6 rows"):
        windows(arrow_table([("a", "A", [1.0])] * 7))


def test_observations_are_those_of_the_same_series_in_json():
    rows = [*ROWS, ("b", "pmPrbUsedDl", [1.0])]
    found = decode_arrow_observations(arrow_body(arrow_table(rows)), LIMITS).observations(
        LIMITS, small_catalogue(), arrival_ms=5
    )
    text = [
        {"cell": "a", "kpis": {name: values for _, name, values in ROWS}},
        {"cell": "b", "kpis": {"pmPrbUsedDl": [1.0]}},
    ]
    common = {"start": to_rfc3339(START_MS), "step_seconds": 900}
    request = decode_json(
        json.dumps({"horizon": 1, "series": [one | common for one in text]}).encode(),
        ForecastRequest,
    )
    expected = to_observations(request.series, LIMITS, small_catalogue(), arrival_ms=5)
    for name in (
        "cells",
        "kpis",
        "cell_index",
        "kpi_index",
        "period_end_ms",
        "period_ms",
        "values",
    ):
        np.testing.assert_array_equal(
            getattr(found.batch, name), getattr(expected.batch, name), name
        )
    assert found.batch.values.dtype == np.float64
    assert found.pointer("b") == "/cell/2"
    assert found.pointer("elsewhere") == "/cell"


@st.composite
def sent_series(draw):
    """Rows as columns and the same in JSON: distinct (cell, start), several KPIs each."""
    finite = st.floats(-1e6, 1e6, width=32) | st.none()
    rows, listed = [], []
    cells = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    for cell in cells:
        steps = draw(st.integers(1, 4))
        names = draw(
            st.lists(
                st.sampled_from(["A", "B", "pmPrbUsedDl"]), min_size=1, max_size=2, unique=True
            )
        )
        kpis = {name: draw(st.lists(finite, min_size=steps, max_size=steps)) for name in names}
        rows += [(cell, name, values) for name, values in kpis.items()]
        listed.append(
            {"cell": cell, "start": to_rfc3339(START_MS), "step_seconds": 900, "kpis": kpis}
        )
    return rows, listed


@given(sent_series())
def test_windows_are_those_of_the_same_series_in_json(sent):
    rows, listed = sent
    text = json.dumps({"series": listed, "horizon": 1}).encode()
    expected = to_windows(
        decode_json(text, ForecastRequest).series, LIMITS, small_catalogue(), "UTC"
    )
    for one, other in zip(windows(arrow_table(rows)), expected, strict=True):
        np.testing.assert_array_equal(one.window.values, other.window.values)
        assert one.names == other.names
        assert (one.window.cell, one.window.start_ms) == (other.window.cell, other.window.start_ms)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_buffers_with_a_compression_of_their_own_are_refused(compression):
    body = arrow_body(arrow_table(), compression=compression, horizon=1)
    with pytest.raises(MalformedBodyError, match="Content-Encoding"):
        decode_arrow_forecast(body, LIMITS)


def test_compressed_dictionaries_are_refused():
    table = pa.table({"cell": pa.array(["a" * 500]).dictionary_encode()})
    with pytest.raises(MalformedBodyError, match="Content-Encoding"):
        decode_arrow_forecast(arrow_body(table, compression="zstd"), LIMITS)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_messages_of_an_older_version_are_refused_because_they_may_hide_a_compression(compression):
    table = arrow_table().replace_schema_metadata({"rancast": json.dumps({"horizon": 1})})
    sink = pa.BufferOutputStream()
    write = pa.ipc.IpcWriteOptions(
        metadata_version=pa.ipc.MetadataVersion.V4, compression=compression
    )
    with pa.ipc.new_stream(sink, table.schema, options=write) as writer:
        writer.write_table(table)
    with pytest.raises(MalformedBodyError, match="version 5, got 4"):
        decode_arrow_forecast(bytes(sink.getvalue()), LIMITS)


def test_a_batch_with_metadata_of_its_own_is_refused():
    table = arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(
            table.to_batches()[0],
            custom_metadata={"ARROW:experimental_compression": "zstd"},
        )
    with pytest.raises(MalformedBodyError, match="custom metadata"):
        decode_arrow_observations(bytes(sink.getvalue()), LIMITS)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"ARROW1\0\0", b"\xff" * 8, b"\xff\xff\xff\xff\0\0\0\x7f"]
)
def test_what_is_no_stream_is_refused(body):
    with pytest.raises(MalformedBodyError, match="Arrow IPC stream"):
        decode_arrow_observations(body, LIMITS)


def test_a_stream_that_is_cut_off_in_a_message_is_refused():
    body = arrow_body(arrow_table())
    with pytest.raises(MalformedBodyError):
        decode_arrow_observations(body[:-20], LIMITS)


GOOD = arrow_body(
    arrow_table(
        [*ROWS, ("b", "A", [1.0])],
        cell=pa.array(["a", "a", "b"]).dictionary_encode(),
        time_zone=[None, "UTC", "UTC"],
        events=pa.array([[{"start": 1, "end": 2, "kind": "x"}], None, []], EVENTS),
    ),
    horizon=2,
)


@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.none() | st.integers(0, len(GOOD)),
)
def test_a_damaged_stream_is_read_or_refused(changes, length):
    body = bytearray(GOOD)
    for place, value in changes:
        body[place] = value
    try:
        _, histories = decode_arrow_forecast(bytes(body[:length]), LIMITS)
        histories.windows(LIMITS, small_catalogue(), "UTC")
        histories.observations(LIMITS, small_catalogue(), arrival_ms=0)
    except RequestError:
        pass


def test_rows_that_take_no_bytes_are_counted_and_not_made():
    body = arrow_body(pa.table({"time_zone": pa.nulls(7)}))
    claimed = body.replace(struct.pack("<q", 7), struct.pack("<q", 2**40))
    assert claimed != body
    with pytest.raises((TooLargeError, MalformedBodyError)):
        decode_arrow_observations(claimed, LIMITS)
    with pytest.raises(TooLargeError, match="at most 6 rows"):
        decode_arrow_observations(body, LIMITS)
