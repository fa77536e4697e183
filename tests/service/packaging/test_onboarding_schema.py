from __future__ import annotations

import builtins
import json
import re
from typing import Any

import pytest

from service.packaging.errors import PackageError
from service.packaging.onboarding_schema import onboarding_schema, schema_findings

FACT = re.compile(r"^(/\S*) +(\w+) ?(\{.*\})?$")


def stated_facts(text: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Type and demands by path, of the first of the two schemas that the sample lists."""
    section = text.partition("B) DOC schema")[0]
    found = {}
    for line in section.splitlines():
        if match := FACT.match(line.strip()):
            demands = (
                json.loads(match[3].replace("'", '"').replace("\\\\", "\\\\")) if match[3] else {}
            )
            found[match[1]] = (match[2], demands)
    return found


def at_path(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for part in filter(None, path.split("/")):
        name, is_item = part.removesuffix("[]"), part.endswith("[]")
        schema = schema["properties"][name]
        if is_item:
            schema = schema["items"]
    return schema


def test_the_schema_says_what_the_platforms_says(shared):
    text = (shared / "samples" / "xapp" / "embedded_schema_facts.txt").read_text(encoding="utf-8")
    facts = stated_facts(text)
    assert len(facts) > 30
    ours = onboarding_schema(None)
    for path, (kind, demands) in facts.items():
        if path.startswith("/metrics["):
            continue  # items of an object, which say nothing
        here = at_path(ours, path)
        assert here.get("type", "None") == kind, path
        assert here.get("required", []) == demands.get("required", []), path
        alternatives = [set(each["required"]) for each in here.get("oneOf", [])]
        assert alternatives == [set(each) for each in demands.get("oneOf_required", [])], path
        assert {key: set(each) for key, each in here.get("dependencies", {}).items()} == {
            key: set(each) for key, each in demands.get("dependencies", {}).items()
        }, path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/version", value)
        for value in ("1.0.0", "1.0", "1.0.0-c0a", "1.0.0-01", "1.0.0+a", "v1.0.0", "1.0.0 ", "")
    ]
    + [
        ("/containers[]/image/registry", value)
        for value in (
            *("ghcr.io", "ghcr.io/org", "localhost:5000", "10.0.0.1:5000", "300.0.0.1"),
            *("a.b:1", "a.b:", "nexus3.o-ran-sc.org:10002", "", "registry.example.org "),
        )
    ],
)
def test_patterns_take_what_the_platforms_take(shared, path, value):
    text = (shared / "samples" / "xapp" / "embedded_schema_facts.txt").read_text(encoding="utf-8")
    theirs = stated_facts(text)[path][1]["pattern"]
    ours = at_path(onboarding_schema(None), path)["pattern"]
    assert (re.search(ours, value) is None) is (re.search(theirs, value) is None)


def test_without_the_library_it_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "jsonschema":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PackageError, match="extra `packaging`"):
        list(schema_findings({}, None))
