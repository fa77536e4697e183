from contextlib import ExitStack

import pytest

from service.settings import Settings
from tests.service.live import live

ASK = b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n"


def status(connection):
    """Status of the next answer, None where the connection is closed instead."""
    try:
        answer = connection.recv(65536)
    except ConnectionResetError:
        return None
    return int(answer.split(b" ")[1]) if answer else None


def test_a_connection_too_many_is_closed_and_the_others_go_on():
    with live(Settings(max_connections=3)) as one, ExitStack() as stack:
        held = [stack.enter_context(one.connect()) for _ in range(3)]
        for connection in held:
            connection.sendall(ASK)
            assert status(connection) == 200
        extra = stack.enter_context(one.connect())
        assert status(extra) is None
        assert one.closed("full") == 1
        held[0].sendall(ASK)
        assert status(held[0]) == 200


def test_a_connection_that_never_says_a_word_is_closed():
    with live(Settings(head_seconds=1)) as one, one.connect() as silent:
        assert status(silent) is None
        assert one.closed("slow") == 1


def test_a_head_that_drips_is_cut_off_however_often_it_drips():
    with live(Settings(head_seconds=1)) as one, one.connect() as slow:
        slow.settimeout(0.05)
        slow.sendall(b"GET /readyz HTTP/1.1\r\n")
        closed = False
        for _ in range(400):
            try:
                slow.sendall(b"x: y\r\n")
                closed = slow.recv(1024) == b""
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                closed = True
            if closed:
                break
        assert closed
        assert one.closed("slow") == 1


def test_a_head_that_never_ends_is_refused_while_it_grows():
    with live(Settings(max_head_bytes=2048)) as one, one.connect() as endless:
        endless.sendall(b"GET /readyz HTTP/1.1\r\nx: ")
        answered = None
        for _ in range(64):
            try:
                endless.sendall(b"y" * 1024)
            except (BrokenPipeError, ConnectionResetError):
                break
        answered = status(endless)
        assert answered in (431, None)
        assert one.closed("head_too_large") == 1


def test_a_second_request_has_its_own_time():
    with live(Settings(head_seconds=1)) as one, one.connect() as connection:
        connection.sendall(ASK)
        assert status(connection) == 200
        connection.sendall(ASK[:10])
        assert status(connection) is None
        assert one.closed("slow") == 1


def test_a_body_larger_than_a_head_may_be_is_read():
    body = b'{"series": [' + b" " * 100_000
    head = b"POST /v1/forecast HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    with live(Settings(max_head_bytes=1024)) as one, one.connect() as connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert status(connection) == 400
        assert one.closed("head_too_large") == 0


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)])
def test_only_a_trusted_proxy_names_the_client(proxies, caplog):
    from service.access_log import LOGGER_NAME

    ask = b"GET /v1/model HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.7\r\n\r\n"
    with (
        caplog.at_level("INFO", LOGGER_NAME),
        live(Settings(trusted_proxies=proxies)) as one,
        one.connect() as connection,
    ):
        connection.sendall(ask)
        assert status(connection) == 200
    (line,) = [r.message for r in caplog.records if r.name == LOGGER_NAME]
    assert ('"client":"192.0.2.7"' in line) == bool(proxies)
