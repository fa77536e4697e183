"""The lean client reads what servers write, however it comes."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.serving.http_client import (
    LOST,
    Connection,
    ProtocolError,
    Reply,
    build_request,
    connect,
)
from tests.benchmarks.serving.small_server import Small, response, small_server


def ask(port: int, *requests: bytes) -> list[Reply]:
    """Send one after the other on one connection, as long as it stays open."""

    async def run() -> list[Reply]:
        connection, replies = await connect(port), []
        for request in requests:
            done: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            connection.send(request, lambda _, reply, done=done: done.set_result(reply))  # type: ignore[misc]
            replies.append(await done)
        connection.close()
        return replies

    return asyncio.run(run())


def test_requests_have_their_length_and_headers() -> None:
    request = build_request("/v1/forecast", b"abc", X_Latency_Budget_Ms="100")
    head, body = request.split(b"\r\n\r\n")
    assert body == b"abc"
    lines = head.decode().splitlines()
    assert lines[0] == "POST /v1/forecast HTTP/1.1"
    assert {"Content-Length: 3", "X-Latency-Budget-Ms: 100", "Host: 127.0.0.1"} <= {*lines}


def test_a_request_without_a_body_announces_none() -> None:
    assert b"Content-" not in build_request("/healthz", method="GET")


def test_several_requests_share_a_connection() -> None:
    async def answer(small: Small, _: bytes, body: bytes) -> bytes:
        return response(body, 200 + len(small.heads))

    with small_server(answer) as small:
        replies = ask(small.port, *(build_request("/", body) for body in (b"a", b"bb", b"ccc")))
    assert [(reply.status, reply.body) for reply in replies] == [
        (201, b"a"),
        (202, b"bb"),
        (203, b"ccc"),
    ]
    assert small.connections == 1
    assert all(reply.done_s >= reply.sent_s for reply in replies)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("written", "body"),
    [
        (response(b"abcdef"), b"abcdef"),
        (response(b""), b""),
        (response(b"x", 200, "X-A: content-length: 9"), b"x"),
        (b"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok", b"ok"),
        (CHUNKED, b"3\r\nabc\r\n0\r\n\r\n"),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_an_answer_is_whole_only_when_its_last_byte_is_there(
    written: bytes, body: bytes, step: int
) -> None:
    replies: list[Reply] = []
    connection = Connection()
    connection.connection_made(FakeTransport())
    connection.send(b"", lambda _, reply: replies.append(reply))
    pieces = [written[at : at + step] for at in range(0, len(written), step)]
    for piece in pieces:
        assert replies == []
        connection.data_received(piece)
    assert [(reply.status, reply.body) for reply in replies] == [(200, body)]


class FakeTransport(asyncio.Transport):
    """Takes all that is written."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


def test_a_connection_that_breaks_loses_its_answer() -> None:
    async def answer(_: Small, __: bytes, ___: bytes) -> None:
        return None

    with small_server(answer) as small:
        (reply,) = ask(small.port, build_request("/"))
    assert reply.status == LOST


def test_a_server_that_closes_after_its_answer_is_believed() -> None:
    async def answer(_: Small, __: bytes, ___: bytes) -> bytes:
        return response(b"bye", 200, "Connection: close")

    with small_server(answer) as small:
        first, second = ask(small.port, build_request("/"), build_request("/"))
    assert (first.status, first.body) == (200, b"bye")
    assert second.status == LOST


def test_an_answer_of_unknown_length_is_no_answer() -> None:
    connection = Connection()
    connection.connection_made(FakeTransport())
    connection.send(b"", lambda *_: None)
    with pytest.raises(ProtocolError, match="length is known"):
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")


def test_a_second_request_waits_for_the_first_answer() -> None:
    connection = Connection()
    connection.connection_made(FakeTransport())
    connection.send(b"", lambda *_: None)
    with pytest.raises(ProtocolError, match="before the next"):
        connection.send(b"", lambda *_: None)
