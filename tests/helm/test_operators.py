"""What Prometheus' operator and Grafana are given: a ServiceMonitor, rules and dashboards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.conftest import CHART, Helm
from tests.helm.custom_resources import faults
from tests.helm.rendered import of_kind

RULES = {
    "groups": [
        {
            "name": "forecasts",
            "rules": [
                {"record": "rancast:up:sum", "expr": "sum(up)"},
                {
                    "alert": "RancastDown",
                    "expr": "up == 0",
                    "for": "5m",
                    "labels": {"severity": "critical", "team": "own"},
                    "annotations": {"summary": "{{ $labels.instance }} is down"},
                },
            ],
        },
        {"name": "data", "rules": [{"alert": "RancastStale", "expr": "vector(1)"}]},
    ]
}
BOARD = {"title": "Service", "panels": [{"legendFormat": "{{ rung }}"}]}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """The chart with rules and a dashboard of this test, and no others."""
    copy = tmp_path / "rancast"
    ignored = shutil.ignore_patterns("rules", "dashboards")
    shutil.copytree(CHART, copy, ignore=ignored)
    return copy


@pytest.fixture
def filled(chart: Path) -> Path:
    (chart / "rules").mkdir()
    (chart / "rules" / "one.yaml").write_text(yaml.safe_dump(RULES))
    (chart / "dashboards").mkdir()
    (chart / "dashboards" / "Our_service.json").write_text(json.dumps(BOARD, indent=2))
    return chart


def rule_groups(objects: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups = of_kind(objects, "PrometheusRule")["spec"]["groups"]
    return {group["name"]: group["rules"] for group in groups}


def test_nothing_of_operators_is_rendered_unless_it_is_asked_for(helm: Helm, filled: Path) -> None:
    kinds = {each["kind"] for each in helm.template({}, chart=filled)}
    assert kinds == {"Deployment", "Service", "ServiceAccount", "Pod"}


def test_rules_are_handed_over_as_they_are(helm: Helm, filled: Path) -> None:
    objects = helm.template({"prometheusRule": {"enabled": True}}, chart=filled)
    rule = of_kind(objects, "PrometheusRule")
    assert rule["spec"] == RULES
    assert faults(rule) == []


def test_the_rules_that_ship_reach_the_operator_word_for_word(each_helm: Helm) -> None:
    rule = of_kind(each_helm.template({"prometheusRule": {"enabled": True}}), "PrometheusRule")
    files = sorted((CHART / "rules").glob("*.yaml"))
    shipped = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    assert rule["spec"]["groups"] == shipped
    assert any("{{ $labels." in str(group) for group in shipped)
    assert faults(rule) == []


def test_the_dashboards_that_ship_reach_the_sidecar_byte_for_byte(each_helm: Helm) -> None:
    objects = each_helm.template({"dashboards": {"enabled": True}})
    found = {
        name: text
        for each in objects
        if each["kind"] == "ConfigMap"
        for name, text in each["data"].items()
    }
    # Grafana's sidecar puts the files of all charts into one folder.
    shipped = {
        f"rancast-{file.name}": file.read_text().strip()
        for file in (CHART / "dashboards").glob("*.json")
    }
    assert found == shipped


def test_without_rules_and_dashboards_there_are_no_objects_for_them(
    helm: Helm, chart: Path
) -> None:
    values = {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}
    kinds = {each["kind"] for each in helm.template(values, chart=chart)}
    assert not {"PrometheusRule", "ConfigMap"} & kinds


def test_alerts_can_be_left_out_and_get_labels_that_win(helm: Helm, filled: Path) -> None:
    values = {
        "prometheusRule": {
            "enabled": True,
            "disabledAlerts": ["RancastStale"],
            "additionalRuleLabels": {"team": "ran", "site": "a"},
            "extraGroups": [{"name": "mine", "rules": [{"alert": "Mine", "expr": "vector(1)"}]}],
        }
    }
    groups = rule_groups(helm.template(values, chart=filled))
    assert set(groups) == {"forecasts", "mine"}
    record, alert = groups["forecasts"]
    assert record == RULES["groups"][0]["rules"][0]  # type: ignore[index]
    assert alert["labels"] == {"severity": "critical", "team": "ran", "site": "a"}
    assert groups["mine"][0]["labels"] == {"team": "ran", "site": "a"}


def test_alerts_link_to_where_the_runbook_can_be_read(helm: Helm) -> None:
    mine = {"alert": "Mine", "expr": "vector(1)", "annotations": {"runbook_url": "wiki#mine"}}
    said = {
        "enabled": True,
        "runbookUrl": "https://wiki.example.org/rancast",
        "extraGroups": [{"name": "mine", "rules": [mine]}],
    }
    groups = rule_groups(helm.template({"prometheusRule": said}))
    assert groups.pop("mine")[0]["annotations"] == mine["annotations"]
    links = {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for rules in groups.values()
        for rule in rules
        if "alert" in rule
    }
    assert len(links) > 20
    assert links == {name: f"https://wiki.example.org/rancast#{name.lower()}" for name in links}


@pytest.mark.parametrize("url", ["wiki", "https://a.example#b"])
def test_a_runbook_is_a_page_that_can_be_linked_to(helm: Helm, url: str) -> None:
    assert "runbookUrl" in helm.refusal({"prometheusRule": {"enabled": True, "runbookUrl": url}})


def test_a_file_that_holds_no_rules_is_refused_by_name(helm: Helm, filled: Path) -> None:
    (filled / "rules" / "two.yaml").write_text("rules: []\n")
    values = {"prometheusRule": {"enabled": True}, "access": {"open": True}}
    answer = helm.try_template(values, chart=filled)
    assert answer.returncode != 0
    assert "rules/two.yaml" in answer.stderr


def test_a_dashboard_becomes_a_config_map_that_the_sidecar_finds(helm: Helm, filled: Path) -> None:
    values = {
        "dashboards": {
            "enabled": True,
            "namespace": "grafana",
            "labels": {"grafana_dashboard": "1"},
            "annotations": {"grafana_folder": "RAN"},
        }
    }
    found = of_kind(helm.template(values, chart=filled), "ConfigMap")
    assert found["metadata"]["name"] == "r-rancast-dashboard-our-service"
    assert found["metadata"]["namespace"] == "grafana"
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "RAN"}
    (name,) = found["data"]
    assert name == "rancast-Our_service.json"
    assert json.loads(found["data"][name]) == BOARD


def test_scrapes_reach_the_pods_of_the_service(helm: Helm) -> None:
    objects = helm.template({"serviceMonitor": {"enabled": True, "namespace": "monitoring"}})
    monitor = of_kind(objects, "ServiceMonitor")
    service = of_kind(objects, "Service")
    assert monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["spec"]["namespaceSelector"] == {
        "matchNames": [service["metadata"]["namespace"]]
    }
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    assert chosen <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["path"] == "/metrics"
    assert not {"interval", "scheme"} & set(endpoint)


def test_an_xapp_is_scraped_once_though_it_has_two_services(helm: Helm) -> None:
    objects = helm.template({"profile": "near-rt", "serviceMonitor": {"enabled": True}})
    monitor = of_kind(objects, "ServiceMonitor")["spec"]
    chosen = monitor["selector"]["matchLabels"].items()
    services = [each for each in objects if each["kind"] == "Service"]
    scraped = [each for each in services if chosen <= each["metadata"]["labels"].items()]
    assert len(services) == 2
    assert [each["metadata"]["name"] for each in scraped] == ["service-ricxapp-r-rancast-http"]
    assert monitor["endpoints"][0]["path"] == "/ric/v1/metrics"


def test_scrapes_speak_tls_where_the_service_does(helm: Helm) -> None:
    objects = helm.template(
        {
            "access": {"open": True, "tlsSecret": "tls"},
            "serviceMonitor": {"enabled": True, "tlsConfig": {"insecureSkipVerify": True}},
        }
    )
    (endpoint,) = of_kind(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {"insecureSkipVerify": True}


def test_prometheus_shows_a_token_where_the_metrics_ask_for_one(helm: Helm) -> None:
    authorization = {"credentials": {"name": "scraper", "key": "token"}}
    objects = helm.template(
        {
            "access": {"tokenSecret": "callers"},
            "settings": {"open_paths": ["/healthz", "/readyz"]},
            "serviceMonitor": {"enabled": True, "authorization": authorization, "jobLabel": "job"},
        }
    )
    spec = of_kind(objects, "ServiceMonitor")["spec"]
    assert spec["endpoints"][0]["authorization"] == authorization
    assert spec["jobLabel"] == "job"
