"""Every body that a route reads is answered, or refused in the route's own shape; never by 500."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.settings import Settings
from tests.service.fakes import RepeatLast, serving
from tests.service.fuzzing.bodies import TARGETS, Target
from tests.service.fuzzing.effort import effort
from tests.service.fuzzing.mutations import BINARY_WORDS, JSON_WORDS, damaged, exchanged

Post = Callable[[Target, bytes], httpx.Response]

SETTINGS = Settings(profile="non-rt", max_body_bytes=1 << 20, max_cells=50, access_log=False)


class Answering(RepeatLast):
    """Remembers nothing of what it was asked, however much that was."""

    def predict(self, windows, horizon, levels):
        try:
            return super().predict(windows, horizon, levels)
        finally:
            self.forget_warm_up()


@pytest.fixture(scope="module")
def post() -> Iterator[Post]:
    """Sends a body to the application, in process."""
    with asyncio.Runner() as runner:
        context = serving(SETTINGS, predictor=Answering())
        client = runner.run(context.__aenter__())

        def send(target: Target, body: bytes) -> httpx.Response:
            sent = client.http.post(target.path, content=body, headers=dict(target.headers))
            return runner.run(sent)

        try:
            yield send
        finally:
            assert client.services.room.taken_bytes == 0
            runner.run(context.__aexit__(None, None, None))


def mutants(target: Target) -> st.SearchStrategy[bytes]:
    if target.is_binary:
        return damaged(target.bodies, BINARY_WORDS)
    return damaged(target.bodies, JSON_WORDS) | exchanged(target.trees)


def check(answer: httpx.Response) -> None:
    """Whether an answer is one that the route promises for a body that anyone may have sent."""
    assert answer.status_code in (200, 400, 404, 413, 422, 429), answer.text
    if answer.status_code == 200:
        return
    said = answer.json()
    if answer.headers["content-type"] == "application/problem+json":
        assert {"type", "title", "status", "detail"} <= said.keys()
    else:
        assert list(said) == ["error"]
    assert len(answer.content) < 100_000


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_good_bodies_are_answered(post: Post, target: Target) -> None:
    for body in target.bodies:
        answer = post(target, body)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@effort()
@given(data=st.data())
def test_any_body_is_answered_or_refused(post: Post, target: Target, data: st.DataObject) -> None:
    body = data.draw(mutants(target))
    check(post(target, body))


def test_a_500_would_be_seen() -> None:
    for status, said in ((500, {"error": "x"}), (400, {"detail": "x"})):
        with pytest.raises(AssertionError):
            check(httpx.Response(status, json=said))
