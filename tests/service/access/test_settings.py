import pytest

from service.errors import SettingsError
from service.settings import Settings, load_settings


def test_paths_and_proxies_are_separated_by_commas(monkeypatch):
    monkeypatch.setenv("RANCAST_OPEN_PATHS", "/healthz, /ric/v1/*,")
    monkeypatch.setenv("RANCAST_TRUSTED_PROXIES", "10.0.0.0/8,192.0.2.1")
    settings = load_settings()
    assert settings.open_paths == ("/healthz", "/ric/v1/*")
    assert settings.trusted_proxies == ("10.0.0.0/8", "192.0.2.1")


def test_open_paths_set_to_nothing_close_them_all(monkeypatch):
    monkeypatch.setenv("RANCAST_OPEN_PATHS", "")
    assert load_settings().open_paths == ()


def test_a_pattern_that_opens_something_else_is_refused(monkeypatch):
    monkeypatch.setenv("RANCAST_OPEN_PATHS", "healthz")
    with pytest.raises(SettingsError, match=r"RANCAST_OPEN_PATHS=healthz: .*got 'healthz'"):
        load_settings()


@pytest.mark.parametrize("name", ["RANCAST_TLS_KEY", "RANCAST_TLS_CLIENT_CA"])
def test_a_key_or_a_client_ca_without_certificate_is_refused(monkeypatch, name):
    monkeypatch.setenv(name, "some.pem")
    with pytest.raises(SettingsError, match="need RANCAST_TLS_CERTIFICATE"):
        load_settings()


@pytest.mark.parametrize(
    ("per_second", "burst", "expected"), [(0.1, None, 1), (2.5, None, 3), (2.5, 40, 40)]
)
def test_a_burst_is_what_a_second_allows_unless_it_is_named(per_second, burst, expected):
    settings = Settings(rate_limit_per_second=per_second, rate_limit_burst=burst)
    assert settings.burst() == expected
