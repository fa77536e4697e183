"""The configurations that docs/monitoring.md shows make the labels that the rules go by."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

PAGE = Path(__file__).resolve().parents[2] / "docs" / "monitoring.md"


def configurations() -> list[dict[str, Any]]:
    """All configurations of Prometheus on the page, in order."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    return [found for block in blocks if "scrape_configs" in (found := yaml.safe_load(block))]


def targets(promtool: str, folder: Path, configuration: dict[str, Any]) -> list[dict[str, str]]:
    """The labels of what Prometheus would scrape."""
    path = folder / "prometheus.yml"
    path.write_text(json.dumps({**configuration, "rule_files": []}), encoding="utf-8")
    answer = subprocess.run(
        [promtool, "check", "service-discovery", "--timeout=1s", str(path), "rancast"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    # In no order: discoveries answer when they do.
    found = [each["labels"] for each in json.loads(answer.stdout) if each["labels"]]
    return sorted(found, key=lambda labels: labels["instance"])


def pod(release: str, number: int, *, name: str = "rancast", port: str = "http") -> dict[str, Any]:
    """A pod's port, as the discovery of Kubernetes describes it."""
    label = "__meta_kubernetes_pod_label_app_kubernetes_io_"
    labels = {
        f"{label}name": name,
        f"{label}instance": release,
        f"{label}component": "service",
        "__meta_kubernetes_pod_container_port_name": port,
        "__meta_kubernetes_pod_name": f"{release}-{number}",
        "__meta_kubernetes_namespace": "ricxapp",
    }
    return {"targets": [f"10.0.0.{number}:{8080 if port == 'http' else 4560}"], "labels": labels}


@pytest.fixture(scope="module")
def page() -> list[dict[str, Any]]:
    return configurations()


def test_without_kubernetes_a_service_is_its_job(promtool, tmp_path, page):
    (found,) = targets(promtool, tmp_path, page[0])
    assert (found["job"], found["instance"]) == ("rancast", "rancast.example.org:8080")
    assert "namespace" not in found


def test_two_releases_in_one_namespace_are_two_services_by_their_jobs(promtool, tmp_path, page):
    (job,) = page[1]["scrape_configs"]
    # Prometheus as Debian builds it has no discovery of Kubernetes.
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    job["static_configs"] = [
        pod("east", 1),
        pod("west", 2),
        pod("west", 2, port="rmrdata"),
        pod("postgres", 3, name="postgres"),
    ]
    found = targets(promtool, tmp_path, page[1])
    assert [(each["namespace"], each["job"], each["pod"]) for each in found] == [
        ("ricxapp", "east", "east-1"),
        ("ricxapp", "west", "west-2"),
    ]
    assert [each["instance"] for each in found] == ["10.0.0.1:8080", "10.0.0.2:8080"]
