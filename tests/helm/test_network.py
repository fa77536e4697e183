"""Who reaches the service: Service, Ingress, HTTPRoute and NetworkPolicy; how many answer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.helm.conftest import CHART, Helm
from tests.helm.rendered import named, of_kind

LOCKED = {"access": {"tokenSecret": "callers"}}
FULL = yaml.safe_load((CHART / "ci" / "full-values.yaml").read_text())


def test_the_service_is_reached_as_values_say(helm: Helm) -> None:
    spec = of_kind(helm.template(FULL), "Service")["spec"]
    for name in (
        *("type", "externalTrafficPolicy", "loadBalancerSourceRanges"),
        *("ipFamilies", "ipFamilyPolicy", "loadBalancerClass", "internalTrafficPolicy"),
        "sessionAffinity",
    ):
        assert spec[name] == FULL["service"][name]
    assert spec["ports"][0]["nodePort"] == 30443
    assert spec["ports"][0]["appProtocol"] == "https"


def test_a_service_without_an_address_leads_to_the_pods_themselves(helm: Helm) -> None:
    spec = of_kind(helm.template({"service": {"clusterIP": "None"}}), "Service")["spec"]
    assert spec["clusterIP"] == "None"


def test_both_services_of_an_xapp_speak_the_same_families(helm: Helm) -> None:
    families = {"ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}
    objects = helm.template({"profile": "near-rt", "service": families})
    services = [each["spec"] for each in objects if each["kind"] == "Service"]
    assert len(services) == 2
    assert all(families.items() <= each.items() for each in services)


@pytest.mark.parametrize("profile", ["", "near-rt"])
def test_routes_lead_to_the_service(helm: Helm, profile: str) -> None:
    values = {
        **LOCKED,
        "profile": profile,
        "xapp": {"name": "cell-load"},
        "ingress": {
            "enabled": True,
            "hosts": [{"host": "a.example", "paths": [{"path": "/", "pathType": "Prefix"}]}],
        },
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]},
        "service": {"port": 80},
    }
    objects = helm.template(values)
    service = next(each for each in objects if each["kind"] == "Service")
    (rule,) = of_kind(objects, "Ingress")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] == service["spec"]["ports"][0]["name"]
    (route,) = of_kind(objects, "HTTPRoute")["spec"]["rules"]
    assert route["backendRefs"] == [{"name": service["metadata"]["name"], "port": 80}]


def policy(helm: Helm, **values: Any) -> dict[str, Any]:
    policy = {"enabled": True} | values["networkPolicy"]
    objects = helm.template({**values, "networkPolicy": policy})
    found: dict[str, Any] = named(objects, "NetworkPolicy", "r-rancast")["spec"]
    return found


def ports(rule: dict[str, Any]) -> list[int]:
    return [each["port"] for each in rule.get("ports", [])]


def test_the_network_is_open_to_the_namespace_and_to_dns_only(helm: Helm) -> None:
    spec = policy(helm, networkPolicy={}, containerPort=9090)
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    (incoming,) = spec["ingress"]
    assert {"podSelector": {}} in incoming["from"]
    assert ports(incoming) == [9090]
    (outgoing,) = spec["egress"]
    assert ports(outgoing) == [53, 53]


def test_named_peers_take_the_place_of_the_namespace_and_the_test_pod_stays(helm: Helm) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "clients"}}}
    (incoming,) = policy(helm, networkPolicy={"from": [peer]})["ingress"]
    assert incoming["from"][0] == peer
    (test,) = incoming["from"][1:]
    labels = of_kind(helm.template(), "Pod")["metadata"]["labels"]
    assert test["podSelector"]["matchLabels"].items() <= labels.items()
    (incoming,) = policy(helm, networkPolicy={"from": [peer]}, tests={"enabled": False})["ingress"]
    assert incoming["from"] == [peer]


def test_an_xapp_speaks_with_its_platform(helm: Helm) -> None:
    spec = policy(helm, networkPolicy={}, profile="near-rt", xapp={"platformNamespace": "plt"})
    platform = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "plt"}}}
    http, rmr = spec["ingress"]
    assert platform in http["from"]
    assert platform in rmr["from"]
    assert ports(rmr) == [4560, 4561]
    assert platform in spec["egress"][1]["to"]


def test_training_jobs_reach_the_kubernetes_api(helm: Helm) -> None:
    spec = policy(helm, networkPolicy={}, jobs={"enabled": True})
    assert ports(spec["egress"][1]) == [443, 6443]


def test_nobody_reaches_the_pods_that_train_or_ask(helm: Helm) -> None:
    objects = helm.template({"networkPolicy": {"enabled": True}})
    spec = named(objects, "NetworkPolicy", "r-rancast-unreachable")["spec"]
    assert (spec["policyTypes"], "ingress" in spec) == (["Ingress"], False)
    labels = of_kind(objects, "Pod")["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    (expression,) = spec["podSelector"]["matchExpressions"]
    assert labels[expression["key"]] in expression["values"]
    service = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service[expression["key"]] not in expression["values"]


def test_an_autoscaler_is_alone_with_the_replicas(helm: Helm) -> None:
    objects = helm.template(
        {
            "separateStores": True,
            "autoscaling": {"enabled": True, "targetMemoryUtilizationPercentage": 80},
        }
    )
    deployment = of_kind(objects, "Deployment")
    # Server-side apply would fight the autoscaler over the field.
    assert "replicas" not in deployment["spec"]
    spec = of_kind(objects, "HorizontalPodAutoscaler")["spec"]
    assert spec["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    targets = {
        each["resource"]["name"]: each["resource"]["target"]["averageUtilization"]
        for each in spec["metrics"]
    }
    assert targets == {"cpu": 70, "memory": 80}


@pytest.mark.parametrize(("count", "expected"), [(None, 1), (0, 0), (1, 1)])
def test_without_an_autoscaler_the_replicas_are_said(
    helm: Helm, count: int | None, expected: int
) -> None:
    values = {} if count is None else {"replicaCount": count}
    objects = helm.template(values)
    assert of_kind(objects, "Deployment")["spec"]["replicas"] == expected
    assert "HorizontalPodAutoscaler" not in {each["kind"] for each in objects}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"maxUnavailable": 1}),
        ({"maxUnavailable": "50%"}, {"maxUnavailable": "50%"}),
        ({"minAvailable": 1}, {"minAvailable": 1}),
    ],
)
def test_evictions_are_bounded_over_the_pods_of_the_service(
    helm: Helm, values: dict[str, Any], expected: dict[str, Any]
) -> None:
    objects = helm.template(
        {
            "replicaCount": 2,
            "separateStores": True,
            "podDisruptionBudget": {"enabled": True, **values},
        }
    )
    spec = of_kind(objects, "PodDisruptionBudget")["spec"]
    assert expected.items() <= spec.items()
    assert len({"minAvailable", "maxUnavailable"} & set(spec)) == 1
    assert spec["selector"] == of_kind(objects, "Deployment")["spec"]["selector"]


def test_helm_test_asks_the_service_by_its_name(helm: Helm) -> None:
    objects = helm.template({"service": {"port": 80}})
    test = of_kind(objects, "Pod")
    assert test["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (only,) = test["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in only["env"]}
    service = of_kind(objects, "Service")["metadata"]["name"]
    assert variables == {"RANCAST_HOST": service, "RANCAST_PORT": "80"}
    assert only["command"][-1] == "service.healthcheck"
    assert test["spec"]["automountServiceAccountToken"] is False
    assert "Pod" not in {each["kind"] for each in helm.template({"tests": {"enabled": False}})}


def test_the_test_pod_can_be_marked(helm: Helm) -> None:
    metadata = of_kind(helm.template(FULL), "Pod")["metadata"]
    assert metadata["annotations"]["sidecar.istio.io/inject"] == "false"
    assert metadata["annotations"]["helm.sh/hook"] == "test"
    assert metadata["labels"]["example.org/team"] == "ran"
