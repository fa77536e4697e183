"""What is wrong with what a CSAR publishes and calls (SME, that is CAPIF, TS 29.222)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from service.packaging.csar_contents import CsarContents, at, json_document
from service.packaging.errors import PackageError
from service.packaging.finding import Finding
from service.packaging.sme import INVOKERS, PROVIDERS, SERVICE_APIS
from service.packaging.tokens import INSTANCE_ID

_ROLES = ("APF", "AEF")
# What the registry's gateway takes (nonrtric-plt-sme, servicemanager, publishserviceapi).
_SECURITY = ("PSK", "PKI", "OAUTH")
_COMMUNICATION = ("REQUEST_RESPONSE", "SUBSCRIBE_NOTIFY")
_MOST_PORT = 65_535


def check_sme(contents: CsarContents) -> Iterator[Finding]:
    """What is wrong with providers, published APIs and invokers."""
    functions: set[str] = set()
    names: list[str] = []
    keys: list[str] = []
    for name, document in _documents(contents, PROVIDERS):
        if isinstance(document, Finding):
            yield document
            continue
        functions |= _serving(document)
        yield from _provider(name, document)
    for name, document in _documents(contents, SERVICE_APIS):
        if isinstance(document, Finding):
            yield document
            continue
        names.append(str(at(document, "apiName")))
        yield from _api(name, document, functions)
    for name, document in _documents(contents, INVOKERS):
        if isinstance(document, Finding):
            yield document
            continue
        yield from _invokers(name, document, keys)
    for doubled in sorted({each for each in names if names.count(each) > 1}):
        yield Finding(SERVICE_APIS, f"expected each apiName once, got {doubled!r} twice")
    for doubled in sorted({each for each in keys if keys.count(each) > 1}):
        yield Finding(INVOKERS, f"expected a public key of its own for each, got {doubled!r} twice")


def _documents(contents: CsarContents, folder: str) -> Iterator[tuple[str, Any]]:
    for name in contents.below(folder):
        try:
            yield name, json_document(contents, name)
        except PackageError as error:
            yield name, Finding(name, str(error))


def _list(document: Any, key: str) -> list[Any]:
    found = at(document, key)
    return found if isinstance(found, list) else []


def _serving(document: Any) -> set[str]:
    return {
        str(at(function, "apiProvFuncInfo"))
        for function in _list(document, "apiProvFuncs")
        if at(function, "apiProvFuncRole") == "AEF"
    }


def _provider(name: str, document: Any) -> Iterator[Finding]:
    if not at(document, "apiProvDomInfo"):
        yield Finding(name, "expected apiProvDomInfo, got none")
    functions = _list(document, "apiProvFuncs")
    roles = {str(at(function, "apiProvFuncRole")) for function in functions}
    for role in _ROLES:
        if role not in roles:
            yield Finding(name, f"expected a function of the role {role} in apiProvFuncs, got none")
    for function in functions:
        if not at(function, "apiProvFuncInfo") or not at(function, "regInfo", "apiProvPubKey"):
            yield Finding(
                name, "expected apiProvFuncInfo and regInfo/apiProvPubKey in each of apiProvFuncs"
            )


def _api(name: str, document: Any, functions: set[str]) -> Iterator[Finding]:
    if not at(document, "apiName"):
        yield Finding(name, "expected an apiName, got none")
    profiles = _list(document, "aefProfiles")
    if not profiles:
        yield Finding(name, "expected aefProfiles, got none")
    for profile in profiles:
        if str(at(profile, "aefId")) not in functions:
            yield Finding(
                name,
                f"expected as aefId the apiProvFuncInfo of an AEF, one of {sorted(functions)}, got "
                f"{at(profile, 'aefId')!r}",
            )
        yield from _resources(name, profile)
        interfaces = _list(profile, "interfaceDescriptions")
        if not interfaces:
            yield Finding(name, "expected interfaceDescriptions, got none")
        for interface in interfaces:
            port = at(interface, "port")
            if not at(interface, "ipv4Addr") or not _is_port(port):
                yield Finding(
                    name,
                    "expected ipv4Addr (an address or a name) and a port from 1 to 65535 in "
                    f"interfaceDescriptions, got {at(interface, 'ipv4Addr')!r} and {port!r}",
                )
            methods = at(interface, "securityMethods")
            if methods is not None and not _is_some_of(methods, _SECURITY):
                yield Finding(
                    name,
                    f"expected securityMethods of {', '.join(_SECURITY)}, or none at all, in "
                    f"interfaceDescriptions, got {methods!r}",
                )


def _is_port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_PORT


def _is_some_of(value: Any, words: tuple[str, ...]) -> bool:
    return isinstance(value, list) and bool(value) and all(each in words for each in value)


def _resources(name: str, profile: Any) -> Iterator[Finding]:
    versions = _list(profile, "versions")
    resources = [each for version in versions for each in _list(version, "resources")]
    if not versions or not all(_list(version, "resources") for version in versions):
        yield Finding(name, "expected resources in each of versions, got none")
    for resource in resources:
        uri = at(resource, "uri")
        if not at(resource, "resourceName") or not isinstance(uri, str) or uri[:1] != "/":
            yield Finding(
                name, f"expected a resourceName and a uri that begins with a slash, got {uri!r}"
            )
        if not _list(resource, "operations"):
            yield Finding(name, f"expected operations of {uri!r}, got none")
        if at(resource, "commType") not in _COMMUNICATION:
            yield Finding(
                name,
                f"expected a commType, one of {', '.join(_COMMUNICATION)}, of {uri!r}, got "
                f"{at(resource, 'commType')!r}",
            )
    # The gateway names its routes after them, and takes a name once.
    for version in versions:
        names = [str(at(each, "resourceName")) for each in _list(version, "resources")]
        for doubled in sorted({each for each in names if names.count(each) > 1}):
            yield Finding(name, f"expected each resourceName once, got {doubled!r} twice")


def _invokers(name: str, document: Any, keys: list[str]) -> Iterator[Finding]:
    if not isinstance(document, list) or not document:
        yield Finding(name, f"expected a list of invokers, got a {type(document).__name__}")
        return
    for invoker in document:
        if at(invoker, "apiInvokerInformation") != INSTANCE_ID:
            yield Finding(
                name,
                f"expected the apiInvokerInformation {INSTANCE_ID}, which the manager replaces, "
                f"got {at(invoker, 'apiInvokerInformation')!r}",
            )
        if not all(at(api, "apiName") for api in _list(invoker, "apiList")):
            yield Finding(name, "expected an apiName in each of apiList")
        key = at(invoker, "onboardingInformation", "apiInvokerPublicKey")
        if not key:
            yield Finding(name, "expected onboardingInformation/apiInvokerPublicKey, got none")
        else:
            keys.append(str(key))
