"""A bill of materials in JSON, as CycloneDX 1.6 (ECMA-424) defines it.

The same parts give the same bytes: its number is derived from what it says, and its time is given.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from service.inventory.component import Component, Origin, flattened
from service.inventory.licences import expression

SPECIFICATION = "1.6"
_NAMESPACE = uuid.UUID("6a1f0b0e-6a5a-5f0e-9d5b-0c1f5a7b2d11")
_ROOT = "image"


def bill_of_materials(
    components: Sequence[Component], name: str, version: str, made: datetime | None
) -> str:
    """The document as text, with a line's end.

    Args:
        components: What the image is made of.
        name: Of the image.
        version: Of the image.
        made: When it was built, in UTC; left out where it is None.
    """
    subject = {"type": "container", "bom-ref": _ROOT, "name": name, "version": version}
    content = {
        "metadata": {
            **({"timestamp": made.isoformat().replace("+00:00", "Z")} if made else {}),
            "lifecycles": [{"phase": "build"}],
            "component": subject,
        },
        "components": [_part(component) for component in components],
        "dependencies": _dependencies(components),
    }
    number = uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))
    document = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        **content,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def stated_parts(document: str) -> set[tuple[str, str, str]]:
    """Carrier, name and version of every part that a document states.

    Raises:
        ValueError: It is not JSON.
        KeyError: It is no such document.
    """
    return {
        (carrier, part["name"], part.get("version", ""))
        for outer in json.loads(document)["components"]
        for carrier, part in [
            ("", outer),
            *((outer["name"], inner) for inner in outer.get("components", ())),
        ]
    }


def actual_parts(components: Sequence[Component]) -> set[tuple[str, str, str]]:
    """The same of what is there."""
    return {(carrier, part.name, part.version) for part, carrier in flattened(components)}


def _part(component: Component, carrier: Component | None = None) -> dict[str, Any]:
    reference = component.purl
    if carrier is not None:
        # Two packages may carry the same library, and a document names each part once.
        reference = f"{carrier.purl}#{component.name}@{component.version}"
    inside = [_part(part, component) for part in component.inside]
    return {
        "type": "application" if component.origin is Origin.INTERPRETER else "library",
        "bom-ref": reference,
        "name": component.name,
        **({"version": component.version} if component.version else {}),
        "licenses": _licences(component),
        **({"purl": component.purl} if component.purl else {}),
        "properties": [{"name": "rancast:origin", "value": component.origin.value}],
        **({"components": inside} if inside else {}),
    }


def _licences(component: Component) -> list[dict[str, Any]]:
    if component.origin is not Origin.DEBIAN and expression(component.licence) is not None:
        return [{"expression": component.licence}]
    return [{"license": {"name": component.licence}}]


def _dependencies(components: Sequence[Component]) -> list[dict[str, Any]]:
    needed = {need for component in components for need in component.needs}
    direct = [component.purl for component in components if component.purl not in needed]
    return [
        {"ref": _ROOT, "dependsOn": direct},
        *(
            {"ref": component.purl, "dependsOn": list(component.needs)}
            for component in components
            if component.needs
        ),
    ]
