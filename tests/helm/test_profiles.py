"""The chart deploys an xApp that a near-RT RIC finds, and an rApp that its manager can set up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.descriptor import read_descriptor
from service.settings import load_settings
from tests.helm.conftest import CHART, Helm
from tests.helm.rendered import container, environment, mounts, named, of_kind, pod, volumes

XAPP = {"profile": "near-rt", "xapp": {"name": "cell-load"}}
NAMESPACE = ("--namespace", "ricxapp")


def config_files(objects: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = named(objects, "ConfigMap", "configmap-ricxapp-cell-load-appconfig")[
        "data"
    ]
    return found


def test_the_platform_finds_the_services_by_the_names_that_it_computes(helm: Helm) -> None:
    objects = helm.template(XAPP, *NAMESPACE)
    http = named(objects, "Service", "service-ricxapp-cell-load-http")
    rmr = named(objects, "Service", "service-ricxapp-cell-load-rmr")
    assert [each["name"] for each in http["spec"]["ports"]] == ["http"]
    # The service links name the first port, which has to be that of the data.
    assert [(each["name"], each["port"]) for each in rmr["spec"]["ports"]] == [
        ("rmrdata", 4560),
        ("rmrroute", 4561),
    ]
    labels = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for service in (http, rmr):
        assert service["spec"]["selector"].items() <= labels.items()
        assert service["metadata"]["namespace"] == "ricxapp"
    ports = {each["name"]: each["containerPort"] for each in container(objects)["ports"]}
    assert ports == {"http": 8080, "rmrdata": 4560, "rmrroute": 4561}


def test_the_pod_is_called_what_the_platform_knows_it_by(helm: Helm) -> None:
    objects = helm.template(XAPP, *NAMESPACE)
    labels = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert pod(objects)["hostname"] == "cell-load"
    assert pod(objects)["enableServiceLinks"] is True
    assert (labels["app"], labels["kubernetes_name"]) == (
        "ricxapp-cell-load",
        "ricxapp_cell-load",
    )


def test_the_xapp_is_called_as_its_release_unless_told_otherwise(helm: Helm) -> None:
    objects = helm.template({"profile": "near-rt"}, "--name-template", "rancast")
    assert pod(objects)["hostname"] == "rancast"
    assert named(objects, "Service", "service-ricxapp-rancast-http")
    objects = helm.template({"profile": "near-rt"}, "--name-template", "r" * 53)
    services = [each["metadata"]["name"] for each in objects if each["kind"] == "Service"]
    assert [len(name) for name in services] == [63, 62]
    assert len(pod(objects)["hostname"]) <= 63


def test_the_environment_is_what_the_platforms_frameworks_read(helm: Helm) -> None:
    objects = helm.template(XAPP, *NAMESPACE)
    variables = environment(objects)
    assert variables["RMR_RTG_SVC"] == "4561"
    assert variables["RMR_SRC_ID"] == "service-ricxapp-cell-load-rmr.ricxapp"
    assert variables["PLT_NAMESPACE"] == "ricplt"
    source = {"configMapRef": {"name": "dbaas-appconfig", "optional": True}}
    assert container(objects)["envFrom"] == [source]
    without = helm.template({**XAPP, "xapp": {"name": "a", "dbaasConfigMap": ""}})
    assert "envFrom" not in container(without)


def test_the_service_reads_the_descriptor_that_the_chart_mounts(helm: Helm, tmp_path) -> None:
    objects = helm.template(XAPP)
    folder, _, name = environment(objects)["CONFIG_FILE"].rpartition("/")
    volume = volumes(pod(objects))[mounts(container(objects))[folder]["name"]]
    assert volume["configMap"] == {"name": "configmap-ricxapp-cell-load-appconfig"}
    assert "subPath" not in mounts(container(objects))[folder]
    path = tmp_path / name
    path.write_text(config_files(objects)[name])
    assert read_descriptor(path).name == "cell-load"


def test_the_descriptor_says_what_is_deployed(helm: Helm) -> None:
    image = {"registry": "host.example", "repository": "a/b", "tag": "2.0"}
    values = {**XAPP, "image": image, "containerPort": 9090}
    fields = json.loads(config_files(helm.template(values))["config-file.json"])
    assert (fields["name"], fields["xapp_name"]) == ("cell-load", "cell-load")
    (only,) = fields["containers"]
    assert only["image"] == {"registry": "host.example", "name": "a/b", "tag": "2.0"}
    ports = {each["name"]: each for each in fields["messaging"]["ports"]}
    assert ports["http"]["port"] == 9090
    assert (ports["rmrdata"]["port"], ports["rmrroute"]["port"]) == (4560, 4561)
    # Routes follow from these lists, and the service speaks no RMR.
    assert ports["rmrdata"]["txMessages"] == ports["rmrdata"]["rxMessages"] == []
    assert fields["livenessProbe"]["httpGet"] == {"path": "ric/v1/health/alive", "port": 9090}
    assert "rmr" not in fields, "two lists of messages that differ confuse the platform"


def test_values_have_the_last_word_in_the_descriptor(helm: Helm) -> None:
    more = {"controls": {"horizon": 12}, "livenessProbe": {"periodSeconds": 99}}
    controls = {"type": "object"}
    xapp = {"name": "cell-load", "descriptor": more, "controlsSchema": controls}
    files = config_files(helm.template({"profile": "near-rt", "xapp": xapp}))
    fields = json.loads(files["config-file.json"])
    assert fields["controls"] == {"horizon": 12}
    assert fields["livenessProbe"]["periodSeconds"] == 99
    assert fields["livenessProbe"]["httpGet"]["path"] == "ric/v1/health/alive"
    assert json.loads(files["schema.json"]) == controls


def test_probes_and_scrapes_go_where_the_platform_looks(helm: Helm) -> None:
    objects = helm.template(XAPP)
    only = container(objects)
    assert only["livenessProbe"]["httpGet"]["path"] == "/ric/v1/health/alive"
    assert only["readinessProbe"]["httpGet"]["path"] == "/ric/v1/health/ready"
    assert only["startupProbe"]["httpGet"]["path"] == "/ric/v1/health/ready"
    annotations = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "prometheus.io/path": "/ric/v1/metrics",
    }


def test_scrapes_of_the_platform_speak_tls_where_the_service_does(helm: Helm) -> None:
    objects = helm.template({**XAPP, "access": {"open": True, "tlsSecret": "tls"}})
    annotations = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/scheme"] == "https"


@pytest.mark.parametrize(
    ("values", "default", "most"),
    [
        ({}, 100, 1000),
        ({"budget_default_ms": 50}, 50, 1000),
        ({"budget_most_ms": 400}, 100, 400),
    ],
)
def test_an_xapp_answers_within_a_second(
    helm: Helm, monkeypatch, values: dict[str, Any], default: float, most: float
) -> None:
    settings = settings_of(environment(helm.template({**XAPP, "settings": values})), monkeypatch)
    bounds = settings.budget_bounds()
    assert (bounds.default_ms, bounds.most_ms) == (default, most)


def settings_of(variables: dict[str, str], monkeypatch) -> Any:
    """What the service makes of the variables that the chart sets."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def test_an_application_of_its_own_bears_no_marks_of_a_ric(helm: Helm) -> None:
    objects = helm.template()
    assert [each["kind"] for each in objects].count("Service") == 1
    assert "hostname" not in pod(objects)
    assert not {"CONFIG_FILE", "RMR_SRC_ID", "APP_ID"} & set(environment(objects))
    assert "ConfigMap" not in {each["kind"] for each in objects}


def test_an_rapp_takes_the_two_values_that_its_manager_sets_by_name(
    helm: Helm, monkeypatch
) -> None:
    endpoint = "http://servicemanager.example:8095/service-apis/v1/allServiceAPIs"
    by_name = f"environment.appId=3f2c,environment.smeDiscoveryEndpoint={endpoint}"
    variables = environment(helm.template({"profile": "non-rt"}, "--set", by_name))
    assert variables["APP_ID"] == "3f2c"
    assert variables["SME_DISCOVERY_ENDPOINT"] == endpoint
    assert settings_of(variables, monkeypatch).budget_bounds().default_ms == 5000


def test_values_of_the_manager_are_there_by_name() -> None:
    assert "appId: " in (CHART / "values.yaml").read_text()
    assert "smeDiscoveryEndpoint: " in (CHART / "values.yaml").read_text()
