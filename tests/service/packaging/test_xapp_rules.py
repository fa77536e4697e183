from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from service.packaging.image import image_reference
from service.packaging.xapp import XappOptions, controls_schema, xapp_descriptor
from service.packaging.xapp_rules import check_xapp, check_xapp_files

Change = Callable[[dict[str, Any]], Any]


def descriptor() -> dict[str, Any]:
    image = image_reference("registry.example.org/ran/rancast:0.1.0")
    return xapp_descriptor(XappOptions("rancast", "0.1.0", image, {"open_access": "true"}))


def ports(fields: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = fields["messaging"]["ports"]
    return found


def test_the_smallest_descriptor_that_the_real_builder_took_is_fine(shared):
    folder = shared / "samples" / "xapp"
    text = (folder / "config-file.min.json").read_text(encoding="utf-8")
    schema = (folder / "controls-schema.min.json").read_bytes()
    assert check_xapp_files(text, schema) == []


@pytest.mark.parametrize("message", ["DCAPTERM_RTPM_RMR_MSGTYPE", "RIC_ALARM_QUERY"])
def test_every_type_that_the_routing_manager_knows_is_taken(message):
    fields = descriptor()
    ports(fields)[1]["rxMessages"] = [message]
    assert check_xapp(fields, controls_schema()) == []


def test_a_schema_that_takes_everything_is_a_schema():
    assert check_xapp(descriptor(), {}) == []


def test_a_descriptor_without_controls_needs_no_schema():
    fields = descriptor()
    del fields["controls"]
    assert check_xapp(fields, None) == []


BROKEN: list[tuple[str, Change, str, str]] = [
    # What dms_cli refuses.
    ("version", lambda d: d.update(version="1.0"), "version", "does not match"),
    ("command", lambda d: d["containers"][0].update(command="sh"), "containers/0/command", "array"),
    ("no image", lambda d: d["containers"][0].pop("image"), "containers/0", "'image'"),
    ("no tag", lambda d: d["containers"][0]["image"].pop("tag"), "containers/0/image", "'tag'"),
    (
        "path in registry",
        lambda d: d["containers"][0]["image"].update(registry="ghcr.io/org"),
        "containers/0/image/registry",
        "neither a path",
    ),
    ("metrics", lambda d: d.update(metrics=[]), "metrics", "object"),
    (
        "probe",
        lambda d: d["livenessProbe"].pop("periodSeconds"),
        "livenessProbe",
        "not valid under any",
    ),
    ("two of three", lambda d: ports(d)[1].pop("policies"), "messaging/ports/1", "dependency"),
    ("policy", lambda d: ports(d)[1].update(policies=["a"]), "messaging/ports/1/policies/0", "int"),
    ("port", lambda d: ports(d)[0].update(port="8080"), "messaging/ports/0/port", "integer"),
    # What goes wrong later.
    ("no name", lambda d: d.pop("name"), "name", "registers no xApp"),
    ("two names", lambda d: d.update(xapp_name="other"), "xapp_name", "'rancast'"),
    ("upper case", lambda d: d.update(name="Cast", xapp_name="Cast"), "name", "lower-case"),
    ("http", lambda d: d.update(name="httpcast", xapp_name="httpcast"), "name", "rmr"),
    ("no version", lambda d: d.pop("version"), "version", "none"),
    ("no container", lambda d: d.update(containers=[]), "containers", "at least one"),
    ("empty tag", lambda d: d["containers"][0]["image"].update(tag=""), "containers/0", "a tag"),
    ("number", lambda d: d["appenv"].update(RANCAST_PORT=80), "appenv/RANCAST_PORT", "a string"),
    ("list", lambda d: d.update(appenv=[]), "appenv", "by name"),
    ("no file", lambda d: d["appenv"].pop("CONFIG_FILE"), "appenv/CONFIG_FILE", "mounted"),
    ("annotation", lambda d: d.update(annotations={"a": True}), "annotations/a", "a string"),
    ("no http", lambda d: ports(d)[0].update(name="rest"), "messaging/ports", "called http"),
    (
        "container",
        lambda d: ports(d)[0].update(container="a"),
        "messaging/ports/0/container",
        "'rancast'",
    ),
    ("range", lambda d: ports(d)[1].update(port=70_000), "messaging/ports/1/port", "65535"),
    ("route", lambda d: ports(d)[2].update(port=4562), "messaging/ports/2/port", "4561"),
    ("no rmr", lambda d: d["messaging"].update(ports=ports(d)[:1]), "messaging/ports", "rmr in"),
    ("port_name", lambda d: ports(d)[0].update(name="http_1"), "messaging/ports/0/name", "hyphens"),
    ("port-name", lambda d: ports(d)[0].update(name="a" * 16), "messaging/ports/0/name", "15"),
    ("4560", lambda d: ports(d)[1].update(name="4560"), "messaging/ports/1/name", "a letter"),
    ("blank", lambda d: d["appenv"].update({"A B": "1"}), "appenv/A B", "it is lost"),
    (
        "two containers",
        lambda d: d["containers"].append(dict(d["containers"][0], name="b")),
        "containers/0",
        "the last one alone",
    ),
    ("same port", lambda d: ports(d)[1].update(port=8080), "messaging/ports", "[8080] twice"),
    ("same name", lambda d: ports(d)[1].update(name="http"), "messaging/ports", "['http'] twice"),
    ("order", lambda d: ports(d).insert(1, ports(d).pop()), "messaging/ports", "before rmrroute"),
    (
        "message",
        lambda d: ports(d)[1].update(rxMessages=["RIC_METRICS"]),
        "messaging/ports/1/rxMessages",
        "'RIC_METRICS'",
    ),
    (
        "no policies",
        lambda d: ports(d)[1].update(rxMessages=["A1_POLICY_REQ"]),
        "messaging/ports/1/policies",
        "no policy is routed",
    ),
    (
        "old section",
        lambda d: d.update(rmr={"rxMessages": ["TS_UE_LIST"], "txMessages": [], "policies": []}),
        "rmr/rxMessages",
        "reads that one first",
    ),
    ("old text", lambda d: d.update(rmr={"rxMessages": 5}), "rmr/rxMessages", "got 5"),
    ("no probe", lambda d: d.pop("livenessProbe"), "livenessProbe", "hung"),
    (
        "probe's port",
        lambda d: d["readinessProbe"]["httpGet"].update(port=1),
        "readinessProbe/httpGet/port",
        "8080",
    ),
]


@pytest.mark.parametrize(
    ("change", "place", "reason"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN]
)
def test_each_broken_descriptor_is_refused_with_the_reason(change, place, reason):
    fields = descriptor()
    change(fields)
    findings = check_xapp(fields, controls_schema())
    assert [each for each in findings if each.place.startswith(place) and reason in each.reason], (
        list(map(str, findings))
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "a schema file beside"),
        (b"{", "expected JSON"),
        (b"[]", "a list"),
        (b'{"type": "objet"}', "draft-07"),
        (b'{"$ref": "#/definitions/none"}', "leads nowhere: /definitions/none"),
        (b'{"$ref": "http://127.0.0.1:9/a"}', "leads nowhere: http://127.0.0.1:9/a"),
        (b'{"$ref": "#/properties/controls"}', "endless"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"required": ["logger"]}', "'logger' is a required property"),
    ],
)
def test_each_broken_controls_schema_is_refused_with_the_reason(schema, reason):
    (finding,) = check_xapp_files(json.dumps(descriptor()), schema)
    assert reason in finding.reason
