"""Checkov finds nothing in the manifests that nobody thought of."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.checkov_environment import PINS
from tests.helm.conftest import CHART, Helm, unavailable
from tests.protocols.build_environment import is_built

ENVIRONMENT = CHART.parents[1] / ".venv-checkov"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))


@dataclass(frozen=True)
class Finding:
    """What checkov objects to.

    Attributes:
        check: Its identity.
        resource: Kind, namespace and name of the object.
    """

    check: str
    resource: str


@dataclass(frozen=True)
class Exemption:
    """Where an objection does not hold.

    Attributes:
        reason: Why.
        holds: Whether it does for these values and this object.
    """

    reason: str
    holds: Callable[[Mapping[str, Any], str], bool]


def _always(_: Mapping[str, Any], __: str) -> bool:
    return True


def _in_tests(_: Mapping[str, Any], resource: str) -> bool:
    return resource.startswith("Pod.") and resource.endswith("-test-health")


def _without_digest(values: Mapping[str, Any], _: str) -> bool:
    return "digest" not in values.get("image", {}) or "extraContainers" in values


EXEMPTIONS = {
    "CKV_K8S_8": Exemption("a pod that asks once and ends has no life to probe", _in_tests),
    "CKV_K8S_9": Exemption("a pod that asks once and ends is behind no Service", _in_tests),
    "CKV_K8S_11": Exemption(
        "a limit of the processor throttles forecasts that have a deadline; requests bound shares",
        _always,
    ),
    "CKV_K8S_15": Exemption(
        "Always keeps pods from starting while the registry is away; tags are not moved", _always
    ),
    "CKV_K8S_35": Exemption(
        "the example hands over what a platform offers as variables; tokens of ours are files",
        lambda values, _: "secretRef" in json.dumps(values),
    ),
    "CKV_K8S_38": Exemption(
        "a token is mounted where training Jobs are run with it, and nowhere else",
        lambda values, _: values.get("jobs", {}).get("enabled", False),
    ),
    "CKV_K8S_43": Exemption(
        "which digest is right depends on the registry: image.digest pins it", _without_digest
    ),
    "CKV2_K8S_6": Exemption(
        "whether a network policy holds is the cluster's business: networkPolicy.enabled",
        lambda values, _: "networkPolicy" not in values,
    ),
}


def scan(manifests: str, folder: Path) -> list[Finding]:
    """What checkov finds in these manifests, of which none may be unreadable."""
    path = folder / "rendered.yaml"
    path.write_text(manifests, encoding="utf-8")
    answer = subprocess.run(
        [
            ENVIRONMENT / "bin" / "checkov",
            *("-f", path, "--framework", "kubernetes", "--skip-download", "-o", "json"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert answer.returncode in (0, 1), answer.stderr
    report = json.loads(answer.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 50, "next to nothing was scanned"
    failed = report["results"]["failed_checks"]
    return [Finding(each["check_id"], each["resource"]) for each in failed]


@pytest.mark.cluster
@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_every_finding_is_one_that_has_a_reason(helm: Helm, path: Path, tmp_path: Path) -> None:
    if not is_built(ENVIRONMENT, PINS):
        unavailable("checkov is not installed; `make test-cluster` does it where it can be had")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    answer = helm.try_template(
        {**values, "extraObjects": []}, "--namespace", "rancast", "--kube-version", "1.32"
    )
    assert answer.returncode == 0, answer.stderr
    unexplained = [
        finding
        for finding in scan(answer.stdout, tmp_path)
        if finding.check not in EXEMPTIONS
        or not EXEMPTIONS[finding.check].holds(values, finding.resource)
    ]
    assert unexplained == []


def test_every_exemption_has_a_reason_in_words() -> None:
    assert all(len(each.reason.split()) > 5 for each in EXEMPTIONS.values())


def test_pins_are_exact_and_complete_enough_to_be_the_only_source() -> None:
    pins = PINS.read_text(encoding="utf-8").splitlines()
    assert "checkov==3.3.30" in pins
    assert all(pin.startswith("#") or pin.count("==") == 1 for pin in pins)
