import contextlib
import socket
import ssl
import threading
from contextlib import ExitStack

import pytest
import uvicorn

from service.handshakes import Handshakes
from service.settings import Settings
from tests.service.certificates import Authority
from tests.service.live import live
from tests.service.test_connections import ASK, status
from tests.service.test_held_connections import is_closed, wait_until_closed


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def files(authority):
    pair = authority.issue("server")
    return {"tls_certificate": pair.certificate, "tls_key": pair.key}


@pytest.fixture(params=["asyncio", "uvloop"], autouse=True)
def loop(request, monkeypatch):
    """Both event loops that the server may find itself on."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop", reason="an optional part of the server")
    kept = uvicorn.Config
    monkeypatch.setattr(
        uvicorn,
        "Config",
        lambda *args, **options: kept(*args, **{**options, "loop": request.param}),
    )


@pytest.fixture
def context(authority):
    return ssl.create_default_context(cafile=authority.certificate)


def secure(one, context):
    plain = socket.create_connection(("127.0.0.1", one.port), timeout=30)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_connection_that_begins_no_handshake_is_closed(files):
    with live(Settings(head_seconds=1, **files)) as one, one.connect() as silent:
        assert is_closed(silent)
        wait_until_closed(one, "slow")


def test_connections_count_before_their_handshake(files, context):
    with live(Settings(max_connections=3, **files)) as one, ExitStack() as stack:
        first = stack.enter_context(secure(one, context))
        first.sendall(ASK)
        assert status(first) == 200
        for _ in range(2):
            stack.enter_context(one.connect())
        assert is_closed(stack.enter_context(one.connect()))
        assert one.closed("full") == 1
        first.sendall(ASK)
        assert status(first) == 200


def test_who_leaves_in_the_middle_of_a_handshake_makes_room(files, context):
    with live(Settings(max_connections=1, **files)) as one:
        for word in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"):
            with one.connect() as rude:
                rude.sendall(word)
        for _ in range(1000):
            try:
                with secure(one, context) as polite:
                    polite.sendall(ASK)
                    assert status(polite) == 200
                    break
            except OSError:  # still full: the server has not yet seen that the others left
                continue
        else:
            pytest.fail("the room of the others is lost")


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(files, context):
    """The client's last words of the handshake and its first request in one piece."""
    with live(Settings(**files)) as one, one.connect() as plain:
        read, write = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(read, write, server_hostname="127.0.0.1")
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(write.read())
                read.write(plain.recv(65536))
        session.write(ASK)
        plain.sendall(write.read())
        answer = b""
        while b"ready" not in answer:
            read.write(plain.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                while True:
                    answer += session.read(65536)
        assert answer.startswith(b"HTTP/1.1 200")


def test_the_end_of_the_server_waits_for_no_handshake(monkeypatch, files):
    begun = threading.Event()
    kept = Handshakes._shake_hands

    async def shake_hands(*arguments):
        begun.set()
        await kept(*arguments)

    monkeypatch.setattr(Handshakes, "_shake_hands", shake_hands)
    with live(Settings(drain_seconds=60, head_seconds=60, **files)) as one:
        silent = one.connect()
        assert begun.wait(30)
    # `live` waits for the end of the server for less than the 60 s.
    with silent:
        assert is_closed(silent)
