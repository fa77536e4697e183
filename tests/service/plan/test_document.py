"""A plan as JSON is all of it, and is read back as it was."""

from __future__ import annotations

import json

import pytest

from service.plan.document import PlanFileError, from_document, to_document, write_document
from tests.service.plan.makers import made_plan


def test_what_is_written_is_read_back_as_it_was(tmp_path):
    plan = made_plan()
    path = tmp_path / "new" / "plan.json"
    write_document(plan, path)
    assert from_document(json.loads(path.read_text(encoding="utf-8"))) == plan


def test_names_of_the_json_are_those_of_the_documentation():
    document = to_document(made_plan())
    assert document["schema"] == "rancast-plan/1"
    assert document["measurements"]["model"]["digest"] == "sha256:0"
    assert document["measurements"]["path"]["kind"] == "compiled"
    assert document["measurements"]["rungs"][0]["curve"]["points"][0]["cells"] == 1
    assert document["placement"]["fits"][0]["rung"] == "full"
    assert document["question"]["loop_ms"] == {"near-rt": 100.0, "non-rt": 5000.0}


@pytest.mark.parametrize("change", [{"schema": "rancast-plan/0"}, {"placement": {}}])
def test_what_is_no_plan_is_refused(change):
    with pytest.raises(PlanFileError, match="expected a plan of rancast-plan/1"):
        from_document(to_document(made_plan()) | change)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PlanFileError, match=r"plan\.json cannot be written"):
        write_document(made_plan(), tmp_path / "file" / "plan.json")
