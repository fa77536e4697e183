"""Bulk over HTTP: Arrow streams both ways, and compressed bodies."""

import gzip
import json
import re
import sys
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest

from kpi.store import KpiStore, StoreLimits
from service.settings import Settings
from tests.service.codecs.arrow_bodies import arrow_body, arrow_table
from tests.service.fakes import forecast_request, serving, small_catalogue

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.anyio

ARROW = "application/vnd.apache.arrow.stream"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "api.md"
JSON = {"content-type": "application/json"}


async def post(content, settings=None, path="/v1/forecast", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with serving(settings) as client:
        return await client.http.post(path, content=content, headers=named)


def problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


async def test_arrow_is_answered_with_arrow_where_it_is_asked_for():
    body = arrow_body(arrow_table(), horizon=2, quantiles=[0.5])
    answer = await post(body, content_type=ARROW, accept=ARROW)
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column("kpi").to_pylist() == ["RRU.PrbTotDl", "DRB.MeanActiveUeDl"]
    assert table.column("q0.5").to_pylist() == [[16.0, 16.0], [4.5, 4.5]]


async def test_arrow_and_json_say_the_same_to_one_who_takes_json():
    body = arrow_body(arrow_table(), horizon=2, budget_ms=500)
    answer = await post(body, content_type=ARROW, accept="*/*")
    (forecast,) = answer.json()["forecasts"]
    assert forecast["kpis"]["RRU.PrbTotDl"]["0.1"] == [15.6, 15.6]


async def test_json_may_be_answered_with_arrow():
    answer = await post(
        json.dumps(forecast_request()), accept=ARROW, **{"content-type": JSON["content-type"]}
    )
    assert pa.ipc.open_stream(answer.content).read_all().num_rows == 2


async def test_a_large_arrow_request_is_answered_in_its_order():
    cells = [f"c{i}" for i in range(600)]
    values = [float(i) for i in range(500)]
    body = arrow_body(arrow_table([(cell, "A", values) for cell in cells]), horizon=1)
    answer = await post(body, Settings(profile="non-rt"), content_type=ARROW, accept=ARROW)
    assert pa.ipc.open_stream(answer.content).read_all().column("cell").to_pylist() == cells


async def test_one_who_takes_neither_form_is_told_before_the_body_is_read():
    answer = await post(b"no body at all", content_type=ARROW, accept="text/csv")
    assert ARROW in problem(answer, 406)["detail"]


async def test_options_are_checked_as_those_in_json():
    body = arrow_body(arrow_table(), horizon=99)
    assert problem(await post(body, content_type=ARROW), 422)["path"] == "/horizon"


async def test_a_stream_that_cannot_be_read_is_malformed():
    assert "Arrow" in problem(await post(b"{}", content_type=ARROW), 400)["detail"]


async def test_observations_in_arrow_are_kept():
    kept = KpiStore(StoreLimits(max_cells=1), small_catalogue())
    rows = [("a", "RRU.PrbTotDl", [1.0, None, 3.0]), ("b", "RRU.PrbTotDl", [1.0])]
    async with serving(store=kept) as client:
        answer = await client.http.post(
            "/v1/observations",
            content=arrow_body(arrow_table(rows)),
            headers={"content-type": ARROW},
        )
    assert answer.json()["accepted"] == 3
    assert answer.json()["rejected"][0]["path"] == "/cell/1"
    np.testing.assert_array_equal(kept.window("a").values, [[1, np.nan, 3]])


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
async def test_a_compressed_body_is_read(coding, compress):
    body = compress(json.dumps(forecast_request()).encode())
    answer = await post(body, content_encoding=coding, **JSON)
    assert answer.status_code == 200
    body = compress(arrow_body(arrow_table(), horizon=1))
    assert (await post(body, content_encoding=coding, content_type=ARROW)).status_code == 200


async def test_a_large_compressed_body_is_read():
    values = [None] * 200_000
    body = gzip.compress(arrow_body(arrow_table([("a", "A", values)]), horizon=1))
    settings = Settings(profile="non-rt")
    answer = await post(body, settings, content_encoding="gzip", content_type=ARROW)
    assert answer.status_code == 200


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
@pytest.mark.parametrize("size", [3_000, 3_000_000])
async def test_a_body_that_unpacks_beyond_the_limit_is_too_large(coding, compress, size):
    settings = Settings(max_body_bytes=size // 2)
    answer = await post(compress(b" " * size), settings, content_encoding=coding, **JSON)
    assert "decompressed" in problem(answer, 413)["detail"]


async def test_a_body_that_unpacks_beyond_the_room_is_refused_and_the_room_is_free_again():
    async with serving(Settings(max_body_bytes=3_000_000)) as client:
        with client.services.room.visit() as other:
            other.grow(5_000_000)
            answer = await client.http.post(
                "/v1/forecast",
                content=gzip.compress(b" " * 2_900_000),
                headers={**JSON, "content-encoding": "gzip"},
            )
            problem(answer, 429)
            assert client.services.room.taken_bytes == 5_000_000


async def test_a_body_that_is_not_compressed_as_it_says_is_malformed():
    answer = await post(b"{}", content_encoding="gzip", **JSON)
    assert "gzip" in problem(answer, 400)["detail"]


async def test_the_pages_example_runs(capsys, monkeypatch):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    sent = {}

    def keep(url, **request):
        sent.update(request)
        raise KeyboardInterrupt(url)

    monkeypatch.setattr(httpx, "post", keep)
    with pytest.raises(KeyboardInterrupt, match="/v1/forecast"):
        exec(example, {})
    async with serving() as client:
        answer = await client.http.post("/v1/forecast", **sent)
    monkeypatch.setattr(httpx, "post", lambda *_, **__: answer)
    exec(example, {})
    assert "'cell': 'NRCellDU=33'" in (out := capsys.readouterr().out)
    assert out.endswith("fake\n")
