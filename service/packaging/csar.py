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
from service.packaging.chart import ChartPackage
from service.packaging.composition import (
    COMPOSITION_FILE,
    INSTANCES,
    Release,
    composition,
    instance,
)
from service.packaging.csar_rules import check_csar
from service.packaging.deployment import PROFILE, check_deployment, service_port
from service.packaging.document import as_json
from service.packaging.errors import PackageError, UnusablePackageError
from service.packaging.image import ImageReference
from service.packaging.manifest import MANIFEST_FILE, META_FILE, Manifest, meta
from service.packaging.tokens import INSTANCE_ID, SME_DISCOVERY
from service.packaging.version import content_digest

CHARTS = "Artifacts/Deployment/HELM/"
INSTANCE_NAME = "k8s-instance"
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
        published: Whether its API is published in the service registry.
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
    published: bool = True

    @property
    def file_name(self) -> str:
        """Name of the package."""
        return f"{self.release}.csar"


def package_csar(package: ChartPackage, options: CsarOptions) -> bytes:
    """The package.

    Raises:
        PackageError: Extra files would replace the package's own, the provider is no line of text,
            the chart would refuse to be installed because nobody said who may call, or a value
            would make the service answer elsewhere, or in another way, than the package says.
        UnusablePackageError: The rApp manager would refuse it, or could not install it.
    """
    if not options.provider.isprintable() or options.provider != options.provider.strip():
        raise PackageError(
            f"expected a provider on one line, as the manifest has it, got {options.provider!r}"
        )
    check_deployment(package.chart, options.overrides, published=options.published)
    content = zip_archive(csar_files(package, options))
    if findings := check_csar(content, options.file_name):
        raise UnusablePackageError("the rApp would be refused", findings)
    return content


def csar_files(package: ChartPackage, options: CsarOptions) -> dict[str, bytes]:
    """All files of the package by path.

    Raises:
        PackageError: Extra files would replace the package's own, or the chart states no port.
    """
    chart = package.chart
    release = Release(options.release, options.namespace, options.pull_uri, _overrides(options))
    chart_file = CHARTS + package.file_name
    files = {
        chart_file: package.content,
        COMPOSITION_FILE: as_json(composition()),
        f"{INSTANCES}{INSTANCE_NAME}.json": as_json(instance(chart, release)),
        TYPES_FILE: types(),
        META_FILE: meta(options.created_by, ENTRY_FILE),
    }
    if options.published:
        files |= _published(package, options)
    if taken := sorted(set(files) & set(options.extra)):
        raise PackageError(
            f"expected other names of extra files than the package's own, got {taken}"
        )
    files |= options.extra
    invariant = uuid.uuid5(uuid.NAMESPACE_DNS, f"{options.release}.{options.namespace}.rapp")
    descriptor = ServiceDescriptor(
        # Of the content: a manager takes each of them once.
        descriptor_id=str(
            uuid.uuid5(invariant, content_digest(files) + options.push_uri + options.provider)
        ),
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


def _published(package: ChartPackage, options: CsarOptions) -> dict[str, bytes]:
    host = f"{options.release}.{options.namespace}.svc.cluster.local"
    api = sme.service_api(options.release, host, service_port(package.chart, options.overrides))
    return {
        f"{sme.PROVIDERS}{options.release}-provider.json": as_json(sme.provider(options.release)),
        f"{sme.SERVICE_APIS}{options.release}-api.json": as_json(api),
    }


def _overrides(options: CsarOptions) -> dict[str, str]:
    image = options.image
    where = {"image.registry": image.registry, "image.repository": image.repository}
    which = {"image.digest": image.digest} if image.digest else {"image.tag": image.tag}
    return {
        "environment.appId": INSTANCE_ID,
        "environment.smeDiscoveryEndpoint": SME_DISCOVERY,
        "profile": PROFILE,
        # The Service is named in the published API.
        "fullnameOverride": options.release,
        **where,
        **which,
        **options.overrides,
    }
