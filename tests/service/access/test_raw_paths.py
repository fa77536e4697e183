"""Paths as bytes on a socket: clients tidy them up before they send them, attackers do not."""

import socket

import pytest

from service.access.scopes import DEMANDS, GRANTABLE, Scope
from service.access.settings import PLATFORM_PATHS
from service.settings import Settings
from tests.service.live import live

SECRETS = {scope.value: f"0123456789abcdef-{scope.value}" for scope in GRANTABLE}


@pytest.fixture
def locked(tmp_path):
    path = tmp_path / "tokens"
    lines = [f"{scope}er {scope} {secret}" for scope, secret in SECRETS.items()]
    path.write_text("\n".join(lines))
    with live(Settings(token_file=path, access_log=False)) as one:
        yield one


def ask(one, method, target, scope=None):
    """Status of the answer to these very bytes."""
    head = f"{method} {target} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n"
    if scope is not None:
        head += f"authorization: Bearer {SECRETS[scope]}\r\n"
    with socket.create_connection(("127.0.0.1", one.port), timeout=30) as connection:
        connection.sendall(head.encode() + b"\r\n")
        return int(connection.recv(65536).split(b" ")[1])


def lesser(scope):
    """Tokens that must not do what demands this scope."""
    return [one for one in SECRETS if one not in (scope.value, "admin")]


def filled(template):
    for name, value in (("cell", "a"), ("model", "fake"), ("version", "1.2.3"), ("name", "a.css")):
        template = template.replace(f"{{{name}}}", value)
    return template


def test_a_line_break_behind_a_path_opens_no_route(locked):
    for (method, template), scope in DEMANDS.items():
        if scope is Scope.NONE or template in PLATFORM_PATHS:
            continue
        path = filled(template)
        # What is under /v1/cells/ is routed as it was sent, so that it names another cell there.
        is_cell = path.startswith("/v1/cells/")
        for ending in ("%0A", "%0a"):
            assert ask(locked, method, path + ending) == 401, path
            for one in lesser(scope):
                status = ask(locked, method, path + ending, one)
                assert status == 403 or (is_cell and status == 404), (path, one)
            assert ask(locked, method, path + ending, "admin") == 404, path


def test_no_path_with_a_control_character_comes_to_a_route(locked):
    for target in ("/healthz%0A", "/metrics%0a", "/ric/v1/config%00", "/v2/models/fake%7F", "/%0D"):
        assert ask(locked, "GET", target, "admin") == 404, target


@pytest.mark.parametrize(
    "target",
    [
        "//v1/observations",
        "/v1//observations",
        "/v1/observations/",
        "/v1/./observations",
        "/healthz/../v1/observations",
        "/dme/%2e%2e/v1/observations",
        "/v1/%6fbservations%2f",
        "/v1/observations%3F",
        "/v1/observations;/dme/",
        "/V1/observations",
    ],
)
def test_a_path_written_otherwise_opens_nothing(locked, target):
    for scope in (None, "read"):
        # Under an open beginning nobody asks for a token, and there is no route either.
        assert ask(locked, "POST", target, scope) in (401, 404)
    assert ask(locked, "POST", target, "write") == 404


def test_a_path_whose_letters_are_escaped_is_the_same_path(locked):
    assert ask(locked, "POST", "/v1/%6fbservations") == 401
    assert ask(locked, "POST", "/v1/%6fbservations", "read") == 403
    assert ask(locked, "GET", "http://other/v1/model", "write") == 403
