"""What the chart renders is valid for the Kubernetes that it names, from oldest to newest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.helm.conftest import CHART, Helm
from tests.helm.custom_resources import faults, is_custom

VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
VERSIONS = ("1.25", "1.28", "1.32", "1.37")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_objects_are_valid_to_the_last_key(helm: Helm, values: Path, version: str) -> None:
    for each in helm.template(yaml.safe_load(values.read_text()), "--kube-version", version):
        if not is_custom(each):
            # A kind that is not known, and not among those of custom_resources, is an error.
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_objects_of_operators_are_valid_to_the_last_key(helm: Helm, values: Path) -> None:
    custom = [each for each in helm.template(yaml.safe_load(values.read_text())) if is_custom(each)]
    assert [fault for each in custom for fault in faults(each)] == []


def test_every_kind_of_an_operator_is_rendered_somewhere(helm: Helm) -> None:
    objects = [each for path in VALUES for each in helm.template(yaml.safe_load(path.read_text()))]
    found = {each["kind"] for each in objects if is_custom(each)}
    assert found == {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}


@pytest.mark.parametrize(
    ("endpoint", "fault"),
    [
        ({"porttt": "http"}, "porttt"),
        ({"port": 8080}, "8080"),
        ({"port": "http", "interval": "30 seconds"}, "30 seconds"),
        ({"port": "http", "scheme": "HTTPS"}, "HTTPS"),
    ],
)
def test_what_the_operators_own_models_let_pass_is_found(
    endpoint: dict[str, Any], fault: str
) -> None:
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "a", "namespace": "b", "labels": {}},
        "spec": {"selector": {}, "endpoints": [endpoint]},
    }
    assert fault in " ".join(faults(monitor))


def test_an_older_cluster_is_refused(helm: Helm) -> None:
    assert "kubeVersion" in helm.refusal({}, "--kube-version", "1.24")


def test_what_a_cluster_does_not_know_yet_is_left_out(helm: Helm) -> None:
    values = yaml.safe_load((CHART / "ci" / "full-values.yaml").read_text())
    old, new = (helm.template(values, "--kube-version", version) for version in ("1.25", "1.32"))
    assert "podFailurePolicy" not in yaml.safe_dump(old)
    assert "podFailurePolicy" in yaml.safe_dump(new)
    assert "unhealthyPodEvictionPolicy" not in yaml.safe_dump(old)
    assert "unhealthyPodEvictionPolicy" in yaml.safe_dump(new)
