"""The JSON Schema that `dms_cli onboard` holds an xApp descriptor to.

Its facts are those of ric-plt-appmgr, xapp_onboarder/helm_controller/xapp_schema.py, in which
`controls` is replaced by the xApp's own schema; the schema in that project's documentation differs,
and is not the one that is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from service.packaging.document import shown
from service.packaging.errors import UnusableSchemaError
from service.packaging.finding import Finding
from service.packaging.json_schema import Fault, faults
from service.packaging.version import SEMVER

LISTS = ("txMessages", "rxMessages", "policies")
_REGISTRY = (
    r"^([A-Za-z0-9.-]+\.[A-Za-z]+|(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}"
    r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d))(?::\d+)?$"
)
_STRING, _INTEGER, _ARRAY = {"type": "string"}, {"type": "integer"}, {"type": "array"}


def onboarding_schema(controls_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The schema that `dms_cli` holds a descriptor to."""
    probe = {
        "type": "object",
        "oneOf": [
            {"required": [kind, "initialDelaySeconds", "periodSeconds"]}
            for kind in ("exec", "httpGet")
        ],
        "properties": {
            "exec": _object(["command"], command=_ARRAY),
            "httpGet": _object(["path", "port"], path=_STRING, port=_INTEGER),
            "initialDelaySeconds": _INTEGER,
            "periodSeconds": _INTEGER,
        },
    }
    port = _object(
        ["name", "container", "port"],
        name=_STRING,
        container=_STRING,
        port=_INTEGER,
        description=_STRING,
        txMessages={"type": "array", "items": _STRING},
        rxMessages={"type": "array", "items": _STRING},
        policies={"type": "array", "items": _INTEGER},
    )
    together = {each: [other for other in LISTS if other != each] for each in LISTS}
    image = _object(
        ["registry", "name", "tag"],
        registry={"type": "string", "pattern": _REGISTRY},
        name=_STRING,
        tag=_STRING,
    )
    container = _object(["name", "image"], name=_STRING, image=image, command=_ARRAY, args=_ARRAY)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_object(
            [],
            name=_STRING,
            version={"type": "string", "pattern": f"^{_anonymous(SEMVER.pattern)}$"},
            annotations={"type": "object"},
            containers={"type": "array", "items": container},
            livenessProbe=probe,
            readinessProbe=probe,
            messaging=_object(
                ["ports"], ports={"type": "array", "items": {**port, "dependencies": together}}
            ),
            metrics={"type": "object"},
            # Without a file, the builder's own schema asks for a key that nobody has.
            controls=dict(
                {"required": ["__empty_control_section__"]}
                if controls_schema is None
                else controls_schema
            ),
        ),
    }


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def _anonymous(pattern: str) -> str:
    """A Python expression in the dialect of JSON Schema, which has other names for groups."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def schema_findings(
    descriptor: Mapping[str, Any], controls_schema: Mapping[str, Any] | None
) -> Iterator[Finding]:
    """What `dms_cli` would refuse.

    Args:
        descriptor: The descriptor.
        controls_schema: What it is onboarded with; None where there is no such file.

    Raises:
        PackageError: The library that validates JSON Schemas is not installed.
    """
    if "controls" in descriptor and controls_schema is None:
        yield Finding(
            "controls", "expected a schema file beside a controls section, got none; onboard both"
        )
        return
    try:
        found = faults(onboarding_schema(controls_schema), descriptor)
    except UnusableSchemaError as error:
        yield Finding("controls schema", str(error))
        return
    for fault in found:
        yield Finding(fault.place, _words(fault))


def _words(fault: Fault) -> str:
    if fault.pattern == _REGISTRY:
        return (
            "expected a host with a dot in its name, and perhaps a port, got "
            f"{shown(fault.value)}: dms_cli takes neither a path, which belongs to the image's "
            "name, nor localhost"
        )
    return fault.message
