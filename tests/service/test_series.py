import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codecs.json_requests import decode_json
from service.errors import InvalidRequestError, TooLargeError
from service.schemas import ForecastRequest, Series
from service.series import SeriesLimits, pointer, to_observations, to_windows
from service.timestamps import to_rfc3339
from tests.service.fakes import NOON_MS, forecast_request, series, small_catalogue

LIMITS = SeriesLimits(max_series=3, max_kpis=2)


def parsed(**changes: Any) -> Series:
    return Series.model_validate_json(json.dumps(series(**changes)))


def windows(*many: Series, zone: str = "UTC", country: str | None = None):
    return to_windows(many, LIMITS, small_catalogue(), zone, country)


def observations(*many: Series):
    return to_observations(many, LIMITS, small_catalogue(), arrival_ms=NOON_MS)


def fault(caught):
    return caught.value.faults[0].path


def test_a_series_becomes_a_window_with_nan_for_null():
    (named,) = windows(parsed())
    window = named.window
    assert window.kpis == ("RRU.PrbTotDl", "DRB.MeanActiveUeDl")
    assert window.values.dtype == np.float32
    np.testing.assert_array_equal(window.values[0], [12, np.nan, 15.5])
    assert to_rfc3339(window.start_ms) == "2026-11-01T10:00:00Z"
    assert window.step_ms == 900_000


def test_an_offset_in_the_start_is_taken_off():
    (named,) = windows(parsed(start="2026-11-01T12:00:00+02:00"))
    assert to_rfc3339(named.window.start_ms) == "2026-11-01T10:00:00Z"


def test_an_alias_is_resolved_inside_and_spelt_as_sent_outside():
    (named,) = windows(parsed(kpis={"pmPrbUsedDl": [1.0]}))
    assert named.window.kpis == ("RRU.PrbTotDl",)
    assert named.spell(named.window.kpis) == ["pmPrbUsedDl"]


def test_the_same_kpi_under_two_names_is_refused():
    with pytest.raises(InvalidRequestError, match=r"another name of 'RRU\.PrbTotDl'") as caught:
        windows(parsed(kpis={"RRU.PrbTotDl": [1.0], "pmPrbUsedDl": [1.0]}))
    assert fault(caught) == "/series/0/kpis/pmPrbUsedDl"


def test_lists_of_unequal_length_are_refused_by_name():
    with pytest.raises(InvalidRequestError, match="expected 2 samples") as caught:
        windows(parsed(), parsed(kpis={"A": [1, 2], "B/C": [1]}))
    assert fault(caught) == "/series/1/kpis/B~1C"


def test_more_kpis_than_the_limit_are_refused():
    with pytest.raises(InvalidRequestError, match="at most 2 KPIs, got 3") as caught:
        windows(parsed(kpis={"A": [1], "B": [1], "C": [1]}))
    assert fault(caught) == "/series/0/kpis"


def test_more_series_than_the_limit_are_too_large():
    with pytest.raises(TooLargeError, match="at most 3 series in one request, got 4"):
        windows(*[parsed()] * 4)
    with pytest.raises(TooLargeError):
        observations(*[parsed()] * 4)


def test_a_value_that_float32_cannot_hold_is_refused_with_its_place():
    with pytest.raises(InvalidRequestError, match="got 1e\\+39") as caught:
        windows(parsed(kpis={"A": [1, None], "B": [0, 1e39]}))
    assert fault(caught) == "/series/0/kpis/B/1"


@pytest.mark.parametrize("step_seconds", [0.0001, 0.0015, 1.00051])
def test_a_step_that_is_no_whole_number_of_milliseconds_is_refused(step_seconds):
    with pytest.raises(InvalidRequestError, match="whole number of milliseconds") as caught:
        windows(parsed(step_seconds=step_seconds))
    assert fault(caught) == "/series/0/step_seconds"


@pytest.mark.parametrize(
    "start",
    [
        "1793491200",
        "1793491200000",
        "2026-11-01",
        "2026-11-01T10:00Z",
        "2026-11-01T10:00:00",
        "20261101T100000Z",
        "-2026-11-01T10:00:00Z",
    ],
)
def test_a_stamp_that_is_not_of_rfc_3339_is_refused_and_not_guessed(start):
    with pytest.raises(InvalidRequestError, match="RFC 3339") as caught:
        decode_json(
            json.dumps(forecast_request(series=[series(start=start)])).encode(), ForecastRequest
        )
    assert caught.value.faults[0].path == "/series/0/start"
    event = {"start": start, "end": "2026-11-02T10:00:00Z"}
    with pytest.raises(InvalidRequestError, match="RFC 3339"):
        decode_json(
            json.dumps(forecast_request(series=[series(events=[event])])).encode(), ForecastRequest
        )


@pytest.mark.parametrize(
    "start", ["2026-11-01T10:00:00Z", "2026-11-01t12:00:00.000+02:00", "2026-11-01 10:00:00z"]
)
def test_every_spelling_of_rfc_3339_is_read(start):
    (named,) = windows(parsed(start=start))
    assert to_rfc3339(named.window.start_ms) == "2026-11-01T10:00:00Z"


