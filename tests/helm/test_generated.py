"""What is generated in the chart is what its sources say today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from service.settings import Settings
from tests.helm.chart_readme import UndescribedValueError, rows, table
from tests.helm.conftest import CHART
from tests.helm.settings_schema import RESERVED, settings_schema
from tests.helm.write_chart import written

VALUES = (CHART / "values.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(written()), ids=lambda path: path.name)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == written()[path], (
        "run python -m tests.helm.write_chart"
    )


def test_the_chart_brings_the_projects_licence_along() -> None:
    # A chart is handed on by itself.
    assert (CHART / "LICENSE").read_bytes() == (CHART.parents[1] / "LICENSE").read_bytes()


def test_every_value_is_a_row_with_its_default() -> None:
    found = {row.path: row for row in rows(VALUES)}
    assert found["persistence.size"].default == "5Gi"
    assert found["podSecurityContext"].default["runAsNonRoot"] is True
    assert found["image.registry"].section == "Image"
    assert "retraining.data.paths" in found
    assert len(found) > 150


def test_a_row_says_value_type_default_and_meaning_in_one_line() -> None:
    text = table(
        "## One\n\n# -- What it\n# does, `a|b`.\nvalue: 3\nouter:\n  # -- Inner.\n  list: []\n"
    )
    assert "| `value` | int | `3` | What it does, `a|b`. |".replace("a|b", r"a\|b") in text
    assert "| `outer.list` | list | `[]` | Inner. |" in text
    assert "### One" in text


def test_a_value_without_a_description_is_an_error() -> None:
    with pytest.raises(UndescribedValueError, match=r"outer\.second"):
        rows("outer:\n  # -- First.\n  first: 1\n  second: 2\n")
    assert len(rows("# -- All of it.\nouter:\n  first: 1\n  second: 2\n")) == 1


def test_the_schema_knows_every_setting_but_those_that_follow_from_other_values() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    known = set(schema["properties"]["settings"]["properties"])
    assert known == set(Settings.model_fields) - RESERVED
    assert schema["properties"]["settings"]["additionalProperties"] is False


def test_bounds_of_settings_are_those_of_the_service() -> None:
    schema = settings_schema()
    assert schema["threads"]["minimum"] == 1
    assert schema["threads"]["maximum"] == 256
    assert schema["snap_tolerance_ratio"]["exclusiveMinimum"] == 0
    assert schema["log_level"]["enum"] == ["debug", "info", "warning", "error"]
    assert schema["rate_limit_burst"]["type"] == "integer"
    assert schema["catalogue_files"]["anyOf"][0] == {"type": "string"}


def test_values_are_valid_yaml_without_duplicates() -> None:
    keys = [line.split(":")[0] for line in VALUES.splitlines() if line[:1].isalpha()]
    assert len(keys) == len(set(keys)) == len(yaml.safe_load(VALUES))
