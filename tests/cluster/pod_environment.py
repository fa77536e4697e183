"""What a container's process gets to see: its variables, and paths that exist on this machine."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.api import Api, Object, at

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_ANY_ADDRESS = re.compile(r"(?<![\d.])0\.0\.0\.0(?![\d.])")
_SUFFIXES = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGT", 1)
}


class PodWaitsError(Exception):
    """A pod cannot start yet.

    Attributes:
        reason: A kubelet's own word for it.
    """

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables in the place of `$(NAME)`; unknown names stay, and `$$` is a dollar."""

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


@dataclass(frozen=True)
class Places:
    """Where on this machine the paths and the address of a container are.

    Attributes:
        folders: Folder of this machine for each path of the container.
        address: Loopback address that stands for the pod's own.
    """

    folders: Mapping[str, Path]
    address: str

    def rewrite(self, text: str) -> str:
        """The same text for a process of this machine.

        A path is replaced where it stands as a whole or before a slash; the longest one first, so
        that a volume inside of a volume is found. To listen everywhere is to listen at the
        address of the pod.
        """
        found = sorted(self.folders, key=len, reverse=True)
        if found:
            paths = "|".join(re.escape(path.rstrip("/")) for path in found)
            pattern = re.compile(rf"(?<![\w./-])({paths})(?![\w.-])")
            known = {path.rstrip("/"): str(folder) for path, folder in self.folders.items()}
            text = pattern.sub(lambda match: known[match[1]], text)
        return _ANY_ADDRESS.sub(self.address, text)


@dataclass(frozen=True)
class References:
    """Looks up what a variable is taken from.

    Attributes:
        api: Of the cluster.
        pod: As the API knows it.
        address: Of the pod.
    """

    api: Api
    pod: Object
    address: str

    def environment(self, container: Object, own: Mapping[str, str]) -> dict[str, str]:
        """Variables of a container.

        Args:
            container: Of the pod.
            own: Variables of the image; the container's win.

        Raises:
            PodWaitsError: A config map or a secret, or a key in it, is not there.
        """
        found = dict(own)
        for source in container.get("envFrom") or []:
            for kind, key in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
                if reference := source.get(key):
                    prefix = source.get("prefix", "")
                    data = self.data(kind, reference)
                    found |= {f"{prefix}{name}": value.decode() for name, value in data.items()}
        for entry in container.get("env") or []:
            if "valueFrom" in entry:
                value = self._taken(entry["valueFrom"], container)
                if value is not None:
                    found[entry["name"]] = value
            else:
                found[entry["name"]] = expand(entry.get("value") or "", found)
        return found

    def data(self, kind: str, reference: Object) -> dict[str, bytes]:
        """Content of a config map or a secret; nothing where it may be missing.

        Raises:
            PodWaitsError: It has to be there and is not.
        """
        name = reference.get("name") or reference.get("secretName", "")
        namespace = self.pod["metadata"]["namespace"]
        found = self.api.find(at("v1", kind, namespace, name))
        if found is None:
            if reference.get("optional"):
                return {}
            raise PodWaitsError("CreateContainerConfigError", f'{kind} "{name}" not found')
        return _content(found, encoded=kind == "secrets")

    def _taken(self, source: Object, container: Object) -> str | None:
        if reference := source.get("fieldRef"):
            return self.field(reference["fieldPath"])
        if reference := source.get("resourceFieldRef"):
            return resource(container, reference["resource"], reference.get("divisor") or "1")
        for kind, key in (("configmaps", "configMapKeyRef"), ("secrets", "secretKeyRef")):
            if reference := source.get(key):
                data = self.data(kind, reference)
                if reference["key"] in data:
                    return data[reference["key"]].decode()
                if reference.get("optional"):
                    return None
                raise PodWaitsError(
                    "CreateContainerConfigError",
                    f"couldn't find key {reference['key']} in {kind} {reference['name']}",
                )
        raise PodWaitsError("CreateContainerConfigError", f"unknown source {source}")

    def field(self, path: str) -> str:
        """What the downward API says about the pod.

        Raises:
            PodWaitsError: The path is none that it knows.
        """
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        if match := re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path):
            return str((metadata.get(match[1]) or {}).get(match[2], ""))
        if path in {"metadata.labels", "metadata.annotations"}:
            pairs: Iterable[tuple[str, Any]] = (metadata.get(path[9:]) or {}).items()
            return "".join(f'{name}="{value}"\n' for name, value in sorted(pairs))
        known = {
            "metadata.name": metadata["name"],
            "metadata.namespace": metadata["namespace"],
            "metadata.uid": metadata["uid"],
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "status.podIP": self.address,
            "status.podIPs": self.address,
            "status.hostIP": "127.0.0.1",
        }
        if path not in known:
            raise PodWaitsError("CreateContainerConfigError", f"unsupported fieldPath {path}")
        return str(known[path])


def _content(found: Object, *, encoded: bool) -> dict[str, bytes]:
    if encoded:
        return {name: b64decode(value) for name, value in (found.get("data") or {}).items()}
    plain = {name: value.encode() for name, value in (found.get("data") or {}).items()}
    binary = found.get("binaryData") or {}
    return plain | {name: b64decode(value) for name, value in binary.items()}


def quantity(text: str) -> float:
    """A number as Kubernetes writes amounts: `250m`, `2Gi`."""
    match = re.fullmatch(r"([\d.]+)(m|k|M|G|T|Ki|Mi|Gi|Ti)?", text)
    if match is None:
        raise ValueError(f"expected an amount such as 250m or 2Gi, got {text!r}")
    return float(match[1]) * _SUFFIXES.get(match[2] or "", 1.0)


def resource(container: Object, name: str, divisor: str) -> str:
    """A request or a limit in units of the divisor, rounded up; 0 where there is none.

    Args:
        container: Of the pod.
        name: Such as `limits.memory`.
        divisor: Such as `1Mi`.
    """
    part, _, kind = name.partition(".")
    amount = ((container.get("resources") or {}).get(part) or {}).get(kind, "0")
    units = quantity(divisor) if divisor != "0" else 1.0
    return str(int(-(-quantity(str(amount)) // units)))
