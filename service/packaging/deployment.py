"""Whether a service answers where, and how, the package of an rApp says that it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.packaging.chart import Chart
from service.packaging.csar_contents import at
from service.packaging.document import shown
from service.packaging.errors import PackageError
from service.packaging.helm_values import with_overrides

PROFILE = "non-rt"
# Any of these decides who may call.
_LOCKS = ("access.open", "access.tokenSecret", "access.clientCa")
_SETTINGS = ("settings.token_file", "settings.tls_client_ca")
_TLS = ("access.tlsSecret", "settings.tls_certificate")
_MOST_PORT = 65_535


def check_deployment(chart: Chart, overrides: Mapping[str, str], *, published: bool) -> None:
    """Refuse what would be installed, and then not be reached or not start.

    Args:
        chart: What is installed.
        overrides: Values over its own, by dotted name.
        published: Whether its API is.

    Raises:
        PackageError: Nobody said who may call; or a value, of the chart or over it, has the service
            answer elsewhere, or in another way, than the published API says.
    """
    values = with_overrides(chart.values, overrides)
    # A chart without that group of values is not ours.
    if isinstance(chart.values.get("access"), dict):
        _check_access(values)
    _check_place(values, overrides)
    if published:
        service_port(chart, overrides)
        _check_plain(values)


def service_port(chart: Chart, overrides: Mapping[str, str]) -> int:
    """The port of the chart's Service.

    Raises:
        PackageError: There is none.
    """
    port = at(with_overrides(chart.values, overrides), "service", "port")
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= _MOST_PORT:
        raise PackageError(
            f"expected a port from 1 to {_MOST_PORT} as service.port of {chart.name}, got "
            f"{shown(port)}: the published API names it (--no-publish publishes none)"
        )
    return port


def _check_access(values: Mapping[str, Any]) -> None:
    """Refuse what our chart would refuse once it is installed, where the reason ends in a log."""
    if not any(at(values, *key.split(".")) for key in (*_LOCKS, *_SETTINGS)):
        raise PackageError(
            "the chart refuses to stand open: name a Secret of tokens, --set "
            "access.tokenSecret=NAME, or let in whoever reaches the pod, --set access.open=true"
        )


def _check_place(values: Mapping[str, Any], overrides: Mapping[str, str]) -> None:
    # The package itself sets the other two over the chart's own.
    moved = [key for key in ("fullnameOverride",) if key in overrides]
    moved += [key for key in ("namespaceOverride",) if values.get(key)]
    if overrides.get("profile", PROFILE) != PROFILE:
        moved.append("profile")
    if moved:
        raise PackageError(
            f"expected values that leave the published address as it is, got {', '.join(moved)}: "
            "name the release and its namespace instead (--release, --namespace); an rApp's "
            f"profile is {PROFILE}"
        )


def _check_plain(values: Mapping[str, Any]) -> None:
    """Refuse TLS behind the registry's gateway.

    A published interface (TS 29.222) has no place for a scheme, and the gateway speaks to what it
    publishes as it does to its own administration (nonrtric-plt-sme, servicemanager,
    publishserviceapi/typeupdate.go): over plain HTTP, and without a client's certificate.
    """
    if secured := [key for key in _TLS if at(values, *key.split("."))]:
        raise PackageError(
            "expected a service without TLS, because the registry's gateway calls what it "
            f"publishes over plain HTTP, got {', '.join(secured)}: leave it out, or say "
            "--no-publish and have callers use the Service itself"
        )
