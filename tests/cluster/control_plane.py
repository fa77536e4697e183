"""etcd, the API server, the controllers and the scheduler of Kubernetes, on the loopback interface.

Ports are free ones, all files lie in one folder, and everything ends with `stop`. What the cluster
lacks is a node: see `process_kubelet`.
"""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.cluster.api import Access, Api, ApiError, at

# Those of a whole cluster that act on what the tests create. No node life cycle: a machine that is
# busy for a minute would lose its only node.
CONTROLLERS = (
    "deployment",
    "disruption",
    "endpoint",
    "endpointslice",
    "garbagecollector",
    "job",
    "namespace",
    "persistentvolume-binder",
    "pv-protection",
    "pvc-protection",
    "replicaset",
    "root-ca-cert-publisher",
    "serviceaccount",
    "serviceaccount-token",
    "ttl-after-finished",
)
_TOKEN = "administrator"
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0


class ControlPlaneError(Exception):
    """The control plane did not start, or died; the message holds the ends of its logs."""


@dataclass(frozen=True)
class Certificate:
    """A certificate for the loopback interface, which is its own authority.

    Attributes:
        certificate: PEM file.
        key: PEM file; also signs the tokens of service accounts.
    """

    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Certificate:
        """Make one.

        Raises:
            ControlPlaneError: There is no openssl.
        """
        if shutil.which("openssl") is None:
            raise ControlPlaneError("expected openssl on PATH, which makes the certificates")
        made = cls(folder / "loopback.crt", folder / "loopback.key")
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", "/CN=loopback", "-keyout", made.key, "-out", made.certificate),
                *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
                *("-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign"),
            ],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        return made

    def server_context(self) -> ssl.SSLContext:
        """What a server that bears it needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@dataclass
class ControlPlane:
    """A control plane.

    Attributes:
        bin: Folder of its four binaries.
        folder: Of its data, logs and certificates.
        processes: What runs, by name, in the order of its start.
    """

    bin: Path
    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def kubeconfig(self) -> Path:
        """Opens the cluster to its administrator."""
        return self.folder / "kubeconfig"

    @property
    def certificate(self) -> Certificate:
        """Of the API server; its node may bear it as well."""
        return Certificate(self.folder / "loopback.crt", self.folder / "loopback.key")

    def start(self) -> None:
        """Start everything and wait until pods can be created.

        Raises:
            ControlPlaneError: It does not come up.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        certificate = Certificate.make(self.folder)
        store, peer, api = free_ports(3)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f"{_TOKEN},admin,1,system:masters\n", encoding="utf-8")
        self._write_kubeconfig(api)
        try:
            self._start_store(store, peer)
            self._start_server(certificate, store, api, tokens)
            self._wait()
            self._start_workers(certificate)
            self._wait_for_accounts()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes, by their ids, the last one first.

        The API server goes before its store: without it, it hangs for a minute.
        """
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_STOP_SECONDS)
        self.processes.clear()

    def logs(self, lines: int = 15) -> str:
        """The last lines of each process."""
        told = []
        for file in sorted(self.folder.glob("*.log")):
            end = file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            told.append("\n".join([f"== {file.name}", *end]))
        return "\n".join(told)

    def _start_store(self, port: int, peer_port: int) -> None:
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        self._run(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # What a crash of the machine loses does not matter here, and the disk is slow.
            "--unsafe-no-fsync",
        )

    def _start_server(self, certificate: Certificate, store: int, port: int, tokens: Path) -> None:
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate.certificate}",
            f"--tls-private-key-file={certificate.key}",
            f"--kubelet-certificate-authority={certificate.certificate}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://127.0.0.1",
            f"--service-account-signing-key-file={certificate.key}",
            f"--service-account-key-file={certificate.key}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--feature-gates=TTLAfterFinished=true",
        )

    def _start_workers(self, certificate: Certificate) -> None:
        common = (
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        )
        self._run(
            "kube-controller-manager",
            *common,
            f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={certificate.key}",
            f"--root-ca-file={certificate.certificate}",
            "--use-service-account-credentials=false",
            "--feature-gates=TTLAfterFinished=true",
        )
        self._run("kube-scheduler", *common)

    def _run(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [self.bin / name, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A Ctrl-C is for the tests, which then end this in its order.
                start_new_session=True,
            )

    def _write_kubeconfig(self, port: int) -> None:
        name = "rancast-test"
        cluster = {
            "server": f"https://127.0.0.1:{port}",
            "certificate-authority": str(self.certificate.certificate),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": _TOKEN}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        self.kubeconfig.write_text(json.dumps(document, indent=1), encoding="utf-8")
        self.kubeconfig.chmod(0o600)

    def _wait(self) -> None:
        self._until("/readyz")

    def _wait_for_accounts(self) -> None:
        """Pods need a service account, which the controllers make for each namespace."""
        self._until(at("v1", "serviceaccounts", "default", "default"))

    def _until(self, path: str) -> None:
        api = Api(Access.of_kubeconfig(self.kubeconfig))
        end = time.monotonic() + _START_SECONDS
        try:
            while True:
                try:
                    api.get(path)
                except (httpx.HTTPError, ApiError) as error:
                    self._check_alive()
                    if time.monotonic() > end:
                        raise ControlPlaneError(
                            f"expected {path} to answer within {_START_SECONDS:.0f} s, got "
                            f"{error}\n{self.logs()}"
                        ) from error
                    time.sleep(0.1)
                else:
                    return
        finally:
            api.close()

    def _check_alive(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise ControlPlaneError(
                    f"{name} ended with status {process.returncode}\n{self.logs()}"
                )
