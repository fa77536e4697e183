"""What goes over the wire, seen by a server that is a function."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np
import pytest

from service.client import (
    Connection,
    DeadlineExceededError,
    Event,
    ForbiddenError,
    OverloadedError,
    RancastClient,
    Series,
    ServerFailedError,
    TooLargeError,
    UnexpectedAnswerError,
    UnreachableError,
)
from service.client.errors import error_of
from service.client.series import series_body

ADDRESS = "http://rancast.example"
START = datetime(2026, 11, 1, tzinfo=UTC)
MODEL = {
    "name": "m",
    "version": "1",
    "digest": "d",
    "max_horizon": 1,
    "quantile_range": [0.1, 0.9],
}


def client(
    handler: Callable[[httpx.Request], httpx.Response], **connection: object
) -> RancastClient:
    return RancastClient(
        Connection(ADDRESS, **connection),  # type: ignore[arg-type]
        transport=httpx.MockTransport(handler),
        sleep=lambda _: None,
    )


def problem(status: int, **members: object) -> httpx.Response:
    body = {"type": "urn:rancast:problem:x", "detail": "wrong", **members}
    return httpx.Response(status, json=body)


def test_the_token_is_sent_with_each_try_and_shown_nowhere(caplog):
    tokens = iter(["secret-1", "secret-2"])
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return problem(503) if len(seen) == 1 else problem(401)

    caplog.set_level(logging.DEBUG)
    made = client(handler, token=lambda: next(tokens))
    with made, pytest.raises(ForbiddenError) as caught:
        made.model()
    assert seen == ["Bearer secret-1", "Bearer secret-2"]
    assert "secret" not in repr(made) + repr(caught.value) + caplog.text
    assert "secret" not in repr(Connection(ADDRESS, token="secret"))


def test_a_redirect_is_not_followed_so_that_the_token_stays_with_its_server():
    answer = httpx.Response(307, headers={"location": "http://other.example"})
    with client(lambda _: answer, token="t") as made, pytest.raises(Exception, match="307"):
        made.model()


@pytest.mark.parametrize("stated", [{"timeout_s": 5}, {}])
def test_only_calls_that_forecast_with_a_stated_timeout_state_a_budget(stated):
    headers: list[httpx.Headers] = []

    def handler(request: httpx.Request) -> httpx.Response:
        headers.append(request.headers)
        return problem(500)

    with client(handler, **stated) as made:
        for call in (made.model, lambda: made.cell_forecast("a"), lambda: made.forecast([], 1)):
            with pytest.raises(ServerFailedError):
                call()
    assert ["x-latency-budget-ms" in each for each in headers] == [
        False,
        bool(stated),
        bool(stated),
    ]


def test_a_cells_name_is_one_part_of_the_path():
    paths: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return problem(500)

    with client(handler) as made, pytest.raises(ServerFailedError):
        made.cell_forecast("a/b=1,c d", 2, quantiles=[0.1, 0.9], kpis=["x", "y"])
    assert paths == [
        b"/v1/cells/a%2Fb%3D1%2Cc%20d/forecast?horizon=2&quantiles=0.1%2C0.9&kpi=x&kpi=y"
    ]


def test_cells_are_read_page_by_page():
    def handler(request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("after")
        stamp = "2026-11-01T00:00:00Z"
        names, following = (["a", "b"], "b") if after is None else (["c"], None)
        entries = [
            {"cell": name, "kpis": [], "step_seconds": 1, "first": stamp, "last": stamp}
            for name in names
        ]
        return httpx.Response(200, json={"cells": entries, "next": following})

    with client(handler) as made:
        assert [each.cell for each in made.cells()] == ["a", "b", "c"]


def test_an_answer_of_another_server_is_told_apart():
    with (
        client(lambda _: httpx.Response(200, text="<html>")) as made,
        pytest.raises(UnexpectedAnswerError, match="check the address"),
    ):
        made.model()
    with (
        client(lambda _: httpx.Response(200, json=[1])) as made,
        pytest.raises(UnexpectedAnswerError),
    ):
        made.model()


def test_an_error_of_a_proxy_is_told_by_its_status():
    with (
        client(lambda _: httpx.Response(413, text="<html>")) as made,
        pytest.raises(TooLargeError, match="413 unknown: no problem document"),
    ):
        made.model()


def test_all_that_is_wrong_is_in_the_error():
    faults = [{"path": "/a", "reason": "x"}, {"path": "/b", "reason": "y"}]
    with (
        client(lambda _: problem(422, path="/a", errors=faults)) as made,
        pytest.raises(Exception, match="422 x: /a: wrong") as caught,
    ):
        made.model()
    assert [each.path for each in caught.value.problem.faults] == ["/a", "/b"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Sun, 01 Nov 2026 00:00:07 GMT", 7),
        ("Sun, 01 Nov 2026 00:00:07 -0000", 7),
        ("Sat, 31 Oct 2026 23:00:00 GMT", 0),
        ("3", 3),
        ("-1", None),
        ("inf", None),
        ("soon", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text, seconds):
    error = error_of(429, text, b"{}", "Sun, 01 Nov 2026 00:00:00 GMT")
    assert isinstance(error, OverloadedError)
    assert error.problem.retry_after_s == seconds


def test_a_date_without_another_to_count_from_says_nothing():
    error = error_of(429, "Sun, 01 Nov 2026 00:00:07 GMT", b"{}")
    assert isinstance(error, OverloadedError)
    assert error.problem.retry_after_s is None


def test_a_date_to_come_back_at_is_waited_for():
    pauses: list[float] = []

    def handler(_: httpx.Request) -> httpx.Response:
        if pauses:
            return httpx.Response(200, json=MODEL)
        day = "Sun, 01 Nov 2026 00:00"
        headers = {"date": f"{day}:00 GMT", "retry-after": f"{day}:03 GMT"}
        return httpx.Response(429, headers=headers)

    transport = httpx.MockTransport(handler)
    with RancastClient(ADDRESS, transport=transport, sleep=pauses.append) as made:
        assert made.model().name == "m"
    assert pauses == [3]


def test_what_a_forecast_demands_goes_to_the_server():
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return problem(500)

    demands: dict[str, Any] = {"minimum_rung": "short", "priority": "batch", "model": "m@1"}
    with client(handler) as made:
        with pytest.raises(ServerFailedError):
            made.forecast([], 1, **demands)
        with pytest.raises(ServerFailedError):
            made.cell_forecast("a", **demands)
    assert demands.items() <= json.loads(seen[0].content).items()
    assert demands.items() <= dict(seen[1].url.params).items()


@pytest.mark.parametrize(
    ("error", "may_resend", "expected"),
    [
        (httpx.ReadError, False, 1),
        (httpx.ReadError, True, 5),
        (httpx.ConnectError, False, 5),
    ],
)
def test_observations_that_may_have_arrived_are_sent_again_only_if_allowed(
    error, may_resend, expected
):
    tries = 0

    def handler(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        raise error("broke", request=request)

    with client(handler) as made, pytest.raises(UnreachableError):
        made.observations([], may_resend=may_resend)
    assert tries == expected


def test_a_connection_that_breaks_is_tried_again():
    tries = 0

    def handler(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise httpx.ReadError("reset", request=request)
        return httpx.Response(200, json=MODEL)

    with client(handler) as made:
        assert made.model().name == "m"


def test_a_wait_that_httpx_ended_is_a_deadline_and_not_tried_again():
    tries = 0

    def handler(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        raise httpx.ReadTimeout("late", request=request)

    with client(handler) as made, pytest.raises(DeadlineExceededError):
        made.model()
    assert tries == 1


def test_an_answer_that_drips_ends_with_the_timeout():
    now_s = [0.0]

    class Dripping(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                now_s[0] += 0.4
                yield b" "

    made = RancastClient(
        Connection(ADDRESS, timeout_s=1),
        transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=Dripping())),
        monotonic_s=lambda: now_s[0],
    )
    with made, pytest.raises(DeadlineExceededError):
        made.model()
    assert now_s[0] < 2


def test_no_answer_at_all_is_unreachable():
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with client(handler, most_attempts=1) as made, pytest.raises(UnreachableError, match="refused"):
        made.model()


def test_a_series_is_written_with_null_where_nothing_is_known():
    sent = Series(
        "c",
        START,
        0.5,
        {"a": np.array([1.0, np.nan]), "b": [None, 2]},
        time_zone="UTC",
        country="ES",
        events=[Event(START, START, "match")],
    )
    assert json.loads(json.dumps(series_body(sent), allow_nan=False)) == {
        "cell": "c",
        "start": "2026-11-01T00:00:00+00:00",
        "step_seconds": 0.5,
        "kpis": {"a": [1.0, None], "b": [None, 2.0]},
        "time_zone": "UTC",
        "country": "ES",
        "events": [
            {
                "start": "2026-11-01T00:00:00+00:00",
                "end": "2026-11-01T00:00:00+00:00",
                "kind": "match",
            }
        ],
    }


@pytest.mark.parametrize("values", [[[1.0]], 1.0, [np.inf]])
def test_samples_that_are_none_are_refused_before_anything_is_sent(values):
    with pytest.raises(ValueError, match="expected finite samples of 'a'"):
        series_body(Series("c", START, 1, {"a": values}))


def test_a_date_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        Series("c", datetime(2026, 11, 1), 1, {"a": [1]})


def test_the_client_loads_nothing_of_the_server():
    script = "import service.client, sys; print(sorted(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(eval(shown.stdout))
    assert loaded.isdisjoint({"torch", "fastapi", "pydantic", "starlette", "kpi", "model"})
    ours = {name for name in loaded if name.startswith("service.")}
    assert all(name.startswith("service.client") for name in ours)
