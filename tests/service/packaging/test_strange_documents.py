"""Whatever a document holds, the checks say what is wrong with it and do not fall over."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.packaging.xapp_rules import check_xapp_files
from tests.service.packaging.csars import Files, files_of, findings_of
from tests.service.packaging.test_csar_rules import invoker, job, producer
from tests.service.packaging.test_xapp_rules import descriptor

# The chart is written once, and not changed.
UNCHANGED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.just([])
    | st.just({})
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all values of a document."""
    inner: list[Any] = []
    if isinstance(document, dict):
        inner = list(document.items())
    elif isinstance(document, list):
        inner = list(enumerate(document))
    return [path, *(each for key, value in inner for each in places(value, (*path, key)))]


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value in one place."""
    if not path:
        return value
    changed = copy.deepcopy(document)
    here = changed
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return changed


@st.composite
def strange(draw: st.DrawFn, document: Any) -> Any:
    return with_value(document, draw(st.sampled_from(places(document))), draw(VALUES))


FULL = descriptor() | {
    "rmr": {"rxMessages": [], "txMessages": [], "policies": []},
    "metrics": {},
}


@given(strange(FULL))
def test_no_descriptor_is_too_strange(fields):
    if isinstance(fields, dict):
        for finding in check_xapp_files(json.dumps(fields), b"{}"):
            assert finding.reason


@given(VALUES)
def test_no_controls_schema_is_too_strange(schema):
    for finding in check_xapp_files(json.dumps(FULL), json.dumps(schema).encode()):
        assert finding.reason


@pytest.fixture
def good(make_chart: Any) -> Files:
    extra = {
        "Files/Sme/invokers/mine.json": invoker(),
        "Files/Dme/infoconsumers/pm.json": job(),
        "Files/Dme/infoproducers/mine.json": producer(),
        "Files/Dme/producerinfotypes/mine.json": {"info_job_data_schema": {}},
    }
    chart: Path = make_chart()
    return files_of(chart) | {name: json.dumps(each).encode() for name, each in extra.items()}


@UNCHANGED
@given(data=st.data())
def test_no_document_of_a_package_is_too_strange(good, data):
    names = sorted(name for name in good if name.endswith(".json"))
    name = data.draw(st.sampled_from(names))
    document = data.draw(strange(json.loads(good[name])))
    for finding in findings_of(good | {name: json.dumps(document).encode()}):
        assert finding.reason


@UNCHANGED
@given(data=st.data())
def test_no_service_descriptor_is_too_strange(good, data):
    import yaml

    name = "Definitions/asd.yaml"
    document = data.draw(strange(yaml.safe_load(good[name])))
    for finding in findings_of(good | {name: yaml.safe_dump(document).encode()}):
        assert finding.reason


@UNCHANGED
@given(data=st.data())
def test_no_file_of_a_package_is_too_damaged(good, data):
    name = data.draw(st.sampled_from(sorted(good)))
    content = good[name]
    at = data.draw(st.integers(0, max(0, len(content) - 1)))
    damaged = content[:at] + data.draw(st.binary(max_size=3)) + content[at + 1 :]
    for finding in findings_of(good | {name: damaged}, signed=False):
        assert finding.reason
