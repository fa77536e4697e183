"""Connections that nobody needs any more do not stay: however they are kept busy, or unread."""

import asyncio
import socket

import pytest

from service.connections import MOST_PIPELINED, GuardedProtocol
from service.settings import Settings
from tests.service.live import live
from tests.service.test_connections import ASK, status

LARGE = b"x" * (8 << 20)


def is_closed(connection):
    """Whether the server closes the connection; waits for it."""
    try:
        return connection.recv(65536) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    ("ask", "framing"),
    [
        (b"GET /healthz", b"content-length: 1000"),
        (b"POST /v1/nothing", b"transfer-encoding: chunked"),
        (b"POST /v1/forecast", b"content-length: 1000"),
    ],
)
def test_a_request_that_is_answered_before_it_is_whole_must_become_whole_in_time(ask, framing):
    with live(Settings(head_seconds=1)) as one, one.connect() as half:
        half.sendall(ask + b" HTTP/1.1\r\nhost: x\r\n" + framing + b"\r\n\r\n")
        assert status(half) in (200, 404, 415)
        half.sendall(b"1")
        assert is_closed(half)
        assert one.closed("slow") == 1


def test_a_request_that_becomes_whole_after_its_answer_leaves_a_connection_that_goes_on():
    with live(Settings(head_seconds=1, keep_alive_seconds=2)) as one, one.connect() as late:
        late.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n")
        assert status(late) == 200
        late.sendall(b"abc")
        late.sendall(ASK)
        assert status(late) == 200
        # Nothing is owed any more: it is the idle timer that ends it.
        assert is_closed(late)
        assert one.closed("slow") == 0


def test_empty_lines_keep_no_connection():
    with live(Settings(keep_alive_seconds=1)) as one, one.connect() as busy:
        busy.sendall(ASK)
        assert status(busy) == 200
        busy.settimeout(0.05)
        closed = False
        for _ in range(600):
            try:
                busy.sendall(b"\r\n")
                closed = busy.recv(1024) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                closed = True
            if closed:
                break
        assert closed


async def _large(scope, _receive, send):
    """An application whose every answer is more than the sockets hold."""
    headers = [(b"content-length", b"%d" % len(LARGE))]
    if b"close" in scope["query_string"]:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": LARGE})


@pytest.fixture
def large_answers(monkeypatch):
    kept = GuardedProtocol.connection_made

    def made(self, transport):
        self.app = _large
        kept(self, transport)

    monkeypatch.setattr(GuardedProtocol, "connection_made", made)


def deaf(one):
    """A connection that takes next to nothing before it is read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", one.port))
    return connection


def wait_until_closed(one, reason):
    """Wait until the server closed a connection for this reason."""

    async def poll():
        async with asyncio.timeout(30):
            while not one.closed(reason):
                await asyncio.sleep(0.01)

    one.run(poll())


@pytest.mark.parametrize("target", [b"/", b"/?close"])
@pytest.mark.usefixtures("large_answers")
def test_a_client_that_reads_no_answer_is_cut_off(target):
    with live(Settings(answer_seconds=0.3)) as one, deaf(one) as silent:
        silent.sendall(b"GET " + target + b" HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_until_closed(one, "unread")


@pytest.mark.usefixtures("large_answers")
def test_a_client_that_reads_its_answers_is_not_cut_off():
    with live(Settings(answer_seconds=20)) as one, one.connect() as reader:
        for _ in range(2):
            reader.sendall(ASK)
            assert status(reader) == 200
        assert one.closed("unread") == 0


def test_a_client_that_asks_and_asks_and_never_reads_is_cut_off():
    with live(Settings(answer_seconds=0.3, access_log=False)) as one, deaf(one) as silent:
        silent.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * MOST_PIPELINED)
        wait_until_closed(one, "unread")


def test_an_answer_to_a_client_that_has_left_waits_for_nobody(monkeypatch):
    made = []
    kept = GuardedProtocol.connection_made

    def note(self, transport):
        made.append(self)
        kept(self, transport)

    monkeypatch.setattr(GuardedProtocol, "connection_made", note)

    async def complete():
        (protocol,) = made
        async with asyncio.timeout(30):
            while protocol in protocol.connections:
                await asyncio.sleep(0.001)
        # As of a request that waited for its turn when the connection was lost.
        protocol.on_response_complete()
        return protocol._answer_timer

    with live() as one:
        with one.connect() as leaving:
            leaving.sendall(ASK)
            assert status(leaving) == 200
        assert one.run(complete()) is None


def test_no_request_of_a_connection_that_is_lost_goes_on(monkeypatch):
    made, heard = [], []

    async def waiting(_scope, receive, _send):
        await receive()
        heard.append((await receive())["type"])

    kept = GuardedProtocol.connection_made

    def note(self, transport):
        self.app = waiting
        made.append(self)
        kept(self, transport)

    monkeypatch.setattr(GuardedProtocol, "connection_made", note)

    async def lose():
        async with asyncio.timeout(30):
            while not (made and made[0].pipeline):
                await asyncio.sleep(0.001)
            made[0].transport.abort()
            while made[0].tasks:
                await asyncio.sleep(0.001)
        return len(made[0].pipeline)

    with live() as one, one.connect() as leaving:
        leaving.sendall(ASK * 3)
        assert one.run(lose()) == 0
    # The first alone had begun, and is told that its client has left.
    assert heard == ["http.disconnect"]
