"""What would start and then stand open, hang or lose data is refused, with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helm.conftest import OPEN, Helm
from tests.helm.rendered import of_kind

SEPARATE = {"separateStores": True}
SCALED = {**SEPARATE, "autoscaling": {"enabled": True}}
LOCKED = {"access": {"tokenSecret": "callers"}}
SHARED = {"enabled": True, "accessModes": ["ReadWriteMany"]}
TRAINED = {"enabled": True, "data": {"paths": ["s3://bucket/pm"]}}


def budget(**limits: Any) -> dict[str, Any]:
    return {"podDisruptionBudget": {"enabled": True, **limits}}


def several(**values: Any) -> dict[str, Any]:
    return {**SEPARATE, "replicaCount": 2, **values}


@pytest.mark.parametrize("values", [{}, {"access": {"open": False}}, {"settings": {"threads": 2}}])
def test_an_open_service_is_refused_unless_it_is_asked_for_in_words(
    each_helm: Helm, values: dict[str, Any]
) -> None:
    answer = each_helm.try_template(values)
    assert answer.returncode != 0
    assert "access.open: true" in answer.stderr
    assert "access.tokenSecret" in answer.stderr


@pytest.mark.parametrize(
    "values",
    [
        OPEN,
        LOCKED,
        {"access": {"tlsSecret": "tls", "clientCa": True}},
        {"settings": {"token_file": "/mounted/tokens"}},
        {"settings": {"tls_certificate": "/a", "tls_key": "/b", "tls_client_ca": "/c"}},
    ],
)
def test_a_service_with_a_lock_or_with_the_words_is_deployed(
    helm: Helm, values: dict[str, Any]
) -> None:
    assert helm.try_template(values).returncode == 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        # Who may call.
        ({"service": {"type": "LoadBalancer"}}, "access.openBeyondCluster"),
        ({"service": {"type": "NodePort"}}, "access.openBeyondCluster"),
        (
            {"httpRoute": {"enabled": True, "parentRefs": [{"name": "g"}]}},
            "access.openBeyondCluster",
        ),
        ({"access": {"open": True, "clientCa": True}}, "access.tlsSecret"),
        ({**LOCKED, "settings": {"open_paths": ["/healthz", "/*"]}}, "open_paths"),
        ({**LOCKED, "settings": {"open_paths": "/healthz, /*"}}, "open_paths"),
        # A lock whose every path is open is none.
        (
            {
                "access": {"open": True, "tokenSecret": "callers"},
                "settings": {"open_paths": ["/*"]},
                "service": {"type": "LoadBalancer"},
            },
            "access.openBeyondCluster",
        ),
        ({**LOCKED, "settings": {"tls_client_ca": "/ca"}}, "settings.tls_certificate"),
        ({**LOCKED, "settings": {"tls_key": "/key"}}, "settings.tls_certificate"),
        # Whom the chart itself sends has no token.
        ({**LOCKED, "settings": {"open_paths": []}}, "probe"),
        ({**LOCKED, "settings": {"open_paths": ["/docs"]}}, "probe"),
        ({**LOCKED, "settings": {"open_paths": "/readyz"}}, "/healthz"),
        (
            {
                **LOCKED,
                "settings": {"open_paths": ["/healthz", "/readyz"]},
                "serviceMonitor": {"enabled": True},
            },
            "serviceMonitor.authorization",
        ),
        (
            {**LOCKED, "profile": "near-rt", "settings": {"open_paths": ["/ric/v1/*"]}},
            "tests.enabled",
        ),
        (
            {
                "access": {"tlsSecret": "tls", "clientCa": True},
                "serviceMonitor": {"enabled": True},
            },
            "serviceMonitor.tlsConfig",
        ),
        # Rights.
        ({"jobs": {"enabled": True}, "serviceAccount": {"create": False}}, "serviceAccount"),
        (
            {"jobs": {"enabled": True}, "serviceAccount": {"create": False, "name": "default"}},
            "serviceAccount",
        ),
        # Replicas.
        ({"replicaCount": 2}, "separateStores"),
        ({"autoscaling": {"enabled": True}}, "separateStores"),
        (several(persistence={"enabled": True}), "single writer"),
        ({**SCALED, "persistence": {"enabled": True}}, "single writer"),
        ({**SCALED, "replicaCount": 3}, "leave replicaCount out"),
        (
            {**SEPARATE, "autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 3}},
            "maxReplicas",
        ),
        (
            {
                **SEPARATE,
                "autoscaling": {"enabled": True, "targetCPUUtilizationPercentage": None},
            },
            "nothing to go by",
        ),
        ({**SCALED, "resources": {"requests": {"cpu": None}}}, "resources.requests.cpu"),
        ({**SCALED, "extraContainers": [{"name": "mesh", "image": "m"}]}, "mesh"),
        (
            {
                **SCALED,
                "extraContainers": [
                    {"name": "mesh", "image": "m", "resources": {"requests": None, "limits": None}}
                ],
            },
            "percent of what all containers request, and that of mesh",
        ),
        # Rollouts.
        ({"minReadySeconds": 600}, "progressDeadlineSeconds"),
        ({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}, "rollingUpdate"),
        # Drains.
        (budget(minAvailable=1), "blocks every drain"),
        (several(**budget(minAvailable=2)), "blocks every drain"),
        (several(**budget(minAvailable="100%")), "blocks every drain"),
        (several(**budget(minAvailable="51%")), "blocks every drain"),
        (budget(maxUnavailable=0), "blocks every drain"),
        (budget(maxUnavailable="0%"), "blocks every drain"),
        (several(**budget(minAvailable=1, maxUnavailable=1)), "not both"),
        ({**SCALED, **budget(minAvailable=2)}, "blocks every drain"),
        # Volumes.
        (
            {"persistence": {"enabled": True}, "strategy": {"type": "RollingUpdate"}},
            "single writer",
        ),
        (
            {"models": {"enabled": True}, "strategy": {"rollingUpdate": {"maxSurge": 1}}},
            "models.accessModes",
        ),
        (several(models={"enabled": True}), "ReadWriteMany"),
        (
            {
                "persistence": {"enabled": True, "existingClaim": "one"},
                "models": {**SHARED, "existingClaim": "one"},
            },
            "the same claim",
        ),
        ({"retraining": TRAINED}, "models.enabled"),
        ({"retraining": TRAINED, "models": {"enabled": True}}, "retraining.onServiceNode"),
        (
            {
                "retraining": {**TRAINED, "onServiceNode": True},
                "models": {"enabled": True, "accessModes": ["ReadWriteOncePod"]},
            },
            "ReadWriteOncePod",
        ),
        (
            {
                "retraining": TRAINED,
                "models": {
                    "enabled": True,
                    "accessModes": ["ReadOnlyMany"],
                    "existingClaim": "a",
                },
            },
            "cannot write",
        ),
        ({"models": {"enabled": True, "accessModes": ["ReadOnlyMany"]}}, "models.existingClaim"),
        ({"retraining": {"enabled": True}, "models": SHARED}, "retraining.data.existingClaim"),
        (
            {
                "retraining": {
                    "enabled": True,
                    "extraVolumeMounts": [{"name": "a", "mountPath": "/database"}],
                },
                "models": SHARED,
            },
            "retraining.data.existingClaim",
        ),
        (
            {"retraining": {**TRAINED, "concurrencyPolicy": "Allow"}, "models": SHARED},
            "same checkpoint",
        ),
        (
            {"retraining": {"enabled": True, "data": {"paths": []}}, "models": SHARED},
            "needs retraining.data.paths",
        ),
        # Budgets and profiles.
        ({"settings": {"budget_default_ms": 1500}}, "within 1000 ms"),
        ({"profile": "near-rt", "settings": {"budget_default_ms": 1001}}, "within 1000 ms"),
        ({"profile": "near-rt", "settings": {"budget_most_ms": 2000}}, "within 1000 ms"),
        ({"settings": {"profile": "near-rt", "budget_most_ms": 2000}}, "within 1000 ms"),
        ({"profile": "near-rt", "settings": {"profile": "non-rt"}}, "contradict"),
        ({"profile": "near-rt", "xapp": {"name": "http-load"}}, "contains http"),
        ({"profile": "near-rt", "xapp": {"descriptor": {"name": "b"}}}, "descriptor.name"),
        ({"profile": "near-rt", "containerPort": 4560}, "port of RMR"),
        ({"profile": "near-rt", "xapp": {"rmrRoutePort": 4560}}, "are the same"),
        ({"profile": "near-rt", "environment": {"appId": "a"}}, "profile: non-rt"),
        # Values that say the same thing twice, or nothing.
        ({"models": SHARED, "settings": {"models_directory": "/a"}}, "leave one of them out"),
        ({**LOCKED, "settings": {"token_file": "/a"}}, "leave one of them out"),
        (
            {"access": {"open": True, "tlsSecret": "t"}, "settings": {"tls_key": "/a"}},
            "leave one of them out",
        ),
        ({"settings": {"drain_seconds": 30}}, "terminationGracePeriodSeconds"),
        ({"terminationGracePeriodSeconds": 20}, "terminationGracePeriodSeconds"),
        ({**LOCKED, "ingress": {"enabled": True}}, "ingress.hosts"),
        ({**LOCKED, "httpRoute": {"enabled": True}}, "httpRoute.parentRefs"),
        ({"service": {"nodePort": 30080}}, "service.type"),
        ({"service": {"externalTrafficPolicy": "Local"}}, "service.type"),
        ({"service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}, "service.type LoadBalancer"),
        (
            {**LOCKED, "service": {"type": "NodePort", "loadBalancerClass": "example.org/a"}},
            "service.type LoadBalancer",
        ),
        (
            {**LOCKED, "service": {"type": "NodePort", "clusterIP": "None"}},
            "contradict each other",
        ),
        (
            {"compiled": {"enabled": True}, "extraArgs": ["--checkpoint=/a.safetensors"]},
            "settings.model_path",
        ),
    ],
)
def test_each_is_refused_with_its_reason(helm: Helm, values: dict[str, Any], reason: str) -> None:
    assert reason in helm.refusal(values)


@pytest.mark.parametrize(
    "values",
    [
        {"access": {"open": True, "openBeyondCluster": True}, "service": {"type": "NodePort"}},
        {**LOCKED, "service": {"type": "LoadBalancer", "nodePort": 30080}},
        several(),
        SCALED,
        budget(),
        budget(maxUnavailable=1),
        several(**budget(minAvailable=1)),
        several(**budget(minAvailable="50%")),
        {**SCALED, **budget(minAvailable=1)},
        several(models=SHARED),
        {"models": {"enabled": True}},
        {"models": SHARED, "retraining": TRAINED},
        {"models": {"enabled": True}, "retraining": {**TRAINED, "onServiceNode": True}},
        {
            "models": SHARED,
            "retraining": {"enabled": True, "command": "train", "data": {"paths": []}},
        },
        {"persistence": {"enabled": True}, "strategy": {"type": "Recreate"}},
        {**SCALED, "resources": {"requests": {"cpu": None}, "limits": {"cpu": 2}}},
        {
            **SCALED,
            "extraContainers": [
                {"name": "mesh", "image": "m", "resources": {"limits": {"cpu": "100m"}}}
            ],
        },
        {**LOCKED, "settings": {"open_paths": "/healthz, /readyz"}},
        {**LOCKED, "settings": {"open_paths": ["/*"]}, "access": {"open": True}},
        {
            **LOCKED,
            "settings": {"open_paths": ["/healthz", "/readyz"]},
            "serviceMonitor": {"enabled": True, "authorization": {"credentials": {"key": "a"}}},
        },
        {
            **LOCKED,
            "profile": "near-rt",
            "settings": {"open_paths": ["/ric/v1/*"]},
            "tests": {"enabled": False},
        },
        {"settings": {"open_paths": []}},
        {
            "access": {"tokenSecret": "callers", "tlsSecret": "tls", "clientCa": True},
            "settings": {"open_paths": []},
        },
        {"jobs": {"enabled": True}, "serviceAccount": {"create": False, "name": "trainer"}},
        {"service": {"clusterIP": "None"}},
        {"extraArgs": ["--checkpoint=/a.safetensors"]},
        {"settings": {"budget_most_ms": 2000}},
        {"profile": "near-rt", "settings": {"budget_default_ms": 1000, "budget_most_ms": 1000}},
        {"profile": "non-rt", "settings": {"budget_default_ms": 20000}},
        {"settings": {"profile": "non-rt", "budget_default_ms": 20000}},
    ],
)
def test_what_can_work_is_not_refused(helm: Helm, values: dict[str, Any]) -> None:
    assert of_kind(helm.template(values), "Deployment")
