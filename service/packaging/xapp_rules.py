"""What the near-RT RIC's tools make of an xApp descriptor.

`dms_cli onboard` validates with a JSON Schema that demands little. The rest of what is checked here
is what goes wrong later, and silently: names that other components make addresses of, message types
that the routing manager does not know, two lists that contradict each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from service.descriptor import FILE_VARIABLE
from service.packaging.document import read_json
from service.packaging.errors import PackageError
from service.packaging.finding import Finding
from service.packaging.onboarding_schema import LISTS, schema_findings

# Service names are at most 63 letters, the longest ours end in is -http.
_MOST_LETTERS = 63 - len("service-ricxapp--http")
# Names of ports are at most 15 letters, and names of keys in a ConfigMap hold no blanks.
_PORT = re.compile(r"(?=.*[a-z])[a-z0-9](?:-?[a-z0-9]){0,14}")
_MOST_PORT_LETTERS = 15
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
ROUTE_PORT = 4561
# What the routing manager gives a number to (ric-dep, helm/rtmgr/templates/config.yaml).
MESSAGES = frozenset(
    {
        "RIC_HEALTH_CHECK_REQ",
        "RIC_HEALTH_CHECK_RESP",
        "RIC_ALARM",
        "RIC_ALARM_QUERY",
        "RIC_ERROR_INDICATION",
        "RIC_SERVICE_UPDATE",
        "RIC_SERVICE_UPDATE_ACK",
        "RIC_SERVICE_UPDATE_FAILURE",
        "RIC_SUB_REQ",
        "RIC_SUB_RESP",
        "RIC_SUB_FAILURE",
        "RIC_SUB_DEL_REQ",
        "RIC_SUB_DEL_RESP",
        "RIC_SUB_DEL_FAILURE",
        "RIC_CONTROL_REQ",
        "RIC_CONTROL_ACK",
        "RIC_CONTROL_FAILURE",
        "RIC_INDICATION",
        "A1_POLICY_REQ",
        "A1_POLICY_RESP",
        "A1_POLICY_QUERY",
        "TS_UE_LIST",
        "TS_QOE_PRED_REQ",
        "TS_QOE_PREDICTION",
        "TS_ANOMALY_UPDATE",
        "TS_ANOMALY_ACK",
        "MC_REPORT",
        "DCAPTERM_RTPM_RMR_MSGTYPE",
        "DCAPTERM_GEO_RMR_MSGTYPE",
    }
)


def check_xapp(
    descriptor: Mapping[str, Any], controls_schema: Mapping[str, Any] | None
) -> list[Finding]:
    """What would be refused, or would go wrong later; nothing where the descriptor is fine.

    Args:
        descriptor: The descriptor.
        controls_schema: What it is onboarded with; None where there is no such file.

    Raises:
        PackageError: The library that validates JSON Schemas is not installed.
    """
    if findings := list(schema_findings(descriptor, controls_schema)):
        return findings
    return [
        *_identity(descriptor),
        *_environment(descriptor),
        *_messaging(descriptor),
        *_probes(descriptor),
    ]


def check_xapp_files(descriptor: str, controls_schema: bytes | None) -> list[Finding]:
    """What is wrong with the two files of a package.

    Args:
        descriptor: A JSON object.
        controls_schema: Content of the other file; None where there is none.

    Raises:
        PackageError: The library that validates JSON Schemas is not installed.
    """
    try:
        schema = None if controls_schema is None else read_json(controls_schema)
    except PackageError as error:
        return [Finding("controls schema", str(error))]
    if schema is not None and not isinstance(schema, dict):
        return [
            Finding("controls schema", f"expected a JSON object, got a {type(schema).__name__}")
        ]
    return check_xapp(json.loads(descriptor), schema)


def _identity(descriptor: Mapping[str, Any]) -> Iterator[Finding]:
    name = descriptor.get("name")
    if not name:
        yield Finding(
            "name", "expected a name: the application manager registers no xApp by xapp_name alone"
        )
        return
    if descriptor.get("xapp_name", name) != name:
        yield Finding("xapp_name", f"expected {name!r}, as in name, or none")
    if not _LABEL.fullmatch(name) or len(name) > _MOST_LETTERS:
        yield Finding(
            "name",
            f"expected at most {_MOST_LETTERS} lower-case letters, digits and hyphens, because "
            f"Services are named after it, got {name!r}",
        )
    if "http" in name:
        yield Finding(
            "name",
            "expected a name without http: the subscription manager makes rmr of every http in an "
            f"address, got {name!r}",
        )
    if not descriptor.get("version"):
        yield Finding("version", "expected a semantic version, got none")
    containers = descriptor.get("containers") or []
    if not containers:
        yield Finding("containers", "expected at least one container, got none")
    for number, container in enumerate(containers):
        if number + 1 < len(containers) and descriptor.get("appenv"):
            yield Finding(
                f"containers/{number}",
                "expected one container: the platform's chart gives its variables, and the mounted "
                "descriptor, to the last one alone",
            )
        if not container["image"]["tag"]:
            yield Finding(f"containers/{number}/image/tag", "expected a tag, got none")


def _environment(descriptor: Mapping[str, Any]) -> Iterator[Finding]:
    environment = descriptor.get("appenv", {})
    if not isinstance(environment, dict):
        yield Finding("appenv", "expected variables by name")
        return
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name):
            yield Finding(
                f"appenv/{name}", "expected a name of letters, digits and underscores: it is lost"
            )
        if not isinstance(value, str):
            yield Finding(
                f"appenv/{name}",
                f"expected a string, because it becomes a ConfigMap, got {value!r}",
            )
    if not environment.get(FILE_VARIABLE):
        yield Finding(
            f"appenv/{FILE_VARIABLE}",
            "expected the path of the mounted descriptor, which the platform's chart does not set",
        )
    for name, value in (descriptor.get("annotations") or {}).items():
        if not isinstance(value, str):
            yield Finding(f"annotations/{name}", f"expected a string, got {value!r}")


def _messaging(descriptor: Mapping[str, Any]) -> Iterator[Finding]:
    ports = (descriptor.get("messaging") or {}).get("ports") or []
    names = [port["name"] for port in ports]
    containers = {container["name"] for container in descriptor.get("containers") or []}
    if "http" not in names:
        yield Finding(
            "messaging/ports", f"expected a port called http, which names the Service, got {names}"
        )
    for number, port in enumerate(ports):
        yield from _port(f"messaging/ports/{number}", port, containers)
    for value in ("name", "port"):
        listed = [port[value] for port in ports]
        if doubled := sorted({each for each in listed if listed.count(each) > 1}):
            yield Finding("messaging/ports", f"expected each {value} once, got {doubled} twice")
    rmr = [name for name in names if "rmr" in name]
    if not rmr:
        yield Finding(
            "messaging/ports",
            "expected a port with rmr in its name, which the application manager wants an endpoint "
            f"of, got {names}",
        )
    if rmr[:1] and "route" in rmr[0]:
        yield Finding(
            "messaging/ports",
            f"expected the RMR data port before {rmr[0]}: the first one becomes the port of the "
            "xApp's RMR address",
        )
    yield from _legacy(descriptor, ports)


def _port(place: str, port: Mapping[str, Any], containers: set[str]) -> Iterator[Finding]:
    if not _PORT.fullmatch(port["name"]) or len(port["name"]) > _MOST_PORT_LETTERS:
        yield Finding(
            f"{place}/name",
            f"expected at most {_MOST_PORT_LETTERS} lower-case letters, digits and single hyphens, "
            f"one of them a letter, got {port['name']!r}",
        )
    if port["container"] not in containers:
        yield Finding(
            f"{place}/container",
            f"expected the name of a container, one of {sorted(containers)}, got "
            f"{port['container']!r}",
        )
    if not 1 <= port["port"] <= 65_535:
        yield Finding(f"{place}/port", f"expected a port from 1 to 65535, got {port['port']}")
    if "rmr" in port["name"] and "route" in port["name"] and port["port"] != ROUTE_PORT:
        yield Finding(
            f"{place}/port",
            f"expected {ROUTE_PORT}, where the platform sends routes, got {port['port']}",
        )
    for kind in ("txMessages", "rxMessages"):
        for message in port.get(kind, ()):
            if message not in MESSAGES:
                yield Finding(
                    f"{place}/{kind}",
                    f"expected a message type that the routing manager knows, got {message!r}: it "
                    "would get no number, and so no route",
                )
    if ("A1_POLICY_REQ" in port.get("rxMessages", ())) != bool(port.get("policies")):
        yield Finding(
            f"{place}/policies",
            "expected policy types where A1_POLICY_REQ is received, and none elsewhere: without "
            "them no policy is routed here",
        )


def _legacy(descriptor: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> Iterator[Finding]:
    old = descriptor.get("rmr")
    if not isinstance(old, dict):
        return
    for kind in LISTS:
        new = sorted(str(each) for port in ports for each in port.get(kind, ()))
        stated = old.get(kind, [])
        if not isinstance(stated, list) or sorted(map(str, stated)) != new:
            yield Finding(
                f"rmr/{kind}",
                "expected what messaging/ports says, or no section rmr: the application manager "
                f"reads that one first, got {stated} and {new}",
            )


def _probes(descriptor: Mapping[str, Any]) -> Iterator[Finding]:
    ports = {port["port"] for port in (descriptor.get("messaging") or {}).get("ports") or []}
    for name in ("livenessProbe", "readinessProbe"):
        probe = descriptor.get(name)
        if probe is None:
            yield Finding(name, "expected a probe, got none: a hung xApp would stay in service")
        elif "httpGet" in probe and probe["httpGet"]["port"] not in ports:
            yield Finding(
                f"{name}/httpGet/port",
                f"expected one of the ports {sorted(ports)}, got {probe['httpGet']['port']}",
            )
