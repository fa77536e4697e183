from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from service.packaging.chart import package_chart, read_chart
from service.packaging.csar import package_csar
from service.packaging.errors import UnusablePackageError
from service.packaging.helm_values import path_of, typed, with_overrides
from tests.helm.conftest import CHART, Helm
from tests.service.packaging.csars import OPTIONS

TEXTS = [
    *("true", "false", "null", "0", "1", "-1", "+2", "08080", "0.5", "1e3", "12345678901", ""),
    *("True", "yes", "a", "-", "1_000", "0x10", "-0", "+0", "~", "TRUE", "nUll", "-08", "+"),
    *("00", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "9" * 5_000),
]
DUMP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {values: {{ toJson .Values | quote }}}
"""


@pytest.mark.parametrize("text", TEXTS)
def test_text_becomes_what_helm_makes_of_it(each_helm: Helm, make_chart: Any, text: str):
    folder = make_chart({"values.yaml": "a: {b: 1, c: 2}\n", "templates/map.yaml": DUMP})
    answer = each_helm.run("template", "r", str(folder), "--set", f"a.b={text}")
    assert answer.returncode == 0, answer.stderr
    theirs = json.loads(yaml.safe_load(answer.stdout)["data"]["values"])
    ours = with_overrides({"a": {"b": 1, "c": 2}}, {"a.b": text})
    assert theirs.pop("global", {}) == {}
    assert ours == theirs
    assert type(ours["a"].get("b")) is type(theirs["a"].get("b"))


def test_a_dot_behind_a_backslash_is_part_of_the_name():
    assert path_of(r"podAnnotations.example\.com/a") == ["podAnnotations", "example.com/a"]
    assert typed("1") == 1


@pytest.mark.parametrize(
    ("key", "text", "complaint"),
    [
        ("access.open", "yes", "access/open"),
        ("replicaCount", "two", "replicaCount"),
        ("settings.max_cels", "5", "max_cels"),
        ("settings.rate_limit_per_second", "0.5", "rate_limit_per_second"),
        ("service.type", "Cluster", "service/type"),
        ("podAnnotations.a", "1", "podAnnotations"),
    ],
)
def test_what_our_chart_would_refuse_on_the_ric_is_refused_here(helm, key, text, complaint):
    given = {"access.tokenSecret": "tokens", key: text}
    sets = [part for each in given.items() for part in ("--set", "=".join(each))]
    assert helm.run("template", "r", str(CHART), *sets).returncode != 0
    package = package_chart(read_chart(CHART))
    with pytest.raises(UnusablePackageError, match=rf"values\.schema\.json.*{complaint}"):
        package_csar(package, replace(OPTIONS, overrides=given))


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("{", "expected JSON"),
        ("[]", "a JSON object"),
        ('{"type": "objet"}', "a JSON Schema"),
        ('{"$ref": "#/none"}', "leads nowhere"),
    ],
)
def test_a_chart_whose_schema_is_none_is_said(make_chart, schema, complaint):
    package = package_chart(read_chart(make_chart({"values.schema.json": schema})))
    with pytest.raises(UnusablePackageError, match=complaint):
        package_csar(package, OPTIONS)
