"""The health check of the image, against the real server and against what is none."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from service.container import Phase
from service.healthcheck import Endpoint, check, main
from service.settings import PREFIX, Settings
from tests.service.certificates import Authority
from tests.service.live import live


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def files(authority):
    pair = authority.issue("server")
    return {"tls_certificate": pair.certificate, "tls_key": pair.key}


def environment(port, settings):
    said = {f"{PREFIX}{name.upper()}": str(value) for name, value in settings.items()}
    return {f"{PREFIX}PORT": str(port), **said}


@contextmanager
def silent():
    """A port that takes connections and says nothing, as that of a process that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_service_that_lives_is_healthy():
    with live() as one:
        check(Endpoint.of(environment(one.port, {})))


def test_a_service_that_speaks_tls_is_asked_over_tls(files):
    with live(Settings(**files)) as one:
        check(Endpoint.of(environment(one.port, files)))
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            check(Endpoint("127.0.0.1", one.port))


def test_a_service_that_demands_certificates_is_healthy_without_one(authority, files):
    settings = {**files, "tls_client_ca": authority.certificate}
    with live(Settings(**settings)) as one:
        check(Endpoint.of(environment(one.port, settings)))


@pytest.mark.parametrize("tls", [False, True])
def test_a_service_that_only_a_restart_helps_is_not_healthy(files, tls):
    settings = files if tls else {}
    with live(Settings(**settings)) as one:
        one.services.move_to(Phase.FAILED, "broken")
        with pytest.raises(RuntimeError, match=r"expected 200 of /healthz, got 503.*broken"):
            check(Endpoint.of(environment(one.port, settings)))


@pytest.mark.parametrize(
    ("has_tls", "demands_certificate"), [(False, False), (True, False), (True, True)]
)
def test_a_process_that_hangs_is_not_healthy(has_tls, demands_certificate):
    with silent() as port, pytest.raises(TimeoutError):
        check(Endpoint("127.0.0.1", port, has_tls, demands_certificate), timeout_s=0.05)


@pytest.mark.parametrize("demands_certificate", [False, True])
def test_a_service_without_the_tls_that_it_should_have_is_not_healthy(demands_certificate):
    with live() as one, pytest.raises((ssl.SSLError, ConnectionError)):
        check(Endpoint("127.0.0.1", one.port, True, demands_certificate))


def test_what_speaks_no_http_is_not_healthy(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"220 smtp\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv(f"{PREFIX}PORT", str(listener.getsockname()[1]))
        assert main() == 1
        thread.join(30)
    assert "220 smtp" in capsys.readouterr().err


def test_where_nothing_listens_it_exits_with_1_and_says_why(monkeypatch, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(f"{PREFIX}PORT", str(taken.getsockname()[1]))
        assert main() == 1
    assert "refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, Endpoint()),
        ({"RANCAST_HOST": "0.0.0.0", "RANCAST_PORT": "9"}, Endpoint("127.0.0.1", 9)),
        ({"RANCAST_HOST": "::"}, Endpoint("::1")),
        ({"RANCAST_HOST": "10.0.0.1"}, Endpoint("10.0.0.1")),
        ({"rancast_port": "9"}, Endpoint(port=9)),
        ({"RANCAST_TLS_CERTIFICATE": "a", "RANCAST_TLS_CLIENT_CA": ""}, Endpoint(has_tls=True)),
    ],
)
def test_it_reads_the_variables_as_the_settings_do(said, expected):
    assert Endpoint.of(said) == expected


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_a_port_that_cannot_be_called_is_named(port):
    with pytest.raises(ValueError, match="expected a port of 1 to 65535 in RANCAST_PORT"):
        Endpoint.of({"RANCAST_PORT": port})


def test_its_variables_and_defaults_are_those_of_the_settings():
    fields = Settings.model_fields
    assert {"host", "port", "tls_certificate", "tls_client_ca"} <= fields.keys()
    assert (fields["host"].default, fields["port"].default) == (Endpoint.host, Endpoint.port)
    assert PREFIX == "RANCAST_"


def test_it_imports_nothing_that_takes_long():
    program = "import service.healthcheck, sys; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"pydantic", "numpy", "fastapi", "torch"} & set(told.stdout.split())