@pytest.mark.parametrize("start", ["1960-01-01T00:00:00Z", "2300-01-01T00:00:00Z"])
def test_a_start_in_another_century_is_refused(start):
    with pytest.raises(InvalidRequestError, match="between 1970") as caught:
        windows(parsed(start=start))
    assert fault(caught) == "/series/0/start"


def test_the_zone_of_the_series_wins_over_the_deployments():
    one, other = windows(parsed(time_zone="Europe/Madrid"), parsed(), zone="Asia/Tokyo")
    assert one.window.time_zone == "Europe/Madrid"
    assert other.window.time_zone == "Asia/Tokyo"


def test_an_unknown_zone_is_refused():
    with pytest.raises(InvalidRequestError, match="IANA") as caught:
        windows(parsed(time_zone="CEST+1"))
    assert fault(caught) == "/series/0/time_zone"


def test_the_country_of_the_series_wins_over_the_deployments():
    one, other = windows(parsed(country="ES-CT"), parsed(), country="JP")
    assert one.window.country == "ES-CT"
    assert other.window.country == "JP"
    assert windows(parsed())[0].window.country is None


@pytest.mark.parametrize("country", ["XX", "es", "ES-XX", "HolidayBase", "Europe/Madrid"])
def test_an_unknown_country_is_refused(country):
    with pytest.raises(InvalidRequestError, match="such as ES or ES-CT") as caught:
        windows(parsed(), parsed(country=country))
    assert fault(caught) == "/series/1/country"


def test_events_become_intervals_and_must_end_after_their_start():
    event = {"start": "2026-11-01T18:00:00Z", "end": "2026-11-01T21:00:00Z", "kind": "match"}
    (named,) = windows(parsed(events=[event]))
    (planned,) = named.window.events
    assert planned.end_ms - planned.start_ms == 3 * 3_600_000
    assert planned.kind == "match"
    with pytest.raises(InvalidRequestError, match="after the start") as caught:
        windows(parsed(events=[event, {**event, "end": event["start"]}]))
    assert fault(caught) == "/series/0/events/1/end"


def test_observations_end_where_their_period_ends():
    sent = observations(parsed(kpis={"A": [1, None]}))
    batch = sent.batch
    assert [to_rfc3339(int(ms)) for ms in batch.period_end_ms] == [
        "2026-11-01T10:15:00Z",
        "2026-11-01T10:30:00Z",
    ]
    assert batch.period_ms.tolist() == [900_000, 900_000]
    assert np.isnan(batch.values).tolist() == [False, True]
    assert batch.arrival_ms == NOON_MS


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 4)), min_size=1, max_size=3))
def test_every_sample_of_a_request_is_in_the_batch_under_its_cell_and_kpi(cells):
    many = [
        parsed(cell=cell, kpis={"A": list(range(length)), "pmPrbUsedDl": [7.0] * length})
        for cell, length in cells
    ]
    batch = observations(*many).batch
    expected = [
        (one.cell, small_catalogue().canonical(kpi), float(value))
        for one in many
        for kpi, values in one.kpis.items()
        for value in values
    ]
    found = [
        (batch.cells[c], batch.kpis[k], float(v))
        for c, k, v in zip(batch.cell_index, batch.kpi_index, batch.values, strict=True)
    ]
    assert found == expected


def test_a_cell_is_found_again_in_the_request():
    sent = observations(parsed(cell="a"), parsed(cell="b"), parsed(cell="a"))
    assert sent.pointer("b") == "/series/1"
    assert sent.pointer("a") == "/series/0"
    assert sent.pointer("elsewhere") == "/series"


def test_a_pointer_escapes_what_has_a_meaning_in_it():
    assert pointer("kpis", "a/b~c", 3) == "/kpis/a~1b~0c/3"


def test_a_value_a_little_above_float32s_largest_is_refused_and_the_largest_is_not():
    largest = float(np.finfo(np.float32).max)
    (named,) = windows(parsed(kpis={"A": [largest, -largest, None]}))
    np.testing.assert_array_equal(named.window.values, [np.array([largest, -largest, np.nan])])
    with pytest.raises(InvalidRequestError) as caught:
        windows(parsed(), parsed(kpis={"A": [0, np.nextafter(largest, np.inf)]}))
    assert fault(caught) == "/series/1/kpis/A/1"


def test_series_of_all_lengths_keep_their_own_samples_across_runs():
    lengths = [1, 5, 131_072, 3]
    many = [
        parsed(kpis={"A": [position] * steps, "B": [-position] * steps})
        for position, steps in enumerate(lengths)
    ]
    limits = SeriesLimits(max_series=9, max_kpis=2)
    for position, named in enumerate(to_windows(many, limits, small_catalogue(), "UTC")):
        assert named.window.values.shape == (2, lengths[position])
        assert (named.window.values == [[position], [-position]]).all()
