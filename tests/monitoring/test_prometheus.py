"""A real Prometheus scrapes the running service, records, and fires an alert."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.observability.artefacts import CHART
from service.observability.objectives import objectives
from service.observability.thresholds import Thresholds
from tests.monitoring.conftest import clean_settings, history, rules
from tests.monitoring.test_expressions import queries, without_variables
from tests.service.fakes import RepeatLast
from tests.service.live import Live, live

PATIENCE_S = 60.0
IN_TIME, ANSWERED = objectives(Thresholds())


class Server:
    """A Prometheus that runs."""

    def __init__(self, http: httpx.Client, process: subprocess.Popen[bytes]) -> None:
        self._http = http
        self._process = process

    def is_ready(self) -> bool:
        """Whether it answers queries; before, its port is closed or it answers 503."""
        try:
            return self._http.get("/-/ready").is_success
        except httpx.TransportError:
            return False

    def get(self, path: str, **parameters: str) -> Any:
        """The data of one answer of its API."""
        answer = self._http.get(f"/api/v1/{path}", params=parameters)
        answer.raise_for_status()
        return answer.json()["data"]

    def value(self, expression: str) -> float | None:
        """What an expression shows now, None for nothing."""
        result = self.get("query", query=expression)["result"]
        return float(result[0]["value"][1]) if result else None

    def until(self, holds: Callable[[], Any]) -> Any:
        """Ask until there is an answer; Prometheus works by its own clock."""
        end = time.monotonic() + PATIENCE_S
        between = threading.Event()
        while time.monotonic() < end:
            assert self._process.poll() is None, "prometheus has ended"
            if found := holds():
                return found
            between.wait(0.1)
        pytest.fail("Prometheus did not come to it in time", pytrace=True)


@contextmanager
def scraping(prometheus: str, target: Live, folder: Path) -> Iterator[Server]:
    """Prometheus with the rules that ship, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    labels = {"namespace": "ran", "pod": "rancast-0"}
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(CHART / "rules" / "*.yaml")],
        "scrape_configs": [
            {
                "job_name": "rancast",
                "static_configs": [{"targets": [f"127.0.0.1:{target.port}"], "labels": labels}],
            }
        ],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    command = [
        prometheus,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://{address}") as http:
            yield Server(http, process)
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def service() -> Iterator[Live]:
    predictor = RepeatLast()
    predictor.failing_cells = {"broken"}
    with live(clean_settings(), predictor=predictor) as one:
        yield one


@pytest.fixture(scope="module")
def server(
    prometheus: str, service: Live, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with scraping(prometheus, service, tmp_path_factory.mktemp("prometheus")) as one:
        one.until(one.is_ready)
        one.until(lambda: one.value("rancast_ready") == 1)
        yield one


def ask(service: Live, cell: str) -> int:
    """Ask for a forecast; returns the status."""
    body = {"series": [{**history(), "cell": cell}], "horizon": 2, "budget_ms": 30_000}
    return httpx.post(f"{service.url}/v1/forecast", json=body).status_code


def test_requests_are_recorded_as_in_time_and_as_failed(server, service):
    def recorded() -> bool:
        # Rates need growth between two scrapes, so the load goes on meanwhile.
        assert [ask(service, cell) for cell in ("a", "b", "broken")] == [200, 200, 500]
        failed = server.value(ANSWERED.ratio_series("5m"))
        return bool(server.value(IN_TIME.requests_series("5m"))) and bool(failed)

    server.until(recorded)
    assert server.value(IN_TIME.ratio_series("5m")) == 0
    failed = server.value(ANSWERED.ratio_series("5m"))
    assert failed is not None
    assert 0 < failed < 1


def test_an_alert_fires_with_the_labels_of_its_replica(server, service):
    assert ask(service, "broken") == 500

    def firing() -> list[Any]:
        alerts = server.get("alerts")["alerts"]
        return [
            each
            for each in alerts
            if each["state"] == "firing" and each["labels"]["alertname"] == "RancastInternalErrors"
        ]

    (alert,) = server.until(firing)
    assert alert["labels"] == {
        "alertname": "RancastInternalErrors",
        "namespace": "ran",
        "job": "rancast",
        "pod": "rancast-0",
        "instance": f"127.0.0.1:{service.port}",
        "reason": "inference",
        "severity": "warning",
    }
    assert "(inference)" in alert["annotations"]["description"]


def test_every_rule_is_evaluated_without_an_error(server):
    def evaluated() -> list[Any]:
        groups = server.get("rules")["groups"]
        found = [rule for group in groups for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else []

    found = server.until(evaluated)
    assert len(found) == len(list(rules()))
    assert [rule for rule in found if rule["health"] != "ok" or rule.get("lastError")] == []


def test_every_panel_can_be_drawn(server):
    for name, query in queries():
        expression = without_variables(query.expression)
        for variable, value in {"namespace": "ran", "job": "rancast", "pod": ".*"}.items():
            expression = expression.replace(f"${variable}", value)
        assert server.get("query", query=expression)["resultType"] == "vector", name


def test_the_variables_of_the_dashboards_find_the_service(server):
    found = server.get("query", query="rancast_ready{}")["result"]
    assert [(each["metric"]["namespace"], each["metric"]["job"]) for each in found] == [
        ("ran", "rancast")
    ]


def test_promtool_finds_nothing_wrong_with_the_metrics(promtool, service):
    assert ask(service, "a") == 200
    answer = subprocess.run(
        [promtool, "check", "metrics"],
        input=httpx.get(f"{service.url}/metrics").text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.stdout + answer.stderr == ""
    assert answer.returncode == 0
