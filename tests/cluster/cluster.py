"""A Kubernetes cluster for the tests: one of the user's, or a control plane of our own."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from tests.cluster.api import Access, Api, Object, at, wait_for
from tests.cluster.build_control_plane import Workshop, cache_folder
from tests.cluster.control_plane import ControlPlane, ControlPlaneError
from tests.cluster.images import service_image
from tests.cluster.pod_runner import Images
from tests.cluster.process_kubelet import ProcessKubelet


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where everything has to be tested."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{reason} (a failure, because CI=true)")
    pytest.skip(reason)


@dataclass
class Cluster:
    """A cluster.

    Attributes:
        kubeconfig: Opens it to its administrator.
        api: A connection as such.
        node: Runs pods as processes of this machine; None in a cluster of the user's own.
        plane: What runs it; None in a cluster of the user's own.
        namespaces: Those that tests have made.
    """

    kubeconfig: Path
    api: Api
    node: ProcessKubelet | None = None
    plane: ControlPlane | None = None
    namespaces: list[str] = field(default_factory=list)

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version of Kubernetes."""
        told = self.api.get("/version")
        return int(told["major"]), int(told["minor"].rstrip("+"))

    def namespace(self, name: str | None = None) -> str:
        """Make a namespace in which pods can be created; its name. It ends with the cluster.

        Args:
            name: Its name, where that matters; by default one that there is not yet.
        """
        name = name or f"rancast-test-{secrets.token_hex(4)}"
        self.api.create(at("v1", "namespaces"), {"metadata": {"name": name}})
        self.namespaces.append(name)
        wait_for(f"service account in {name}", lambda: self._account(name))
        return name

    def _account(self, namespace: str) -> Object | None:
        found = self.api.find(at("v1", "serviceaccounts", namespace, "default"))
        # Old servers make its token a moment later, and refuse pods until then.
        return found if found and (self.plane is None or "secrets" in found) else None

    def process_node(self) -> ProcessKubelet:
        """The node that runs pods as processes; skips in a cluster of the user's own."""
        if self.node is None:
            unavailable("runs programs of the source tree, which KUBECONFIG's nodes do not have")
        return self.node

    def token(self, namespace: str, account: str) -> str:
        """A token of a service account."""
        path = at("v1", "serviceaccounts", namespace, f"{account}/token")
        token: str = self.api.create(path, {"spec": {"audiences": []}})["status"]["token"]
        return token


@contextmanager
def open_cluster() -> Iterator[Cluster]:
    """The cluster that `KUBECONFIG` names, or one that is started here and ends here."""
    stated = os.environ.get("KUBECONFIG")
    if stated:
        with _users_own(Path(stated).resolve()) as found:
            yield found
        return
    shop = Workshop(cache_folder(os.environ))
    if not shop.finished:
        unavailable(
            "there is no control plane; `python -m tests.cluster.build_control_plane` builds one "
            "on Debian 12, or set KUBECONFIG to a cluster of yours"
        )
    with (
        tempfile.TemporaryDirectory(prefix="rancast-cluster-") as name,
        _our_own(ControlPlane(shop.bin, Path(name) / "plane"), Path(name) / "node") as found,
    ):
        yield found


@contextmanager
def _users_own(kubeconfig: Path) -> Iterator[Cluster]:
    api = Api(Access.of_kubeconfig(kubeconfig))
    found = Cluster(kubeconfig, api)
    try:
        yield found
    finally:
        for name in found.namespaces:
            api.delete(at("v1", "namespaces", name=name))
        api.close()


@contextmanager
def _our_own(plane: ControlPlane, folder: Path) -> Iterator[Cluster]:
    try:
        plane.start()
    except ControlPlaneError as error:
        unavailable(str(error))
    api = Api(Access.of_kubeconfig(plane.kubeconfig))
    # The compiler's image has the same entry point; here it is one Python for both.
    service = service_image()
    images = Images({"rancast": service, "rancast-compiler": service})
    node = ProcessKubelet(api, plane.certificate, folder, images)
    try:
        node.start()
        yield Cluster(plane.kubeconfig, api, node, plane)
    finally:
        node.stop()
        api.close()
        plane.stop()
