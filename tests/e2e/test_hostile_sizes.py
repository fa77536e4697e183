"""Requests made to use up memory: each is refused by name, in a memory that has a bound."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
from service.kserve.tensors import LENGTH_HEADER
from tests.e2e.raw_client import RawClient, post_head
from tests.e2e.service_process import Service, running
from tests.service.codecs.arrow_bodies import arrow_body, arrow_table
from tests.service.fakes import forecast_request, series

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BODY_BYTES = 2 * 1024 * 1024
# What is parsed takes up to 128 times its two bytes: a list of single digits, nowhere expected.
MOST_GROWTH_BYTES = 200 * MOST_BODY_BYTES
FORECAST = "/v1/forecast"
OBSERVATIONS = "/v1/observations"
PREDICT = "/v1/models/fake:predict"
INFER = "/v2/models/fake/infer"
TIMESERIES = "/v1/timeseries/forecast"

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are read from /proc"
)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running(
        RANCAST_PROFILE="non-rt",
        RANCAST_MAX_BODY_BYTES=str(MOST_BODY_BYTES),
        RANCAST_ACCESS_LOG="false",
    ) as one:
        yield one


@pytest.fixture
def grown_bytes(service: Service) -> Callable[[], int]:
    """By how much the process has grown at its largest since the test began."""
    place = Path(f"/proc/{service.process.pid}")

    def figure(name: str) -> int:
        found = re.search(rf"{name}:\s+(\d+) kB", (place / "status").read_text())
        assert found is not None
        return 1024 * int(found[1])

    (place / "clear_refs").write_text("5")  # forgets the largest so far
    begun = figure("VmRSS")
    return lambda: figure("VmHWM") - begun


def filled(head: str, unit: str, tail: str) -> bytes:
    """A body as large as it may be, of as many units as fit; `#` in a unit is their number."""
    room = MOST_BODY_BYTES - len(head) - len(tail)
    count = room // (len(unit) + 1 + (5 if "#" in unit else 0))
    return (head + ",".join(unit.replace("#", str(n)) for n in range(count)) + tail).encode()


ONE = '{"cell":"a","start":"2026-11-01T00:00:00Z","step_seconds":900,"kpis":{"a":[1]}}'
TENSOR = '{"inputs":[{"name":"values","datatype":"FP32",'
SERIES = '{"horizon":1,"series":[{'
KPIS = SERIES + '"cell":"a","start":"2026-11-01T00:00:00Z","step_seconds":900,"kpis":{'
PARAMETERS = '{"instances":[[1]],"parameters":{'
LONG_NAME = json.dumps(forecast_request(series=[series(cell="x" * 10**6)])).encode()
MANY = {"name": "values", "datatype": "FP32", "shape": [500_000, 1, 1], "data": [1] * 500_000}
MANY_SERIES = json.dumps({"inputs": [MANY]}).encode()
JSON_CASES: dict[str, tuple[str, bytes, int]] = {
    "deep lists": (FORECAST, b"[" * 100_000, 400),
    "deep objects": (FORECAST, b'{"a":' * 100_000, 400),
    "deep data": (INFER, (TENSOR + '"shape":[1],"data":').encode() + b"[" * 100_000, 400),
    "digits of a horizon": (FORECAST, b'{"horizon":' + b"9" * 1_000_000 + b"}", 400),
    "digits of a sample": (
        FORECAST,
        json.dumps(forecast_request()).replace("12.0", "9" * 1_000_000).encode(),
        400,
    ),
    "digits of a fraction": (
        FORECAST,
        json.dumps(forecast_request()).replace("15.5", "0." + "9" * 1_000_000).encode(),
        200,  # it is a good number
    ),
    "unknown fields": (FORECAST, filled("{", '"a#":1', "}"), 413),
    "unknown fields of a series": (FORECAST, filled(SERIES, '"a#":1', "}]}"), 413),
    "many KPIs": (FORECAST, filled(KPIS, '"a#":[1]', "}}]}"), 413),
    "many bad KPIs": (FORECAST, filled(KPIS, '"a#":1', "}}]}"), 413),
    "many series": (FORECAST, filled('{"horizon":1,"series":[', ONE, "]}"), 413),
    "many observed series": (OBSERVATIONS, filled('{"series":[', ONE, "]}"), 413),
    "empty series": (FORECAST, filled('{"horizon":1,"series":[', "{}", "]}"), 413),
    "many quantiles": (FORECAST, filled('{"horizon":1,"quantiles":[', "1", "]}"), 413),
    "many events": (FORECAST, filled(SERIES + '"events":[', "0", "]}]}"), 413),
    "a long name": (FORECAST, LONG_NAME, 422),
    "unknown parameters": (PREDICT, filled(PARAMETERS, '"a#":1', "}}"), 413),
    "empty names": (PREDICT, filled(PARAMETERS + '"kpis":[', '""', "]}}"), 413),
    "many instances": (PREDICT, filled('{"instances":[', "[1]", "]}"), 413),
    "many series of a tensor": (INFER, MANY_SERIES, 413),
    "empty rows": (PREDICT, filled('{"instances":[[', "[]", "]]}"), 413),
    "many dimensions": (INFER, filled(TENSOR + '"shape":[', "1", '],"data":[1]}]}'), 413),
    "names that are numbers": (
        TIMESERIES,
        filled('{"model":"fake","options":{"horizon":1},"inputs":[{"kpis":[', "1", "]}]}"),
        413,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON_CASES)
def test_a_body_that_is_made_to_grow_is_refused(
    service: Service, grown_bytes: Callable[[], int], name: str
) -> None:
    path, body, status = JSON_CASES[name]
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{service.address}{path}", content=body, headers=headers, timeout=120)
    assert answer.status_code == status, answer.text[:300]
    assert len(answer.content) < 10_000
    assert grown_bytes() < MOST_GROWTH_BYTES


@pytest.mark.parametrize("horizon", [10**4, 10**9, 2**63, 10**400])
def test_a_huge_horizon_is_refused_before_anything_is_made_for_it(
    service: Service, grown_bytes: Callable[[], int], horizon: int
) -> None:
    body = forecast_request(horizon=horizon)
    answer = httpx.post(f"{service.address}{FORECAST}", json=body)
    assert answer.status_code == 422
    assert answer.json()["path"] == "/horizon"
    assert grown_bytes() < 10_000_000


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ([2**31 - 1, 2**31 - 1, 2**31 - 1], [1]),
        ([2**62, 2**62, 4], [1]),
        ([10**400, 1, 1], [1]),
        ([2**31 - 1] * 7 + [0], []),
        ([0, 2**31 - 1, 2**31 - 1], []),
        ([10**400, 0, 1], []),
    ],
)
def test_a_shape_that_no_array_has_is_refused(
    service: Service, grown_bytes: Callable[[], int], shape: list[int], data: list[float]
) -> None:
    for said in ({"data": data}, {"parameters": {"binary_data_size": 0}}):
        one: dict[str, Any] = {"name": "values", "datatype": "FP32", "shape": shape, **said}
        answer = httpx.post(f"{service.address}{INFER}", json={"inputs": [one]})
        assert answer.status_code == 400, answer.text
        assert "/inputs" in answer.json()["error"]
    assert grown_bytes() < 10_000_000


@pytest.mark.parametrize("length", ["9" * 15, "9" * 5000, "-1", "1e9"])
def test_a_length_that_is_no_length_is_refused(service: Service, length: str) -> None:
    head = post_head(FORECAST, 2).replace(
        b"content-length: 2", f"content-length: {length}".encode()
    )
    with RawClient(service.address) as client:
        client.send(head)
        answer = client.receive()
    assert answer is not None
    assert answer.status in (400, 413)
    assert answer.closes
    # What an HTTP parser would not let pass comes in this header.
    said = httpx.post(f"{service.address}{INFER}", content=b"{}", headers={LENGTH_HEADER: length})
    assert said.status_code == 400
    assert LENGTH_HEADER in said.json()["error"]


ZEROS = bytes(64 * 1024 * 1024)


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        ("gzip", gzip.compress(ZEROS, 1), 413),
        ("zstd", zstd.compress(ZEROS) * 8, 413),
        ("gzip", gzip.compress(gzip.compress(ZEROS, 1), 1), 400),
        ("zstd", zstd.compress(zstd.compress(ZEROS)), 400),
        ("gzip, gzip", gzip.compress(gzip.compress(ZEROS, 1), 1), 415),
    ],
    ids=["gzip", "zstd", "gzip in gzip", "zstd in zstd", "stated twice"],
)
def test_a_bomb_is_not_unpacked(
    service: Service, grown_bytes: Callable[[], int], coding: str, body: bytes, status: int
) -> None:
    headers = {"content-type": "application/json", "content-encoding": coding}
    answer = httpx.post(f"{service.address}{FORECAST}", content=body, headers=headers, timeout=60)
    assert answer.status_code == status
    assert grown_bytes() < 10 * MOST_BODY_BYTES


def test_lengths_that_an_arrow_stream_only_claims_are_not_believed(
    service: Service, grown_bytes: Callable[[], int]
) -> None:
    good = arrow_body(arrow_table(cell=["a", "a"]).combine_chunks(), horizon=1)
    headers = {"content-type": ARROW_MEDIA_TYPE}
    statuses = set()
    with httpx.Client(base_url=service.address, headers=headers, timeout=60) as client:
        # Lengths of buffers, counts of rows and nulls, the length of the body: all of eight bytes.
        for place in range(0, len(good) - 8, 8):
            number = int.from_bytes(good[place : place + 8], "little")
            if not 0 < number < len(good):
                continue
            for claim in (2**31, 2**40, 2**62, 2**63):
                body = good[:place] + claim.to_bytes(8, "little") + good[place + 8 :]
                statuses.add(client.post(FORECAST, content=body).status_code)
    assert statuses <= {200, 400, 413, 422}
    assert 400 in statuses
    assert grown_bytes() < 50_000_000
