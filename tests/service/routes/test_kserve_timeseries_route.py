import numpy as np
import pytest

from service.container import Phase
from tests.service.fakes import FakeClock, RepeatLast, serving

pytestmark = pytest.mark.anyio


def one_input(**changes):
    return {
        "type": "univariate_time_series",
        "name": "RRU.PrbTotDl",
        "series": [12.0, None, 15.5],
        "frequency": "hour",
        "start_timestamp": "2026-11-01T00:00:00Z",
        **changes,
    }


def forecast_request(*inputs, **options):
    return {
        "model": "fake",
        "inputs": list(inputs) or [one_input()],
        "options": {"horizon": 2, **options},
    }


def several(**changes):
    return one_input(
        type="multivariate_time_series", name="cell-1", series=[[1, 2], [3, None]], **changes
    )


async def ask(body, model=None, clock=None):
    async with serving(predictor=model, clock=clock) as client:
        return await client.post("/v1/timeseries/forecast", body)


def error(answer, status=400):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    found = answer.json()["error"]
    assert set(found) == {"code", "message", "param", "type"}
    assert found["code"] == str(status)
    return found


async def test_a_request_is_answered_with_mean_and_quantiles():
    answer = (await ask(forecast_request(quantiles=[0.1, 0.9]))).json()
    assert answer["status"] == "completed"
    assert answer["model"] == "fake"
    assert answer["created_at"] == 1_793_534_400
    assert answer["error"] is None
    (output,) = answer["outputs"]
    assert output["type"] == "time_series_forecast"
    assert output["id"] not in ("", answer["id"])
    (content,) = output["content"]
    assert content["name"] == "RRU.PrbTotDl"
    assert content["start_timestamp"] == "2026-11-01T03:00:00Z"
    assert content["mean_forecast"] == [16.0, 16.0]
    assert content["quantiles"] == {"0.1": [15.6, 15.6], "0.9": [16.4, 16.4]}
    assert content["rung"] == "full"
    assert content["context"]["missing_ratio"] == pytest.approx(1 / 3, abs=1e-6)


async def test_without_quantiles_the_mean_alone_is_answered():
    (output,) = (await ask(forecast_request())).json()["outputs"]
    assert output["content"][0]["quantiles"] is None
    assert output["content"][0]["mean_forecast"] == [16.0, 16.0]


async def test_several_variables_stand_in_the_second_place_of_both_sides():
    model = RepeatLast()
    answer = await ask(forecast_request(several(kpis=["A", "B"]), quantiles=[0.5]), model)
    np.testing.assert_array_equal(model.windows[-1].values, [[1, 3], [2, np.nan]])
    assert model.windows[-1].kpis == ("A", "B")
    (content,) = answer.json()["outputs"][0]["content"]
    assert content["mean_forecast"] == [[3.5, 2.5], [3.5, 2.5]]
    assert content["quantiles"]["0.5"] == [[3.5, 2.5], [3.5, 2.5]]


@pytest.mark.parametrize(
    ("frequency", "multiplier", "step_ms"),
    [("minute", 15, 900_000), ("S", 0.01, 10), ("H", None, 3_600_000), ("week", 1, 604_800_000)],
)
async def test_a_multiplier_makes_steps_that_no_frequency_can_say(frequency, multiplier, step_ms):
    model = RepeatLast()
    changes = {} if multiplier is None else {"frequency_multiplier": multiplier}
    answer = await ask(forecast_request(one_input(frequency=frequency, **changes)), model)
    assert model.windows[-1].step_ms == step_ms
    (content,) = answer.json()["outputs"][0]["content"]
    assert content["frequency"] == frequency
    assert content["frequency_multiplier"] == (multiplier or 1)


