"""The rApp package (CSAR): a zip file that the rApp manager of a non-RT RIC onboards.

It holds the chart, a descriptor that says where the chart goes, the composition that installs it,
and what the rApp offers to others. The same input gives the same bytes: identifiers are made of the
content, and no clock is read.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from service.packaging import sme
from service.packaging.archive import zip_archive
from service.packaging.asd import ENTRY_FILE, TYPES_FILE, ServiceDescriptor, types
from service.packaging.chart import Chart, ChartPackage
from service.packaging.composition import (
    COMPOSITION_FILE,
    INSTANCES,
    Release,
    composition,
    instance,
)
from service.packaging.csar_contents import at
from service.packaging.csar_rules import check_csar
from service.packaging.document import as_json
from service.packaging.errors import PackageError, UnusablePackageError
from service.packaging.image import ImageReference
from service.packaging.manifest import MANIFEST_FILE, META_FILE, Manifest, meta
from service.packaging.tokens import INSTANCE_ID, SME_DISCOVERY
from service.packaging.version import content_digest

CHARTS = "Artifacts/Deployment/HELM/"
INSTANCE_NAME = "k8s-instance"
# Any of these decides who may call.
_PROFILE = "non-rt"
# Values that decide where the service answers.
_ADDRESS = frozenset({"fullnameOverride", "namespaceOverride"})
_LOCKS = ("open", "tokenSecret", "clientCa")
_SETTINGS = ("settings.token_file", "settings.tls_client_ca")
_UNSET = ("", "False", "false")
_DESCRIPTION = "Probabilistic forecasts of the load of radio cells"


@dataclass(frozen=True, slots=True)
class CsarOptions:
    """What a package says of one deployment.

    Attributes:
        release: Name of the Helm release, of the Service, and of the rApp.
        namespace: Namespace that it is installed in.
        provider: Who provides the rApp.
        image: The service's image.
        push_uri: Where the manager sends the chart, such as http://HOST:PORT/api/charts.
        pull_uri: Where the chart is pulled from, such as http://HOST:PORT/charts.
        overrides: Values over the chart's own, by dotted name.
        released: Time of the release, for the manifest.
        extra: More files below Files/, by path in the package.
        created_by: What made it, with its version.
    """

    release: str
    namespace: str
    provider: str
    image: ImageReference
    push_uri: str
    pull_uri: str
    overrides: Mapping[str, str]
    released: datetime
    extra: Mapping[str, bytes]
    created_by: str

    @property
    def file_name(self) -> str:
        """Name of the package."""
        return f"{self.release}.csar"


def package_csar(package: ChartPackage, options: CsarOptions) -> bytes:
    """The package.

    Raises:
        PackageError: Extra files would replace the package's own, the chart would refuse to be
            installed because nobody said who may call, or a value over the chart's own would make
            the service answer elsewhere than the package says.
        UnusablePackageError: The rApp manager would refuse it, or could not install it.
    """
    _check_access(package.chart, options.overrides)
    _check_address(options.overrides)
    content = zip_archive(csar_files(package, options))
    if findings := check_csar(content, options.file_name):
        raise UnusablePackageError("the rApp would be refused", findings)
    return content


def csar_files(package: ChartPackage, options: CsarOptions) -> dict[str, bytes]:
    """All files of the package by path.

    Raises:
        PackageError: Extra files would replace the package's own.
    """
    chart = package.chart
    release = Release(options.release, options.namespace, options.pull_uri, _overrides(options))
    host = f"{options.release}.{options.namespace}.svc.cluster.local"
    port = int(options.overrides.get("service.port") or at(chart.values, "service", "port"))
    chart_file = CHARTS + package.file_name
    files = {
        chart_file: package.content,
        COMPOSITION_FILE: as_json(composition()),
        f"{INSTANCES}{INSTANCE_NAME}.json": as_json(instance(chart, release)),
        f"{sme.PROVIDERS}{options.release}-provider.json": as_json(sme.provider(options.release)),
        f"{sme.SERVICE_APIS}{options.release}-api.json": as_json(
            sme.service_api(options.release, host, port)
        ),
        TYPES_FILE: types(),
        META_FILE: meta(options.created_by, ENTRY_FILE),
    }
    if taken := sorted(set(files) & set(options.extra)):
        raise PackageError(
            f"expected other names of extra files than the package's own, got {taken}"
        )
    files |= options.extra
    invariant = uuid.uuid5(uuid.NAMESPACE_DNS, f"{options.release}.{options.namespace}.rapp")
    descriptor = ServiceDescriptor(
        # Of the content: a manager takes each of them once.
        descriptor_id=str(uuid.uuid5(invariant, content_digest(files) + options.push_uri)),
        invariant_id=str(invariant),
        name=options.release,
        version=chart.version,
        description=_DESCRIPTION,
        provider=options.provider,
        chart_file=chart_file,
        push_uri=options.push_uri,
    )
    files[ENTRY_FILE] = descriptor.definition()
    manifest = Manifest(options.release, options.provider, options.released)
    return {**files, MANIFEST_FILE: manifest.text(files)}


def _check_address(overrides: Mapping[str, str]) -> None:
    """Refuse values by which the service would not be where its published interface says."""
    moved = sorted(_ADDRESS & set(overrides))
    if overrides.get("profile", _PROFILE) != _PROFILE:
        moved.append("profile")
    if moved:
        raise PackageError(
            f"expected values that leave the published address as it is, got {', '.join(moved)}: "
            "name the release and its namespace instead (--release, --namespace); an rApp's "
            f"profile is {_PROFILE}"
        )
    port = overrides.get("service.port", "1")
    if not (port.isdecimal() and 0 < int(port) < 65_536):
        raise PackageError(f"expected a port from 1 to 65535 as service.port, got {port!r}")


def _check_access(chart: Chart, overrides: Mapping[str, str]) -> None:
    """Refuse what our chart would refuse once it is installed, where the reason ends in a log."""
    stated = chart.values.get("access")
    if not isinstance(stated, dict):
        return
    chosen = {f"access.{key}": str(stated.get(key) or "") for key in _LOCKS}
    chosen |= {key: str(value) for key, value in overrides.items()}
    if not any(
        chosen.get(key, "") not in _UNSET
        for key in (*(f"access.{lock}" for lock in _LOCKS), *_SETTINGS)
    ):
        raise PackageError(
            "the chart refuses to stand open: name a Secret of tokens, --set "
            "access.tokenSecret=NAME, or let in whoever reaches the pod, --set access.open=true"
        )


def _overrides(options: CsarOptions) -> dict[str, str]:
    image = options.image
    where = {"image.registry": image.registry, "image.repository": image.repository}
    which = {"image.digest": image.digest} if image.digest else {"image.tag": image.tag}
    return {
        "environment.appId": INSTANCE_ID,
        "environment.smeDiscoveryEndpoint": SME_DISCOVERY,
        "profile": _PROFILE,
        # The Service is named in the published API.
        "fullnameOverride": options.release,
        **where,
        **which,
        **options.overrides,
    }
