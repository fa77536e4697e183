"""Build the Kubernetes control plane that the cluster tests run, from Debian's source package.

No package of Debian or of the Python index holds a Kubernetes API server. The source package
`kubernetes` of Debian 12 does hold all of it, its dependencies included, and Debian 12 has a Go
that compiles it, so apt's signed indexes are all that has to be trusted. Nothing is installed:
packages are unpacked into the cache, and what only the build needs is removed at the end.

    python -m tests.cluster.build_control_plane

A build that was ended goes on where it was. The cache is `$CONTROL_PLANE_CACHE`, or else
`rancast/control-plane` in `$XDG_CACHE_HOME`. No build is needed where `KUBECONFIG` names a cluster
of your own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tests.cluster.apt_sources import AptUnavailableError, PrivateApt

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
BINARIES = (*COMPONENTS, "etcd")
# Go 1.19 is the newest of Debian 12. Its reflect2 replaces the vendored one, see `_mend`.
PACKAGES = (
    "golang-1.19-go",
    "golang-1.19-src",
    "etcd-server",
    "golang-github-modern-go-reflect2-dev",
)
_TREE = re.compile(r"kubernetes-(\d+\.\d+\.\d+)$")
# The build takes 1.9 GB at its largest; with room.
_NEEDED_BYTES = 3_000_000_000


class ControlPlaneUnavailableError(Exception):
    """The control plane cannot be built here; the message says what is missing."""


@dataclass(frozen=True)
class Workshop:
    """The folders of a build.

    Attributes:
        folder: Holds everything, and `bin` in the end.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        """Where the finished binaries lie."""
        return self.folder / "bin"

    @property
    def packages(self) -> Path:
        """Debian packages as they came."""
        return self.folder / "packages"

    @property
    def root(self) -> Path:
        """Debian packages, unpacked."""
        return self.folder / "root"

    @property
    def gopath(self) -> Path:
        """The workspace in which Go looks for Kubernetes."""
        return self.folder / "gopath"

    @property
    def tree(self) -> Path:
        """The source of Kubernetes."""
        return self.gopath / "src" / "k8s.io" / "kubernetes"

    @property
    def finished(self) -> bool:
        """Whether all binaries are there."""
        return all(os.access(self.bin / name, os.X_OK) for name in BINARIES)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where the control plane is kept between runs: outside of the source tree."""
    # Not one of RANCAST_: a service that is started beside the tests would refuse it.
    stated = environment.get("CONTROL_PLANE_CACHE")
    if stated:
        return Path(stated)
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rancast" / "control-plane"


def build(folder: Path) -> Path:
    """Build what is not there yet.

    Args:
        folder: The cache.

    Returns:
        The folder of the four binaries.

    Raises:
        ControlPlaneUnavailableError: It cannot be built here.
    """
    shop = Workshop(folder.resolve())
    if shop.finished:
        return shop.bin
    _check_machine(folder)
    for place in (shop.bin, shop.packages, shop.root, shop.tree.parent):
        place.mkdir(parents=True, exist_ok=True)
    with FileLock(shop.folder / "lock"):
        if not shop.finished:
            try:
                _fetch(shop)
                version = _unpack(shop)
                _compile(shop, version)
            except (AptUnavailableError, OSError, subprocess.CalledProcessError) as error:
                raise ControlPlaneUnavailableError(_reason(error)) from error
        _clean(shop)
    return shop.bin


def _check_machine(folder: Path) -> None:
    """Say at once what minutes of work would end in."""
    wanted = [name for name in ("apt-get", "dpkg", "tar") if shutil.which(name) is None]
    if wanted:
        raise ControlPlaneUnavailableError(
            f"expected Debian 12's {', '.join(wanted)} on PATH; or set KUBECONFIG"
        )
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise ControlPlaneUnavailableError(
            f"expected {_NEEDED_BYTES / 1e9:.0f} GB of free disk in {folder}, got "
            f"{free / 1e9:.1f}; set CONTROL_PLANE_CACHE to a roomier place"
        )


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = str(error.stderr or error.stdout or "").strip().splitlines()[-5:]
        return f"{' '.join(map(str, error.cmd[:4]))} failed: {' / '.join(said)}"
    return str(error)


def _tell(stage: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} control plane: {stage}\n")
    sys.stderr.flush()


def _run(
    command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    answer = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return answer.stdout


def _fetch(shop: Workshop) -> None:
    """Download the source package and the packages that build it, 120 MB."""
    stamp = shop.packages / ".complete"
    if stamp.exists():
        return
    _tell("downloading sources and compiler, 120 MB")
    apt = PrivateApt.of_system(shop.folder / "apt")
    apt.update()
    apt.source("kubernetes", shop.packages)
    apt.download(PACKAGES, shop.packages)
    stamp.touch()


def _unpack(shop: Workshop) -> str:
    """Unpack everything and mend the source; the version of Kubernetes."""
    stamp = shop.tree.parent / "version"
    if stamp.exists():
        return stamp.read_text(encoding="utf-8")
    _tell("unpacking")
    for package in sorted(shop.packages.glob("*.deb")):
        _run(["dpkg", "-x", package, shop.root])
    archives = sorted(shop.packages.glob("kubernetes_*.orig.tar.*"))
    if len(archives) != 1:
        raise ControlPlaneUnavailableError(f"expected one archive of kubernetes, got {archives}")
    shutil.rmtree(shop.tree.parent)
    shop.tree.parent.mkdir(parents=True)
    _run(["tar", "-xf", archives[0], "-C", shop.tree.parent])
    (unpacked,) = shop.tree.parent.iterdir()
    match = _TREE.search(unpacked.name)
    if match is None:
        raise ControlPlaneUnavailableError(f"expected kubernetes-X.Y.Z, got {unpacked.name}")
    unpacked.rename(shop.tree)
    _mend(shop)
    stamp.write_text(match[1], encoding="utf-8")
    return match[1]


def _mend(shop: Workshop) -> None:
    """Put Debian's reflect2 in the place of the vendored one.

    The vendored 1.0.1 reads what Go keeps of types by itself, which Go 1.18 changed: the server
    crashes at the first custom resource. 1.0.2 knows.
    """
    package = Path("github.com", "modern-go", "reflect2")
    vendored = shop.tree / "vendor" / package
    shutil.rmtree(vendored)
    shutil.copytree(shop.root / "usr" / "share" / "gocode" / "src" / package, vendored)
    for test in vendored.glob("*_test.go"):
        test.unlink()


def _go_environment(shop: Workshop) -> dict[str, str]:
    goroot = shop.root / "usr" / "lib" / "go-1.19"
    return {
        **os.environ,
        "PATH": f"{goroot / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "GOROOT": str(goroot),
        "GOPATH": str(shop.gopath),
        "GOCACHE": str(shop.folder / "gocache"),
        "GOENV": "off",
        "GOFLAGS": "",
        # The workspace as it was before modules: nothing is looked up anywhere.
        "GO111MODULE": "off",
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
    }


def _compile(shop: Workshop, version: str) -> None:
    environment = _go_environment(shop)
    _generate_openapi(shop, environment)
    major, minor, _ = version.split(".")
    words = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "archive",
        "gitCommit": "debian",
    }
    # Without these the server says that it is v0.0.0, and helm refuses charts.
    stated = " ".join(
        f"-X k8s.io/kubernetes/vendor/k8s.io/{package}.{name}={value}"
        for package in ("component-base/version", "client-go/pkg/version")
        for name, value in words.items()
    )
    for name in COMPONENTS:
        target = shop.bin / name
        if target.exists():
            continue
        _tell(f"compiling {name} {version}")
        partial = target.with_name(f"{name}.partial")
        # The clouds' own code is half of the work, and unused here.
        tags = ("-tags", "providerless", "-ldflags", f"-s -w {stated}")
        _run(["go", "build", *tags, "-o", partial, f"./cmd/{name}"], cwd=shop.tree, env=environment)
        partial.replace(target)
    shutil.copy2(shop.root / "usr" / "bin" / "etcd", shop.bin / "etcd.partial")
    (shop.bin / "etcd.partial").replace(shop.bin / "etcd")


def _generate_openapi(shop: Workshop, environment: Mapping[str, str]) -> None:
    """Write the one generated file that the source package lacks."""
    name = "zz_generated.openapi"
    target = shop.tree / "pkg" / "generated" / "openapi" / f"{name}.go"
    if target.exists():
        return
    _tell("generating the description of the API")
    generator = shop.folder / "openapi-gen"
    package = "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"
    _run(["go", "build", "-o", generator, package], cwd=shop.tree, env=environment)
    inputs = ",".join(_described_packages(shop.tree))
    # Run into a place of its own: a file that is half written must not look like the whole.
    output = shop.folder / "generated"
    answer = subprocess.run(
        [
            generator,
            *("--input-dirs", inputs),
            *("--output-package", "k8s.io/kubernetes/pkg/generated/openapi"),
            *("--output-file-base", name, "--output-base", output),
            *("--go-header-file", "hack/boilerplate/boilerplate.generatego.txt"),
            *("--report-filename", shop.folder / "violations.txt"),
        ],
        cwd=shop.tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    written = output / "k8s.io/kubernetes/pkg/generated/openapi" / f"{name}.go"
    # It also fails where the API breaks a rule of style, and has written all the same.
    if not written.exists() or not written.stat().st_size:
        raise ControlPlaneUnavailableError(f"no description of the API: {answer.stderr[-500:]}")
    target.parent.mkdir(parents=True, exist_ok=True)
    written.replace(target)


def _described_packages(tree: Path) -> list[str]:
    """Go packages whose types the API's description is made of, by their marks."""
    staging = tree / "staging" / "src"
    found = set()
    for top in (tree / "pkg", tree / "cmd", tree / "plugin", staging / "k8s.io"):
        for file in top.rglob("*.go"):
            if b"+k8s:openapi-gen=" not in file.read_bytes():
                continue
            inside = file.parent.relative_to(staging if top.parent == staging else tree).as_posix()
            if not re.search(
                r"code-generator|sample-apiserver|_examples|generated/openapi", inside
            ):
                found.add(f"vendor/{inside}" if top.parent == staging else inside)
    return [f"k8s.io/kubernetes/{package}" for package in sorted(found)]


def _clean(shop: Workshop) -> None:
    """Remove what only the build needed."""
    for place in shop.folder.iterdir():
        if place.name in {"bin", "lock"}:
            continue
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink()


def main() -> int:
    """Build as the environment says; 1, with the reason, where that cannot be done."""
    stated = os.environ.get("KUBECONFIG")
    if stated:
        sys.stderr.write(f"no control plane is built: KUBECONFIG names {stated}\n")
        return 0
    folder = cache_folder(os.environ)
    try:
        build(folder)
    except ControlPlaneUnavailableError as error:
        sys.stderr.write(f"no control plane here, its tests will skip: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
