"""Every rule, as it is checked in, does what it should on series that are made up."""

from __future__ import annotations

import subprocess

import pytest

from service.observability.artefacts import CHART
from service.observability.rule import Alert, Recording
from tests.monitoring.accuracy_cases import ACCURACY
from tests.monitoring.arrivals_cases import ARRIVALS
from tests.monitoring.availability_cases import AVAILABILITY
from tests.monitoring.boundary_cases import BOUNDARIES
from tests.monitoring.capacity_cases import CAPACITY
from tests.monitoring.conftest import rules
from tests.monitoring.latency_budget_cases import LATENCY_BUDGET
from tests.monitoring.models_cases import MODELS
from tests.monitoring.rule_case import Case, Firing, Recorded, Silent, cases, run

EVERY: tuple[Case, ...] = (
    *AVAILABILITY,
    *LATENCY_BUDGET,
    *CAPACITY,
    *ARRIVALS,
    *MODELS,
    *ACCURACY,
    *BOUNDARIES,
)


@pytest.mark.parametrize("case", cases(EVERY))
def test_a_rule_does_what_it_should(case, promtool, tmp_path):
    assert run(promtool, tmp_path, case) == ""


def test_every_alert_is_seen_firing_with_each_of_its_labels_and_silent():
    fired = {
        (case.name, told.labels["severity"], told.labels.get("long_window"))
        for case in EVERY
        if isinstance(case, Firing)
        for told in case.told
    }
    alerts = [rule for rule in rules() if isinstance(rule, Alert)]
    wanted = {(rule.name, rule.severity.value, rule.labels.get("long_window")) for rule in alerts}
    assert fired == wanted
    quiet = {case.name for case in EVERY if isinstance(case, Silent)}
    assert quiet == {rule.name for rule in alerts}


def test_every_recorded_series_is_compared_with_values():
    compared = {name for case in EVERY if isinstance(case, Recorded) for name in case.names}
    assert compared == {rule.record for rule in rules() if isinstance(rule, Recording)}


def test_a_wrong_expectation_is_seen(promtool, tmp_path):
    first = AVAILABILITY[0]
    assert isinstance(first, Firing)
    wrong = Silent(first.name, "it should not", first.given, first.at)
    assert "RancastUnavailable" in run(promtool, tmp_path, wrong)


def test_promtool_accepts_every_file(promtool):
    files = sorted(str(path) for path in (CHART / "rules").glob("*.yaml"))
    answer = subprocess.run(
        [promtool, "check", "rules", *files],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    # Duplicate rules are no error to promtool, but it tells of them.
    assert "duplicate" not in answer.stdout
