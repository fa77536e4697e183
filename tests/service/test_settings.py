from pathlib import Path

import pytest

from service.budget import Profile
from service.errors import SettingsError
from service.settings import Settings, load_settings


def test_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANCAST_PORT", "9000")
    monkeypatch.setenv("RANCAST_PROFILE", "non-rt")
    settings = load_settings()
    assert settings.port == 9000
    assert settings.profile is Profile.NON_RT
    assert settings.budget_bounds().default_ms == 5000


def test_an_option_of_the_command_line_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("RANCAST_PORT", "9000")
    assert load_settings(port=9001).port == 9001


def test_settings_cannot_be_changed_once_made():
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


def test_catalogue_files_are_separated_by_commas(monkeypatch):
    monkeypatch.setenv("RANCAST_CATALOGUE_FILES", "a.toml, b.toml,")
    assert load_settings().catalogue_files == (Path("a.toml"), Path("b.toml"))


def test_catalogue_files_can_be_given_as_paths():
    assert load_settings(catalogue_files=(Path("a.toml"),)).catalogue_files == (Path("a.toml"),)


def test_kpis_of_files_are_separated_by_commas(monkeypatch):
    monkeypatch.setenv("RANCAST_INGEST_KPIS", "RRU.PrbTotDl,DRB.MeanActiveUeDl")
    assert load_settings().ingest_kpis == ("RRU.PrbTotDl", "DRB.MeanActiveUeDl")


@pytest.mark.parametrize(
    "name", [n for n, f in Settings.model_fields.items() if f.default is None or f.default == ()]
)
def test_a_variable_set_to_nothing_is_as_if_unset(monkeypatch, name):
    monkeypatch.setenv(f"RANCAST_{name.upper()}", "")
    assert load_settings() == Settings()


def test_a_country_whose_holidays_are_known_is_taken(monkeypatch):
    monkeypatch.setenv("RANCAST_HOLIDAY_COUNTRY", "ES-CT")
    assert load_settings().holiday_country == "ES-CT"


def test_a_country_that_nobody_knows_is_refused_with_what_was_expected(monkeypatch):
    monkeypatch.setenv("RANCAST_HOLIDAY_COUNTRY", "Spain")
    with pytest.raises(SettingsError, match=r"HOLIDAY_COUNTRY=Spain: .*such as ES or ES-CT"):
        load_settings()


def test_what_a_shell_says_to_training_jobs_is_let_pass(monkeypatch):
    for name in ("RANCAST_IMAGE", "RANCAST_JOB_BACKEND", "RANCAST_JOBS_DIR"):
        monkeypatch.setenv(name, "said")
    load_settings()


def test_a_misspelt_variable_is_named_with_the_right_one(monkeypatch):
    monkeypatch.setenv("RANCAST_JOURNAL_PAHT", "/x")
    with pytest.raises(SettingsError, match="did you mean RANCAST_JOURNAL_PATH"):
        load_settings()


@pytest.mark.parametrize("name", ["rancast_open_access", "Rancast_Open_Access"])
def test_a_setting_in_small_letters_is_refused_as_it_could_overrule_the_other(monkeypatch, name):
    monkeypatch.setenv("RANCAST_OPEN_ACCESS", "false")
    monkeypatch.setenv(name, "true")
    with pytest.raises(SettingsError, match=f"{name} is no .* did you mean RANCAST_OPEN_ACCESS"):
        load_settings()


def test_a_variable_like_no_setting_is_to_be_unset(monkeypatch):
    monkeypatch.setenv("RANCAST_ZZZZZZ", "1")
    with pytest.raises(SettingsError, match="RANCAST_ZZZZZZ is no setting; unset it"):
        load_settings()


def test_every_bad_value_is_named_with_what_was_expected(monkeypatch):
    monkeypatch.setenv("RANCAST_PORT", "99999")
    monkeypatch.setenv("RANCAST_TIME_ZONE", "Mars/Olympus")
    with pytest.raises(SettingsError) as caught:
        load_settings(threads=0)
    message = str(caught.value)
    assert "RANCAST_PORT=99999" in message
    assert "65535" in message
    assert "RANCAST_TIME_ZONE=Mars/Olympus" in message
    assert "Europe/Madrid" in message
    assert "threads=0" in message


def test_a_default_budget_over_the_largest_is_refused(monkeypatch):
    monkeypatch.setenv("RANCAST_BUDGET_MOST_MS", "50")
    with pytest.raises(SettingsError, match="least <= default <= most"):
        load_settings()


def test_a_default_budget_over_the_profiles_largest_raises_the_largest():
    bounds = load_settings(budget_default_ms=120_000).budget_bounds()
    assert bounds.default_ms == bounds.most_ms == 120_000


def test_the_variables_that_kubernetes_sets_for_a_service_of_our_name_are_let_pass(monkeypatch):
    for name, value in {
        "RANCAST_PORT": "tcp://10.0.0.7:8080",
        "RANCAST_SERVICE_HOST": "10.0.0.7",
        "RANCAST_SERVICE_PORT": "8080",
        "RANCAST_SERVICE_PORT_HTTP": "8080",
        "RANCAST_PORT_8080_TCP": "tcp://10.0.0.7:8080",
        "RANCAST_PORT_8080_TCP_ADDR": "10.0.0.7",
    }.items():
        monkeypatch.setenv(name, value)
    assert load_settings().port == 8080
