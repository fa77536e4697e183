"""The Kubernetes API as JSON, for the process kubelet and the cluster's tests.

A kubelet has no use for a client's models: what the server says is handed on, unknown fields
included. This is also a second opinion beside the official client, which the project itself uses.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml

Found = TypeVar("Found")
Object = dict[str, Any]
Query = Mapping[str, str | int | bool]

_GROUPS = {
    "v1": "api/v1",
    "apps/v1": "apis/apps/v1",
    "batch/v1": "apis/batch/v1",
    "rbac": "apis/rbac.authorization.k8s.io/v1",
    "storage": "apis/storage.k8s.io/v1",
}


class ApiError(Exception):
    """The API server refused.

    Attributes:
        status: HTTP status.
        reason: The server's own word, such as `NotFound`.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"{status} {reason}: {message}")


class KubeconfigError(Exception):
    """A kubeconfig cannot be used here."""


@dataclass(frozen=True)
class Access:
    """Where a cluster is, and as whom we come.

    Attributes:
        server: Base URL of its API.
        trust: What its certificate is checked against, with our own certificate where it has one.
        headers: What is sent along.
    """

    server: str
    trust: ssl.SSLContext
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Access:
        """The current context of a kubeconfig: tokens, client certificates and login commands.

        Raises:
            KubeconfigError: It names a context, a cluster or a user that it does not hold.
        """
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(document, "context", document.get("current-context"))
        cluster = _named(document, "cluster", context.get("cluster"))
        user = _named(document, "user", context.get("user"))
        trust = ssl.create_default_context()
        if cluster.get("insecure-skip-tls-verify"):
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        elif authority := _bytes(cluster, "certificate-authority", path.parent):
            trust.load_verify_locations(cadata=authority.decode())
        certificate = _bytes(user, "client-certificate", path.parent)
        key = _bytes(user, "client-key", path.parent)
        if certificate and key:
            with tempfile.NamedTemporaryFile() as both:
                both.write(certificate + b"\n" + key)
                both.flush()
                trust.load_cert_chain(both.name)
        token = user.get("token") or _login(user.get("exec"))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return cls(cluster["server"], trust, headers)


def _named(document: Object, kind: str, name: str | None) -> Object:
    for each in document.get(f"{kind}s") or []:
        if each["name"] == name:
            found: Object = each[kind]
            return found
    raise KubeconfigError(f"expected the {kind} {name!r} in the kubeconfig, it is not there")


def _bytes(entry: Object, key: str, folder: Path) -> bytes | None:
    if inline := entry.get(f"{key}-data"):
        return base64.b64decode(inline)
    return (folder / entry[key]).read_bytes() if entry.get(key) else None


def _login(command: Object | None) -> str | None:
    """The token that a cloud's login command prints."""
    if not command:
        return None
    variables = {each["name"]: each["value"] for each in command.get("env") or []}
    said = subprocess.run(
        [command["command"], *(command.get("args") or [])],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    token: str | None = json.loads(said.stdout)["status"].get("token")
    return token


class Api:
    """A connection to an API server; threads may share it."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._http = httpx.Client(
            base_url=access.server,
            headers=dict(access.headers),
            verify=access.trust,
            # Loopback is never reached through a proxy, nor is a cluster that kubectl reaches.
            trust_env=False,
            timeout=httpx.Timeout(30),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def with_token(self, token: str) -> Api:
        """The same server, as the bearer of a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return Api(Access(self.access.server, self.access.trust, headers))

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Send a request; the answer's JSON, or its text.

        Raises:
            ApiError: The server refused.
            httpx.HTTPError: It cannot be reached.
        """
        answer = self._http.request(
            method,
            path,
            content=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            params={key: _word(value) for key, value in (query or {}).items()},
        )
        kind = answer.headers.get("Content-Type", "")
        said = answer.json() if kind.startswith("application/json") else answer.text
        if answer.is_error:
            told = said if isinstance(said, dict) else {"message": said}
            raise ApiError(answer.status_code, told.get("reason", ""), told.get("message", ""))
        return said

    def get(self, path: str, **query: str | int | bool) -> Any:
        """Read an object, or a text such as a log."""
        return self.send("GET", path, query=query)

    def find(self, path: str) -> Object | None:
        """Read an object; None where there is none."""
        try:
            found: Object = self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def list(self, path: str, **query: str | int | bool) -> list[Object]:
        """Read the items of a list."""
        items: list[Object] = self.get(path, **query)["items"]
        return items

    def create(self, path: str, body: Object) -> Object:
        """Create an object; as the server completed it."""
        created: Object = self.send("POST", path, body)
        return created

    def merge(self, path: str, body: Object) -> Object:
        """Change the fields that `body` states; a list is replaced as a whole."""
        kind = "application/merge-patch+json"
        changed: Object = self.send("PATCH", path, body, content_type=kind)
        return changed

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object, with the options of a deletion; nothing where it is gone already."""
        try:
            self.send("DELETE", path, options or None)
        except ApiError as error:
            if error.status != 404:
                raise


def _word(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def at(group: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
    """Path of a kind's objects, or of one of them.

    Args:
        group: `v1`, `apps/v1`, `batch/v1`, `rbac` or `storage`.
        kind: Plural, such as `pods`.
        namespace: None for all, and for kinds outside of namespaces.
        name: Of one object; may go on to a part of it, as in `a/status`.
    """
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"/{_GROUPS[group]}{inside}/{kind}{f'/{name}' if name else ''}"


def wait_for(what: str, look: Callable[[], Found | None], seconds: float = 60) -> Found:
    """What `look` finds, as soon as it finds anything that is true.

    Raises:
        AssertionError: It found nothing in time.
    """
    end = time.monotonic() + seconds
    while True:
        if found := look():
            return found
        assert time.monotonic() < end, f"no {what} within {seconds:.0f} s"
        time.sleep(0.05)
