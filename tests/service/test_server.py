import signal
import socket
import sys

import pytest

from service import __main__ as entry
from service import server
from service.container import Phase
from service.errors import StartupError
from service.server import serve
from service.settings import Settings
from tests.service.fakes import RepeatLast


@pytest.fixture(autouse=True)
def logging_stays_as_it_was(monkeypatch):
    monkeypatch.setattr(server, "configure_logging", lambda _: None)
    monkeypatch.setattr(server, "configure_access_log", lambda _: None)


def test_a_port_in_use_is_one_clear_line_and_exit_code_2(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert serve(Settings(port=port), predictor=RepeatLast()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"port {port}" in line
    assert "in use" in line


def test_a_host_that_is_not_ours_is_one_clear_line_and_exit_code_2(capsys):
    settings = Settings(host="192.0.2.1", port=0, open_access=True)
    assert serve(settings, predictor=RepeatLast()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "192.0.2.1" in line


def test_a_host_that_is_no_host_is_one_clear_line_and_exit_code_2(capsys):
    assert serve(Settings(host="256.1.1.1.", port=0), predictor=RepeatLast()) == 2
    assert "cannot listen on host" in capsys.readouterr().err


def test_a_host_that_anyone_may_reach_needs_a_lock_or_the_word_of_the_operator(capsys):
    assert serve(Settings(host="0.0.0.0", port=0), predictor=RepeatLast()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "everyone who reaches 0.0.0.0" in line
    for mend in ("RANCAST_TOKEN_FILE", "RANCAST_TLS_CLIENT_CA", "RANCAST_OPEN_ACCESS=true"):
        assert mend in line


def test_a_token_file_that_cannot_be_used_ends_the_process_with_2(tmp_path, capsys):
    path = tmp_path / "tokens"
    path.write_text("dashboard read hunter2\n")
    assert serve(Settings(port=0, token_file=path), predictor=RepeatLast()) == 2
    shown = capsys.readouterr().err
    assert f"line 1 of the token file {path}" in shown
    assert "RANCAST_TOKEN_FILE" in shown
    assert "hunter2" not in shown


def test_a_certificate_that_is_missing_ends_the_process_with_2(tmp_path, capsys):
    settings = Settings(port=0, tls_certificate=tmp_path / "none.pem")
    assert serve(settings, predictor=RepeatLast()) == 2
    assert "none.pem (RANCAST_TLS_CERTIFICATE)" in capsys.readouterr().err


def test_a_start_that_fails_ends_the_process_with_1(tmp_path, capsys):
    missing = tmp_path / "missing.safetensors"
    assert serve(Settings(port=0, model_path=missing)) == 1
    assert "missing.safetensors" in capsys.readouterr().err


def test_a_catalogue_that_cannot_be_used_ends_the_process_with_2(tmp_path, capsys):
    settings = Settings(port=0, catalogue_files=(tmp_path / "none.toml",))
    assert serve(settings, predictor=RepeatLast()) == 2
    assert "none.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("family", "host", "shown"),
    [(socket.AF_INET, "127.0.0.1", "http://127.0.0.1:"), (socket.AF_INET6, "::1", "http://[::1]:")],
)
def test_the_address_is_shown_as_it_can_be_opened(family, host, shown):
    try:
        listener = server._listen(Settings(host=host, port=0))
    except StartupError:
        pytest.skip(f"this machine has no address {host}")
    with listener:
        assert listener.family is family
        assert server._address(listener).startswith(shown)
        secure = shown.replace("http:", "https:")
        assert server._address(listener, secure=True).startswith(secure)


def test_the_first_signal_drains_and_the_second_ends_at_once():
    import uvicorn

    from service.app import create_app

    app = create_app(Settings(), predictor=RepeatLast())
    made = server._Server(uvicorn.Config(app, log_config=None), app.state.services)
    made.handle_exit(signal.SIGTERM, None)
    assert made.should_exit
    assert not made.force_exit
    assert app.state.services.phase is Phase.DRAINING
    assert "SIGTERM" in app.state.services.reason
    made.handle_exit(signal.SIGINT, None)
    assert made.force_exit


def test_the_module_runs_with_the_settings_of_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("RANCAST_PORT", "high")
    assert entry.main() == 2
    assert "RANCAST_PORT=high" in capsys.readouterr().err
    monkeypatch.setenv("RANCAST_PORT", "1234")
    monkeypatch.setattr(entry, "serve", lambda settings: settings.port)
    assert entry.main() == 1234


def test_importing_the_service_loads_no_model():
    import subprocess

    script = "import service.app, service.server, sys; print('torch' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.strip() == "False"
