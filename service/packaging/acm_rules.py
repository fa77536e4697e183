"""What is wrong with the compositions of a CSAR, and with their instances.

The manager sends both to ONAP's policy-clamp, whose Kubernetes participant pulls the chart and
calls Helm; nobody looks at them before.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.packaging.chart import Chart
from service.packaging.composition import COMPOSITION_FILE, INSTANCES
from service.packaging.csar_contents import CsarContents, at, json_document
from service.packaging.errors import PackageError, UnusableSchemaError
from service.packaging.finding import Finding
from service.packaging.helm_values import SCHEMA_FILE, misfits, path_of, typed
from service.packaging.tokens import COMPOSITION_ID, INSTANCE_ID, SME_DISCOVERY
from service.packaging.web_address import is_web_address

_NEEDED = {
    "environment.appId": INSTANCE_ID,
    "environment.smeDiscoveryEndpoint": SME_DISCOVERY,
}
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
# Most letters of each; Helm's own bound on a release leaves room for what a chart puts behind it.
_NAMES = {"namespace": 63, "releaseName": 53, "podName": 53}
# What helm --set splits at, or makes a list of.
_SPECIAL = set(",{}[]\\\n")


def check_composition(contents: CsarContents) -> Iterator[Finding]:
    """What is wrong with the definition of the composition."""
    folder = COMPOSITION_FILE.rpartition("/")[0] + "/"
    if COMPOSITION_FILE not in contents.files:
        yield Finding(COMPOSITION_FILE, "expected this file, got none")
        return
    if len(found := contents.below(folder)) > 1:
        yield Finding(folder, f"expected exactly one composition, got {found}")
    try:
        elements = _elements(json_document(contents, COMPOSITION_FILE))
    except PackageError as error:
        yield Finding(COMPOSITION_FILE, str(error))
        return
    if not elements:
        yield Finding(
            COMPOSITION_FILE,
            "expected elements in topology_template/node_templates, listed by a node of the type "
            "AutomationComposition, got none",
        )


def check_instances(contents: CsarContents, charts: Sequence[Chart]) -> Iterator[Finding]:
    """What is wrong with the instances.

    Args:
        contents: The package.
        charts: Charts that are inside.
    """
    names = contents.below(INSTANCES)
    if not names:
        yield Finding(INSTANCES, "expected an instance to deploy, got none")
    try:
        elements = _elements(json_document(contents, COMPOSITION_FILE))
    except (PackageError, KeyError):
        elements = None
    for name in names:
        try:
            document = json_document(contents, name)
        except PackageError as error:
            yield Finding(name, str(error))
            continue
        if at(document, "compositionId") != COMPOSITION_ID:
            yield Finding(
                name,
                f"expected the compositionId {COMPOSITION_ID}, which the manager replaces, got "
                f"{at(document, 'compositionId')!r}",
            )
        stated = at(document, "elements")
        if not isinstance(stated, dict) or not stated:
            yield Finding(name, "expected elements, got none")
            continue
        for key, element in stated.items():
            yield from _element(f"{name}: element {key}", key, element, elements)
            chart = at(element, "properties", "chart")
            if chart is not None:
                yield from _chart(f"{name}: element {key}", chart, charts)


def _elements(document: Any) -> set[tuple[str, str]] | None:
    """Name and version of each element that a composition lists and declares."""
    templates = at(document, "topology_template", "node_templates")
    if not isinstance(templates, dict):
        return None
    listed: set[tuple[str, str]] = set()
    for template in templates.values():
        elements = at(template, "properties", "elements")
        for element in elements if isinstance(elements, list) else ():
            name, version = str(at(element, "name")), str(at(element, "version"))
            if at(templates, name, "version") == version:
                listed.add((name, version))
    return listed


def _element(
    place: str, key: str, element: Any, known: set[tuple[str, str]] | None
) -> Iterator[Finding]:
    try:
        uuid.UUID(key)
    except ValueError:
        yield Finding(place, "expected a UUID as its key")
    if at(element, "id") != key:
        yield Finding(place, f"expected the id {key}, as its key, got {at(element, 'id')!r}")
    definition = at(element, "definition")
    name, version = str(at(definition, "name")), str(at(definition, "version"))
    if known is not None and (name, version) not in known:
        yield Finding(
            place,
            f"expected an element that {COMPOSITION_FILE} lists, one of {sorted(known)}, got "
            f"{(name, version)}",
        )


def _chart(place: str, stated: Any, charts: Sequence[Chart]) -> Iterator[Finding]:
    name, version = at(stated, "chartId", "name"), at(stated, "chartId", "version")
    chart = next((each for each in charts if (each.name, each.version) == (name, version)), None)
    if chart is None:
        inside = [f"{each.name} {each.version}" for each in charts]
        yield Finding(place, f"expected a chart of the package, {inside}, got {name} {version}")
    for key, most in _NAMES.items():
        value = at(stated, key)
        if not isinstance(value, str) or not _LABEL.fullmatch(value) or len(value) > most:
            yield Finding(
                place,
                f"expected {key} of at most {most} lower-case letters, digits and hyphens, got "
                f"{value!r}",
            )
    address = at(stated, "repository", "address")
    if not is_web_address(address):
        yield Finding(
            place,
            "expected where charts are pulled from, such as http://HOST:PORT/charts, as "
            f"repository address, without a password in it, got {address!r}",
        )
    overrides = at(stated, "overrideParams")
    if not isinstance(overrides, dict):
        yield Finding(place, f"expected overrideParams with {', '.join(_NEEDED)}, got none")
        return
    for key, token in _NEEDED.items():
        if overrides.get(key) != token:
            yield Finding(
                place, f"expected {key}: {token} in overrideParams, got {overrides.get(key)!r}"
            )
    wrong = [
        finding
        for key, value in overrides.items()
        for finding in _override(place, key, value, chart)
    ]
    yield from wrong
    if chart is not None and not wrong:
        yield from _misfits(place, chart, overrides)


def _misfits(place: str, chart: Chart, overrides: Mapping[str, str]) -> Iterator[Finding]:
    """What the chart's own schema refuses, once Helm has made values of the text."""
    try:
        found = misfits(chart, overrides)
    except UnusableSchemaError as error:
        yield Finding(f"{chart.name} {chart.version}: {SCHEMA_FILE}", str(error))
        return
    for fault in found:
        yield Finding(
            place,
            f"expected overrideParams that {SCHEMA_FILE} of {chart.name} takes, got at "
            f"{fault.place or 'the top'}: {fault.message}",
        )


