from __future__ import annotations

import json

import pytest

from service.app import create_app
from service.descriptor import read_descriptor
from service.packaging.errors import PackageError, UnusablePackageError
from service.packaging.image import image_reference
from service.packaging.version import SEMVER
from service.packaging.xapp import XappOptions, package_xapp, xapp_descriptor
from service.packaging.xapp_rules import check_xapp_files
from service.settings import Settings

OPEN = {"open_access": "true"}


def options(
    name: str = "rancast",
    version: str = "0.1.0",
    image: str = "registry.example.org:5000/ran/rancast:0.1.0",
    **settings: str,
) -> XappOptions:
    return XappOptions(name, version, image_reference(image), OPEN | settings)


def test_the_package_is_one_that_the_platform_takes_and_the_service_reads(tmp_path):
    files = package_xapp(options())
    assert set(files) == {"config-file.json", "schema.json"}
    assert check_xapp_files(files["config-file.json"].decode(), files["schema.json"]) == []
    path = tmp_path / "config-file.json"
    path.write_bytes(files["config-file.json"])
    assert read_descriptor(path).name == "rancast"


def test_probes_and_scrapes_lead_to_routes_that_there_are():
    descriptor = xapp_descriptor(options())
    paths = create_app(Settings()).openapi()["paths"]
    named = [descriptor[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
    assert {f"/{path}" for path in named} <= set(paths)
    assert descriptor["annotations"]["prometheus.io/path"] in paths


def test_the_port_is_everywhere_the_one_that_is_set():
    descriptor = xapp_descriptor(options(port="9090"))
    assert descriptor["appenv"]["RANCAST_PORT"] == "9090"
    assert descriptor["annotations"]["prometheus.io/port"] == "9090"
    assert descriptor["livenessProbe"]["httpGet"]["port"] == 9090
    assert descriptor["messaging"]["ports"][0]["port"] == 9090


def test_settings_become_the_environment_as_they_are_written():
    environment = xapp_descriptor(options(ingest_kpis="a,b", max_cells="500"))["appenv"]
    assert environment == {
        "CONFIG_FILE": "/opt/ric/config/config-file.json",
        "RANCAST_BUDGET_MOST_MS": "1000",
        "RANCAST_OPEN_ACCESS": "true",
        "RANCAST_INGEST_KPIS": "a,b",
        "RANCAST_MAX_CELLS": "500",
    }


def test_no_message_type_is_claimed():
    ports = xapp_descriptor(options())["messaging"]["ports"]
    assert [port["name"] for port in ports] == ["http", "rmrdata", "rmrroute"]
    claimed = [
        each for port in ports for key in ("txMessages", "rxMessages") for each in port.get(key, ())
    ]
    assert claimed == []


def test_the_version_changes_with_the_content_and_with_nothing_else():
    first = xapp_descriptor(options())["version"]
    assert SEMVER.fullmatch(first)
    assert xapp_descriptor(options())["version"] == first
    others = [
        options(name="other"),
        options(image="registry.example.org/ran/rancast:0.1.1"),
        options(max_cells="5"),
    ]
    versions = {xapp_descriptor(each)["version"] for each in others}
    assert len(versions | {first}) == 4


def test_the_environment_of_whoever_packs_changes_nothing(monkeypatch):
    monkeypatch.setenv("RANCAST_PORT", "7777")
    monkeypatch.setenv("RANCAST_THREADS", "none")
    assert xapp_descriptor(options())["messaging"]["ports"][0]["port"] == 8080


def test_controls_that_somebody_adds_are_refused():
    files = package_xapp(options())
    descriptor = json.loads(files["config-file.json"])
    descriptor["controls"] = {"threads": 2}
    (finding,) = check_xapp_files(json.dumps(descriptor), files["schema.json"])
    assert finding.place == "controls"
    assert "threads" in finding.reason


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"max_cels": "5"}, "names of settings.*max_cels"),
        ({"RANCAST_PORT": "5"}, "in lower case"),
        ({"threads": "0"}, "threads=0: "),
        ({"open_access": "false"}, "open_access=true"),
        ({"profile": "non-rt"}, "near-RT"),
        ({"budget_default_ms": "1500"}, "1000 ms"),
        ({"budget_most_ms": "1001"}, "1000 ms"),
        ({"host": "127.0.0.1"}, "out of the platform's reach"),
        ({"tls_certificate": "/a.pem"}, "plain HTTP"),
        ({"canary_share": "0.1"}, "RANCAST_CANARY_MODEL"),
    ],
)
def test_settings_with_which_it_would_not_run_are_refused(settings, complaint):
    with pytest.raises(PackageError, match=complaint):
        xapp_descriptor(options(**settings))


def test_a_token_file_in_the_image_is_as_good_as_an_open_door():
    settings = {"open_access": "false", "token_file": "/etc/tokens"}
    assert package_xapp(options(**settings))


def test_a_digest_has_no_place():
    image = f"registry.example.org/rancast:1@sha256:{'ab' * 32}"
    with pytest.raises(PackageError, match="by its tag"):
        xapp_descriptor(options(image=image))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"image": "rancast:1"}, "a host with a dot"),
        ({"image": "localhost:5000/rancast:1"}, "nor localhost"),
        ({"name": "my-http-cast"}, "every http"),
        ({"name": "Cast"}, "lower-case letters"),
        ({"name": "a" * 43}, "at most 42"),
    ],
)
def test_what_the_platform_would_refuse_is_not_written(wrong, complaint):
    with pytest.raises(UnusablePackageError, match=complaint) as caught:
        package_xapp(options(**wrong))
    assert caught.value.findings
