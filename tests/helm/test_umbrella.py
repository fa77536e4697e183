"""The chart as a part of another: switched by a condition, under values that all parts share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.conftest import CHART, Helm
from tests.helm.rendered import container, of_kind, pod


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A chart that brings ours along where `rancast.enabled` says so."""
    folder = tmp_path / "parent"
    shutil.copytree(CHART, folder / "charts" / "rancast")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    part = {"name": "rancast", "version": version, "condition": "rancast.enabled"}
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [part]}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    return folder


def shared(**values: Any) -> dict[str, Any]:
    return {"rancast": {"enabled": True, "access": {"open": True}}, "global": values}


def rendered(helm: Helm, chart: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    answer = helm.try_template(values, chart=chart)
    assert answer.returncode == 0, answer.stderr
    return [each for each in yaml.safe_load_all(answer.stdout) if each]


def test_a_condition_of_the_parent_switches_it(each_helm: Helm, parent: Path) -> None:
    assert of_kind(rendered(each_helm, parent, shared()), "Deployment")
    assert rendered(each_helm, parent, {"rancast": {"enabled": False}}) == []


def test_by_itself_it_cannot_be_switched_off(each_helm: Helm) -> None:
    assert "enabled" in each_helm.refusal({"enabled": False})


def test_shared_secrets_may_be_names_as_other_charts_have_them(
    each_helm: Helm, parent: Path
) -> None:
    values = shared(imagePullSecrets=["one", {"name": "two"}], storageClass="fast")
    values["rancast"]["imagePullSecrets"] = [{"name": "one"}, "three"]
    secrets = pod(rendered(each_helm, parent, values))["imagePullSecrets"]
    assert secrets == [{"name": "one"}, {"name": "three"}, {"name": "two"}]


@pytest.mark.parametrize("profile", ["", "near-rt"])
def test_a_shared_registry_may_have_a_path(each_helm: Helm, parent: Path, profile: str) -> None:
    values = shared(imageRegistry="mirror.example.org/proxy/")
    values["rancast"]["profile"] = profile
    objects = rendered(each_helm, parent, values)
    assert container(objects)["image"] == "mirror.example.org/proxy/rancast:0.1.0"
    if profile:
        # The platform's schema takes a host and nothing else for a registry.
        descriptor = of_kind(objects, "ConfigMap")["data"]["config-file.json"]
        (own,) = yaml.safe_load(descriptor)["containers"]
        assert own["image"]["registry"] == "mirror.example.org"
        assert own["image"]["name"] == "proxy/rancast"