def _override(place: str, key: str, value: Any, chart: Chart | None) -> Iterator[Finding]:
    """What Helm would make of one value, which reaches it as the text KEY=VALUE behind --set."""
    if chart is not None and not _has(chart, path_of(key)):
        yield Finding(
            place,
            f"expected values that {chart.name} {chart.version} has, got {key}: it would do "
            "nothing, or be refused",
        )
    if not isinstance(value, str):
        yield Finding(place, f"expected text as {key}, got {value!r}")
    elif _SPECIAL & set(value):
        yield Finding(
            place,
            f"expected {key} without commas, brackets and backslashes, which helm --set takes "
            f"apart, got {value!r}; put it into the chart's values.yaml",
        )
    elif (
        chart is not None
        and isinstance(at(chart.values, *path_of(key)), str)
        and not isinstance(typed(value), str)
    ):
        yield Finding(
            place,
            f"expected {key} not to look like a number or a constant, which helm --set makes of "
            f"it, got {value!r}; put it into the chart's values.yaml",
        )


def _has(chart: Chart, keys: Sequence[str]) -> bool:
    """Whether a chart has a value; an empty map takes any key."""
    level: Any = chart.values
    for key in keys:
        if level == {}:
            return True
        if not isinstance(level, dict) or key not in level:
            return False
        level = level[key]
    return True
