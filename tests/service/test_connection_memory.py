"""What one connection can make the server keep, measured at the connection's own protocol."""

import asyncio

import pytest

from service.connections import MOST_PIPELINED, GuardedProtocol
from service.settings import Settings
from tests.service.live import live
from tests.service.test_connections import ASK, status

CHUNKED = b"GET /readyz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def protocols(monkeypatch):
    """Those of the connections that were made."""
    made = []
    kept = GuardedProtocol.connection_made

    def note(self, transport):
        made.append(self)
        kept(self, transport)

    monkeypatch.setattr(GuardedProtocol, "connection_made", note)
    return made


def pour(connection, piece, pieces):
    """Send until the server has had enough of it; whether that came."""
    for _ in range(pieces):
        try:
            connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return True
    return False


@pytest.mark.parametrize(
    "piece", [b"x: " + b"y" * 1000 + b"\r\n", b"y" * 1000, b"a:b\r\n" * 200], ids=len
)
def test_trailers_are_not_kept_and_end_the_connection_where_they_do_not_end(protocols, piece):
    with live(Settings(max_head_bytes=2048)) as one, one.connect() as endless:
        endless.sendall(CHUNKED)
        assert status(endless) == 200
        endless.sendall(b"0\r\nx: ")
        assert pour(endless, piece, 50_000)
        assert one.closed("head_too_large") == 1
    (protocol,) = protocols
    assert protocol.headers == [(b"host", b"x"), (b"transfer-encoding", b"chunked")]


def test_a_size_of_a_chunk_that_never_ends_is_too_large_as_well():
    with live(Settings(max_head_bytes=2048)) as one, one.connect() as endless:
        endless.sendall(CHUNKED + b"1;")
        assert pour(endless, b"x" * 1000, 50_000)
        assert one.closed("head_too_large") == 1


def test_a_chunked_body_with_a_few_trailers_is_read_and_the_connection_goes_on():
    with live(Settings(max_head_bytes=2048)) as one, one.connect() as connection:
        for _ in range(2):
            connection.sendall(CHUNKED + b"1\r\na\r\n" * 5000 + b"0\r\nx: y\r\n\r\n")
            assert status(connection) == 200
        assert one.closed("head_too_large") == 0


async def _parsed(protocol, data):
    """Have the protocol parse one piece, as large as no socket would give it on its own."""
    protocol.data_received(data)
    return len(protocol.headers), sum(len(n) + len(v) for n, v in protocol.headers)


@pytest.mark.parametrize("header", [b"a:b\r\n", b"a:" + b"b" * 500 + b"\r\n"], ids=len)
def test_headers_that_no_request_may_have_are_not_kept_even_of_one_piece(protocols, header):
    with live(Settings(max_head_bytes=4096, max_headers=20)) as one, one.connect() as large:
        large.sendall(ASK)
        assert status(large) == 200
        data = b"GET /readyz HTTP/1.1\r\n" + header * (256 * 1024 // len(header))
        number, size = one.run(_parsed(protocols[0], data))
        assert number <= 21
        assert size <= 2 * 4096 + len(header)
        large.sendall(b"\r\n")
        assert status(large) == 431


def test_requests_that_wait_for_their_turn_on_one_connection_are_bounded(protocols):
    async def held(*_):
        await asyncio.Event().wait()

    with live() as one, one.connect() as eager:
        eager.sendall(ASK)
        assert status(eager) == 200
        protocols[0].app = held

        async def flood():
            protocols[0].data_received(ASK * 5000)
            return len(protocols[0].pipeline), protocols[0].transport.is_closing()

        assert one.run(flood()) == (MOST_PIPELINED, True)
        assert one.closed("pipelined") == 1
        for task in list(protocols[0].tasks):
            one.loop.call_soon_threadsafe(task.cancel)


def test_requests_that_come_together_are_answered_one_after_the_other():
    with live() as one, one.connect() as eager:
        eager.sendall(ASK * MOST_PIPELINED)
        answers = b""
        while answers.count(b"HTTP/1.1 200") < MOST_PIPELINED:
            piece = eager.recv(65536)
            assert piece
            answers += piece
