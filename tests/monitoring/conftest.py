"""Programs of Prometheus, and what the running service exports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import httpx
import pytest

from model.inference_path import PathKind
from model.predictor import Rung
from service.budget import Profile
from service.errors import ANSWERS
from service.metrics import CompilationResult, Outcome, Stage
from service.observability.artefacts import rule_files
from service.observability.rule import Alert, Recording
from service.observability.thresholds import Thresholds
from service.realised.kept import Fate
from service.settings import Settings
from tests.monitoring.expression_check import Checker
from tests.monitoring.series import Exported, exported_by
from tests.monitoring.tools import find
from tests.service.live import live

# Lists that are closed in the code; a rule that matches anything else never fires.
REASONS = {answer.slug for answer in ANSWERS.values()} | {"route", "bug"}
RUNGS = {rung.value for rung in Rung}
RESULTS = {"ok", "failed"}
VALUES: Mapping[tuple[str, str], set[str]] = {
    ("rancast_requests_rejected_total", "reason"): REASONS,
    ("rancast_forecasts_total", "rung"): RUNGS,
    ("rancast_stage_duration_seconds_sum", "stage"): {stage.value for stage in Stage},
    ("rancast_request_duration_seconds_count", "profile"): {each.value for each in Profile},
    ("rancast_inference_cost_seconds", "per"): {"call", "kilosample"},
    ("rancast_inference_info", "path"): {kind.value for kind in PathKind},
    ("rancast_compilations_total", "result"): {each.value for each in CompilationResult},
    ("rancast_observations_total", "outcome"): {each.value for each in Outcome},
    ("rancast_ingested_files_total", "result"): RESULTS,
    ("rancast_reloads_total", "result"): RESULTS,
    ("rancast_reloads_total", "kind"): {"tokens", "certificates", "models"},
    ("rancast_connections_closed_total", "reason"): {
        *("full", "slow", "unread", "head_too_large", "pipelined")
    },
    ("rancast_realised_unscored_total", "reason"): {fate.value for fate in Fate},
    **{
        (f"rancast_realised_{name}", "rung"): RUNGS
        for name in (
            *("samples_total", "covered_total", "quantile_loss_total", "absolute_target_total"),
            *("coverage_ratio", "wql"),
        )
    },
    ("rancast_nominal_coverage_ratio", "rung"): RUNGS,
}


@pytest.fixture(scope="session")
def promtool() -> str:
    return find("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    return find("prometheus")


def clean_settings() -> Settings:
    """Settings that whoever runs the tests does not change."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RANCAST_")]:
            patch.delenv(name)
        return Settings()


def history(start: str = "2026-11-01T00:00:00Z") -> dict[str, object]:
    """One cell's samples, as the routes of forecasts and observations take them."""
    kpis = {"RRU.PrbTotDl": [12.0, 13.5, 15.5]}
    return {"cell": "NRCellDU=1", "start": start, "step_seconds": 900, "kpis": kpis}


@pytest.fixture(scope="session")
def exported() -> Exported:
    """Every series of the application's own registry, once it has started and holds a cell."""
    with live(clean_settings()) as one:
        # The age of the data is absent while there are none.
        answer = httpx.post(f"{one.url}/v1/observations", json={"series": [history()]})
        answer.raise_for_status()
        return exported_by(one.services.metrics._registry)


@pytest.fixture(scope="session")
def checker(exported: Exported) -> Checker:
    """Knows what is exported, what is recorded, and what alerts."""
    recorded: dict[str, frozenset[str]] = {}
    alerts: set[str] = {"alertname", "alertstate", "severity"}
    for rule in rules():
        labels = Checker(exported, recorded, VALUES).labels(rule.expression)
        if isinstance(rule, Recording):
            recorded[rule.record] = labels
        else:
            alerts |= labels | set(rule.labels)
    return Checker(exported, {**recorded, "ALERTS": frozenset(alerts)}, VALUES)


def rules() -> Iterator[Recording | Alert]:
    """All rules, in the order of the files and of what is in them."""
    for file in rule_files(Thresholds()):
        for group in file.groups:
            yield from group.rules
