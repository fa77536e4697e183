import json
import re

import pytest
import yaml

from service.observability.__main__ import main
from service.observability.artefacts import CHART, differences, texts, write
from service.observability.thresholds import Thresholds


@pytest.fixture(scope="module")
def generated():
    return texts(Thresholds())


def test_the_checked_in_files_are_those_that_the_code_makes(capsys):
    assert main(["--check"]) == 0, f"run python -m service.observability\n{capsys.readouterr().out}"


def test_rule_files_are_plain_and_hold_nothing_of_helm(generated):
    rules = {path: text for path, text in generated.items() if path.startswith("rules/")}
    assert len(rules) == 6
    for text in rules.values():
        assert set(yaml.safe_load(text)) == {"groups"}
        # Prometheus' templates begin with a variable; anything else would be Helm's.
        assert all(inner.startswith(" $") for inner in re.findall(r"\{\{(.*?)\}\}", text))


def test_every_alert_says_what_where_and_what_to_do(generated):
    for path, text in generated.items():
        if not path.startswith("rules/"):
            continue
        for group in yaml.safe_load(text)["groups"]:
            for rule in group["rules"]:
                if "alert" not in rule:
                    continue
                assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
                assert rule["labels"]["severity"] in {"critical", "warning", "info"}
                anchor = f"docs/monitoring.md#{rule['alert'].lower()}"
                assert rule["annotations"]["runbook_url"] == anchor


def test_dashboards_fit_into_a_config_map_and_ask_for_no_input(generated):
    boards = [text for path, text in generated.items() if path.startswith("dashboards/")]
    assert len(boards) == 2
    for text in boards:
        assert len(text.encode()) < 2**20
        assert "${DS_" not in text
        assert "__inputs" not in json.loads(text)
    assert len({json.loads(text)["uid"] for text in boards}) == 2


def test_writing_twice_changes_nothing(tmp_path, generated):
    assert write(generated, tmp_path) == sorted(generated)
    assert write(generated, tmp_path) == []


def test_a_changed_a_missing_and_a_left_over_file_are_stale(tmp_path, generated, capsys):
    write(generated, tmp_path)
    (tmp_path / "rules" / "models.yaml").write_text("groups: []\n")
    (tmp_path / "rules" / "old.yaml").write_text("groups: []\n")
    (tmp_path / "dashboards" / "service.json").unlink()
    stale = ["dashboards/service.json", "rules/models.yaml", "rules/old.yaml"]
    assert differences(generated, tmp_path) == stale
    assert main(["--check", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [f"stale: {path}" for path in stale]
    assert main(["--output", str(tmp_path)]) == 0
    assert not (tmp_path / "rules" / "old.yaml").exists()
    assert differences(generated, tmp_path) == []


def test_thresholds_and_the_runbook_can_be_others(tmp_path):
    options = ["--threshold", "in_time_ratio=0.99", "--threshold", "near_rt_data_age_s=30"]
    assert main(["--output", str(tmp_path), *options, "--runbook", "https://x.example/m"]) == 0
    assert "> (14.4 * 0.01)" in (tmp_path / "rules" / "latency-budget.yaml").read_text()
    arrivals = (tmp_path / "rules" / "arrivals.yaml").read_text()
    assert "rancast_data_age_seconds > 30\n" in arrivals
    assert "https://x.example/m#rancastdatastale" in arrivals


def test_an_unknown_threshold_is_refused_and_nothing_is_written(tmp_path, capsys):
    assert main(["--output", str(tmp_path), "--threshold", "in_time=0.9"]) == 2
    assert "expected NAME=VALUE with one of answered_ratio" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_chart_is_where_the_files_belong():
    assert (CHART / "Chart.yaml").is_file()
