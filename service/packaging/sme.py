"""What an rApp offers to others: its API as the service registry of a non-RT RIC publishes it.

The registry is CAPIF (TS 29.222): a provider domain with the function that publishes (APF) and the
one that serves (AEF), and the API with its resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PROVIDERS = "Files/Sme/providers/"
SERVICE_APIS = "Files/Sme/serviceapis/"
INVOKERS = "Files/Sme/invokers/"


@dataclass(frozen=True, slots=True)
class Resource:
    """One path of the API.

    Attributes:
        name: What clients look it up by.
        uri: The path.
        operations: Its methods.
    """

    name: str
    uri: str
    operations: tuple[str, ...]


RESOURCES = (
    Resource("forecast", "/v1/forecast", ("POST",)),
    Resource("observations", "/v1/observations", ("POST",)),
    Resource("cells", "/v1/cells", ("GET",)),
    Resource("model", "/v1/model", ("GET",)),
    Resource("timeseries", "/v1/timeseries/forecast", ("POST",)),
)


def provider(name: str) -> dict[str, Any]:
    """The provider of the API of an rApp of that name."""
    return {
        "apiProvDomInfo": f"{name} provider domain",
        "apiProvFuncs": [_function(name, role) for role in ("APF", "AEF")],
        "regSec": "plain",
    }


def service_api(name: str, host: str, port: int) -> dict[str, Any]:
    """The API as it is published.

    Args:
        name: Name of the rApp, and of its API.
        host: Name of the Service in the cluster.
        port: Its port.
    """
    resources = [
        {
            "resourceName": resource.name,
            "commType": "REQUEST_RESPONSE",
            "uri": resource.uri,
            "operations": list(resource.operations),
        }
        for resource in RESOURCES
    ]
    profile = {
        "aefId": _function_name(name, "AEF"),
        # Empty: the registry would put a version into every path, and ours begin with one.
        "versions": [{"apiVersion": "", "resources": resources}],
        "protocol": "HTTP_1_1",
        # The registry takes a name where TS 29.222 has an address, and puts its gateway's there.
        "interfaceDescriptions": [{"ipv4Addr": host, "port": port}],
    }
    return {
        "apiName": name,
        "description": "Probabilistic forecasts of the load of radio cells",
        "aefProfiles": [profile],
    }


def _function(name: str, role: str) -> dict[str, Any]:
    return {
        "apiProvFuncInfo": _function_name(name, role),
        "apiProvFuncRole": role,
        # The key of a TLS that the registry does not do here; it has to be there and to be its own.
        "regInfo": {"apiProvPubKey": f"{name}-{role.lower()}-unused"},
    }


def _function_name(name: str, role: str) -> str:
    return f"{name} as {role}"
