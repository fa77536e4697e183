"""What the rApp manager makes of a CSAR.

The first half is what the manager checks when a package is onboarded (nonrtric-plt-rappmanager,
csar/validator): names, files and the descriptor. The rest is what it does not check and what fails
when the rApp is primed or deployed: names that do not agree, words that nobody filled in, values
that the chart does not have.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from service.packaging import asd
from service.packaging.acm_rules import check_composition, check_instances
from service.packaging.chart import Chart
from service.packaging.chart_archive import check_chart, open_chart
from service.packaging.composition import COMPOSITION_FILE, INSTANCES
from service.packaging.csar_contents import CsarContents, at, open_csar, yaml_document
from service.packaging.dme_rules import DME_FOLDERS, check_dme
from service.packaging.errors import PackageError
from service.packaging.finding import Finding
from service.packaging.manifest import ENTRY_KEY, META_FILE, check_manifest, entry_definitions
from service.packaging.sme import INVOKERS, PROVIDERS, SERVICE_APIS
from service.packaging.sme_rules import check_sme
from service.packaging.tokens import UNFINISHED
from service.packaging.web_address import is_web_address

# The manager takes the name for a regular expression, which has to match itself.
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")
_DEFINITIONS = COMPOSITION_FILE.rpartition("/")[0] + "/"
FOLDERS = (_DEFINITIONS, INSTANCES, PROVIDERS, SERVICE_APIS, INVOKERS, *DME_FOLDERS)


def check_csar(content: bytes, file_name: str) -> list[Finding]:
    """What is wrong with a package; nothing where it can be onboarded, primed and deployed.

    Args:
        content: The zip file.
        file_name: Its name.
    """
    findings = []
    if not file_name.endswith(".csar"):
        findings.append(Finding("", f"expected a name that ends in .csar, got {file_name}"))
    try:
        contents = open_csar(content)
    except PackageError as error:
        return [*findings, Finding("", str(error))]
    charts = _charts(contents)
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: _resources(contents),
        lambda: check_composition(contents),
        lambda: _descriptor(contents),
        lambda: check_instances(contents, charts),
        lambda: check_sme(contents),
        lambda: check_dme(contents),
        lambda: check_manifest(contents.files),
    )
    found = [finding for check in checks for finding in check()]
    return [*findings, *contents.findings, *found]


def _charts(contents: CsarContents) -> list[Chart]:
    """Charts that the manager sends and that can be read; others are found fault with elsewhere."""
    charts = []
    for name in _sent(contents):
        try:
            charts.append(open_chart(contents.files[name], name))
        except PackageError:
            continue
    return charts


def _sent(contents: CsarContents) -> list[str]:
    """Files of the artifacts; all charts where there is no descriptor to say which."""
    entry = entry_definitions(contents.files.get(META_FILE, b""))
    try:
        document = yaml_document(contents, entry or "")
    except (PackageError, KeyError):
        return [name for name in contents.files if name.endswith(".tgz")]
    artifacts = at(document, "topology_template", "node_templates", asd.TEMPLATE, "artifacts")
    files = [at(each, "file") for each in artifacts.values()] if isinstance(artifacts, dict) else []
    return [file for file in files if isinstance(file, str) and file in contents.files]


def _resources(contents: CsarContents) -> Iterator[Finding]:
    """The manager takes every file below Files/ for a resource of the name before its last dot."""
    for name in contents.below("Files/"):
        folder, _, file = name.rpartition("/")
        if f"{folder}/" not in FOLDERS:
            yield Finding(
                name, f"expected one of the folders {', '.join(FOLDERS)}, got {folder}/: it is lost"
            )
        elif not file.endswith(".json") or file == ".json":
            yield Finding(
                name,
                f"expected a name that ends in .json, got {file}: the manager makes a resource of "
                "every file here",
            )
        elif UNFINISHED.encode() in contents.files[name]:
            yield Finding(name, f"expected what {UNFINISHED}… stands for, got the words themselves")


def _descriptor(contents: CsarContents) -> Iterator[Finding]:
    if META_FILE not in contents.files:
        yield Finding(META_FILE, "expected this file, got none")
        return
    entry = entry_definitions(contents.files[META_FILE])
    if entry is None or entry not in contents.files:
        yield Finding(META_FILE, f"expected a file of the package as {ENTRY_KEY}, got {entry!r}")
        return
    yield from _plain(META_FILE, entry)
    try:
        document = yaml_document(contents, entry)
    except PackageError as error:
        yield Finding(entry, str(error))
        return
    template = at(document, "topology_template", "node_templates", asd.TEMPLATE)
    if not isinstance(template, dict):
        yield Finding(
            entry, f"expected the node template topology_template/node_templates/{asd.TEMPLATE}"
        )
        return
    yield from _properties(entry, template.get("properties"))
    artifacts = template.get("artifacts")
    if not isinstance(artifacts, dict) or not artifacts:
        yield Finding(entry, "expected a chart among the artifacts, got none")
        return
    for name, artifact in artifacts.items():
        yield from _artifact(contents, f"{entry}: artifact {name}", artifact)


def _properties(entry: str, properties: Any) -> Iterator[Finding]:
    for name in asd.REQUIRED:
        value = at(properties, name)
        if value is None or value == "":
            yield Finding(entry, f"expected the property {name}, got none")
        elif name.endswith("_id") and not _is_uuid(value):
            yield Finding(entry, f"expected a UUID as {name}, got {value!r}")
    if str(at(properties, "schema_version") or asd.SCHEMA_VERSION) != asd.SCHEMA_VERSION:
        yield Finding(
            entry,
            f"expected schema_version {asd.SCHEMA_VERSION}, got {at(properties, 'schema_version')}",
        )


def _artifact(contents: CsarContents, place: str, artifact: Any) -> Iterator[Finding]:
    file = at(artifact, "file")
    if not isinstance(file, str) or file not in contents.files:
        yield Finding(place, f"expected a file of the package, got {file!r}")
        return
    yield from _plain(place, file)
    if at(artifact, "type") != asd.ARTIFACT_TYPE:
        yield Finding(place, f"expected the type {asd.ARTIFACT_TYPE}, got {at(artifact, 'type')!r}")
    for name, only in (("artifact_type", asd.HELM_CHART), ("target_server", asd.CHART_MUSEUM)):
        value = at(artifact, "properties", name)
        if value != only:
            yield Finding(place, f"expected {name} {only}, got {value!r}")
    if at(artifact, "properties", "item_id") in (None, ""):
        yield Finding(place, "expected an item_id, got none")
    uri = at(artifact, "properties", "target_server_uri")
    if not is_web_address(uri):
        yield Finding(
            place,
            "expected where chartmuseum takes charts, such as http://HOST:PORT/api/charts, as "
            f"target_server_uri, without a password in it, got {uri!r}",
        )
    for finding in check_chart(contents.files[file], file.rpartition("/")[2]):
        yield Finding(f"{file} {finding.place}".rstrip(), finding.reason)


def _plain(place: str, name: str) -> Iterator[Finding]:
    if not _PLAIN.fullmatch(name):
        yield Finding(
            place,
            "expected a path of letters, digits, dots, hyphens and underscores, because the "
            f"manager takes it for a regular expression, got {name!r}",
        )


def _is_uuid(value: Any) -> bool:
    try:
        return str(uuid.UUID(str(value))) == str(value).lower()
    except ValueError:
        return False
