"""The xApp package: the descriptor that `dms_cli onboard` takes, and the schema of its controls.

The platform makes a chart of its own from a descriptor (ric-plt-appmgr, xapp_orchestrater), in
which `appenv` becomes the environment, ports become Services and the descriptor itself is mounted
at /opt/ric/config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from service.budget import Profile
from service.descriptor import FILE_NAME, FILE_VARIABLE
from service.packaging.document import as_json
from service.packaging.errors import PackageError, UnusablePackageError
from service.packaging.image import ImageReference
from service.packaging.version import content_version
from service.packaging.xapp_rules import check_xapp
from service.settings import PREFIX, Settings

SCHEMA_FILE = "schema.json"
# Where the platform's chart mounts the descriptor.
_MOUNTED = f"/opt/ric/config/{FILE_NAME}"
_NEAR_RT_MOST_MS = 1_000
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class XappOptions:
    """What a descriptor says of one deployment.

    Attributes:
        name: Name of the xApp, in Services and to the application manager.
        version: Version that people give it; that of the package ends in a digest of the rest.
        image: The service's image, with a registry and a tag.
        settings: Settings of the service by name, as text.
    """

    name: str
    version: str
    image: ImageReference
    settings: Mapping[str, str]


class _StatedSettings(Settings):
    """Settings that are given, whatever the environment of this process says."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def package_xapp(options: XappOptions) -> dict[str, bytes]:
    """The files of the package, by name: the descriptor and the schema of its controls.

    Raises:
        PackageError: A setting cannot be used, or the service could not run with them.
        UnusablePackageError: The platform's tools would refuse the descriptor.
    """
    descriptor, schema = xapp_descriptor(options), controls_schema()
    if findings := check_xapp(descriptor, schema):
        raise UnusablePackageError("the xApp would be refused", findings)
    return {FILE_NAME: as_json(descriptor), SCHEMA_FILE: as_json(schema)}


def xapp_descriptor(options: XappOptions) -> dict[str, Any]:
    """The descriptor of the service as an xApp.

    Raises:
        PackageError: A setting cannot be used, or the service could not run with them.
    """
    port = _check_settings(options.settings).port
    # The service would let a request ask for more time than the platform's loops have.
    stated = {"budget_most_ms": str(_NEAR_RT_MOST_MS), **options.settings}
    if options.image.digest:
        raise PackageError(
            f"expected an image by its tag, got {options.image.digest}: the platform's chart has "
            "no place for a digest"
        )
    environment = {PREFIX + name.upper(): value for name, value in stated.items()}
    image = options.image
    descriptor: dict[str, Any] = {
        "name": options.name,
        # What other tools read in the place of the name.
        "xapp_name": options.name,
        "containers": [
            {
                "name": options.name,
                "image": {
                    "registry": image.registry,
                    "name": image.repository,
                    "tag": image.tag,
                },
            }
        ],
        "annotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(port),
            "prometheus.io/path": "/ric/v1/metrics",
        },
        "livenessProbe": _probe("ric/v1/health/alive", port),
        "readinessProbe": _probe("ric/v1/health/ready", port),
        "messaging": {"ports": _ports(options.name, port)},
        "appenv": {FILE_VARIABLE: _MOUNTED, **environment},
        "controls": {},
    }
    version = content_version(options.version, {FILE_NAME: as_json(descriptor)})
    return {"name": options.name, "version": version, **descriptor}


def controls_schema() -> dict[str, Any]:
    """The schema of the section `controls`: it is empty, and says where settings belong.

    The service takes its settings from its environment, once, at its start. Controls that somebody
    adds would do nothing, so they are refused while the xApp is onboarded.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "#/controls",
        "type": "object",
        "title": "controls",
        "description": f"None: settings are variables {PREFIX}* in the section appenv.",
        "properties": {},
        "additionalProperties": False,
    }


def _probe(path: str, port: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": port},
        # Loading the model takes seconds; the platform's chart has no startup probe to wait for it.
        "initialDelaySeconds": 10,
        "periodSeconds": 15,
    }


def _ports(container: str, port: int) -> list[dict[str, Any]]:
    """What becomes the Services `-http` and `-rmr`.

    The application manager takes no xApp without an RMR port; the lists say that none is spoken, so
    that no route leads there.
    """
    return [
        {"name": "http", "container": container, "port": port, "description": "REST and metrics"},
        {
            "name": "rmrdata",
            "container": container,
            "port": 4560,
            "rxMessages": [],
            "txMessages": [],
            "policies": [],
            "description": "RMR data, unused",
        },
        {
            "name": "rmrroute",
            "container": container,
            "port": 4561,
            "description": "RMR routes, unused",
        },
    ]


def _check_settings(stated: Mapping[str, str]) -> Settings:
    """The settings, where the service runs with them inside the platform's chart."""
    unknown = sorted(set(stated) - set(Settings.model_fields))
    if unknown:
        raise PackageError(
            f"expected names of settings, as docs/operations.md lists them without {PREFIX} and in "
            f"lower case, got {', '.join(unknown)}"
        )
    try:
        settings = _StatedSettings(**dict(stated))  # type: ignore[arg-type]
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, fault['loc']))}={fault['input']}: {fault['msg']}"
            if fault["loc"]
            else fault["msg"]
            for fault in error.errors(include_url=False)
        )
        raise PackageError("; ".join(faults)) from error
    for wrong, reason in (
        (
            settings.profile is not Profile.NEAR_RT,
            "an xApp serves loops of the near-RT RIC; leave profile at near-rt",
        ),
        (
            max(settings.budget_bounds().default_ms, settings.budget_most_ms or 0)
            > _NEAR_RT_MOST_MS,
            f"a latency budget is over {_NEAR_RT_MOST_MS} ms, where the loops of a near-RT RIC "
            "end; state less as budget_default_ms and budget_most_ms, or deploy an rApp",
        ),
        (
            not (settings.open_access or settings.token_file),
            "the service refuses to start where anyone could call: set open_access=true, which is "
            "all that the platform's chart has room for, or token_file to a file in your image",
        ),
        (
            "host" in stated and settings.host in _LOOPBACK,
            f"host={settings.host} is out of the platform's reach; leave it to the image",
        ),
        (
            settings.tls_certificate is not None or settings.tls_client_ca is not None,
            "the platform's chart probes over plain HTTP; leave TLS to our own chart",
        ),
    ):
        if wrong:
            raise PackageError(reason)
    return settings