async def test_a_series_has_the_catalogues_kpi_by_its_name_and_a_cell_of_its_own():
    model = RepeatLast()
    extended = one_input(
        name="mine", kpis=["pmPrbUsedDl"], cell="NRCellDU=1", time_zone="Europe/Rome", country="IT"
    )
    await ask(forecast_request(one_input(name="pmPrbUsedDl"), extended), model)
    plain, told = model.windows[-2:]
    assert (plain.cell, plain.kpis) == ("pmPrbUsedDl", ("RRU.PrbTotDl",))
    assert (told.cell, told.kpis) == ("NRCellDU=1", ("RRU.PrbTotDl",))
    assert (told.time_zone, told.country) == ("Europe/Rome", "IT")


async def test_a_start_without_offset_is_utc_and_none_means_that_the_series_ends_now():
    model, clock = RepeatLast(), FakeClock()
    naive = one_input(start_timestamp="2026-11-01T00:00:00", name="a")
    now = one_input(start_timestamp=None, name="b")
    await ask(forecast_request(naive, now), model, clock)
    first, second = model.windows[-2:]
    assert first.start.isoformat() == "2026-11-01T00:00:00+00:00"
    assert second.end_ms == clock.now_ms()


async def test_members_that_nobody_knows_are_let_pass():
    body = {**forecast_request(one_input(unit="%"), temperature=1), "metadata": {"a": 1}, "b": 2}
    assert (await ask(body)).status_code == 200


@pytest.mark.parametrize(
    ("changes", "param", "words"),
    [
        ({"frequency": "month"}, "frequency", "fixed length"),
        ({"frequency": "fortnight"}, "frequency", "'hour'"),
        ({"frequency_multiplier": 1e9}, "frequency_multiplier", "2678400"),
        ({"frequency_multiplier": 0}, "frequency_multiplier", "greater than 0"),
        ({"frequency": "S", "frequency_multiplier": 1e-5}, "frequency_multiplier", "milliseconds"),
        ({"start_timestamp": "soon"}, "start_timestamp", "ISO 8601"),
        ({"start_timestamp": "1950-01-01"}, "start_timestamp", "1970"),
        ({"type": "multivariate_time_series"}, "series", "list of lists"),
        ({"series": [[1], [2]]}, "series", "list of numbers"),
        ({"series": []}, "series", "at least 1"),
        ({"series": [1, "2"]}, "series/1", "number"),
        ({"series": [1e39]}, "series", "within"),
        ({"kpis": ["a", "b"]}, "kpis", "expected 1 names"),
        ({"time_zone": "Mars"}, "time_zone", "IANA"),
        ({"country": "XX"}, "country", ""),
    ],
)
async def test_an_input_that_cannot_be_used_is_a_400_with_its_param(changes, param, words):
    found = error(await ask(forecast_request(one_input(name="a"), one_input(**changes))))
    assert found["param"] == f"/inputs/1/{param}"
    assert words in found["message"]
    assert found["type"] == "BadRequestError"


async def test_two_names_of_one_kpi_are_refused():
    found = error(await ask(forecast_request(several(kpis=["pmPrbUsedDl", "RRU.PrbTotDl"]))))
    assert found["param"] == "/inputs/0/kpis"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"horizon": 0}, "/options/horizon"),
        ({"quantiles": [0.9, 0.1]}, "/options/quantiles"),
        ({"quantiles": [0.99]}, "/options/quantiles"),
        ({"budget_ms": -1}, "/options/budget_ms"),
    ],
)
async def test_options_that_cannot_be_used_are_a_400_with_their_param(options, param):
    assert error(await ask(forecast_request(**options)))["param"] == param


async def test_names_have_to_be_told_apart():
    assert error(await ask(forecast_request(one_input(), one_input())))["param"] == "/inputs"


async def test_another_model_is_not_found():
    found = error(await ask({**forecast_request(), "model": "other"}), 404)
    assert found["type"] == "NotFoundError"


async def test_models_are_listed_as_names():
    async with serving() as client:
        assert (await client.get("/v1/timeseries/models")).json() == ["fake"]


async def test_a_stopping_service_is_a_503_with_retry_after():
    async with serving() as client:
        client.services.move_to(Phase.DRAINING, "stopping")
        answer = await client.post("/v1/timeseries/forecast", forecast_request())
    assert error(answer, 503)["message"] == "stopping"
    assert answer.headers["retry-after"]
