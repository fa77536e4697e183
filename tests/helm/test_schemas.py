"""What the chart renders is valid for the oldest and the newest Kubernetes that it names."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.helm.conftest import CHART, Helm

pytestmark = pytest.mark.cluster

kubernetes_validate = pytest.importorskip(
    "kubernetes_validate", reason="kubernetes-validate is not installed: the cluster extra"
)


@pytest.mark.parametrize("version", ["1.25", "1.32", "1.37"])
@pytest.mark.parametrize(
    "values", sorted((CHART / "ci").glob("*-values.yaml")), ids=lambda path: path.stem
)
def test_objects_are_valid_to_the_last_key(helm: Helm, values: Path, version: str) -> None:
    for each in helm.template(yaml.safe_load(values.read_text()), "--kube-version", version):
        kubernetes_validate.validate(each, version, strict=True)


def test_an_older_cluster_is_refused(helm: Helm) -> None:
    answer = helm.try_template(None, "--kube-version", "1.24")
    assert answer.returncode != 0
    assert "kubeVersion" in answer.stderr
