"""The image, built for real with buildah, which needs no daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PUBLIC_BASE = "docker.io/library/python:3.11-slim-bookworm"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Buildah:
    """An image store of its own.

    Attributes:
        folder: Where images and containers lie.
        driver: How layers are kept: `overlay`, or `vfs` where that cannot be mounted.
    """

    folder: Path
    driver: str = "overlay"
    environment: dict[str, str] = field(
        default_factory=lambda: {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    )

    def run(self, *arguments: str, timeout: float = 1800) -> subprocess.CompletedProcess[str]:
        """Run buildah and return what it said, whatever its exit status."""
        store = ["--root", str(self.folder / "root"), "--runroot", str(self.folder / "run")]
        return subprocess.run(
            ["buildah", *store, "--storage-driver", self.driver, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )

    def must(self, *arguments: str) -> str:
        """Run buildah, which has to succeed; what it printed."""
        answer = self.run(*arguments)
        assert answer.returncode == 0, (answer.stdout + answer.stderr)[-4000:]
        return answer.stdout.strip()


@dataclass(frozen=True)
class Image:
    """A built image and a container made of it."""

    buildah: Buildah
    name: str
    container: str

    def shell(
        self, script: str, *, user: str = "10001:10001", volumes: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in the container with the image's environment.

        Args:
            script: For `sh`.
            user: Who runs it.
            volumes: What is mounted, as `outside:inside` or `outside:inside:ro`.
        """
        options = (*_mounts(volumes), "--user", user)
        return self.buildah.run("run", *options, self.container, "--", "sh", "-c", script)

    def hardened_shell(
        self, script: str, *, volumes: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a script as a restricted pod does: on a read-only root, without any capability."""
        drop = (
            "setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all"
        )
        harden = f'mount -o remount,bind,ro / && exec {drop} sh -c "$1"'
        options = (*_mounts(volumes), "--user", "0:0", "--cap-add", "CAP_SYS_ADMIN")
        command = ("sh", "-c", harden, "sh", script)
        return self.buildah.run("run", *options, self.container, "--", *command)


@dataclass(frozen=True)
class Builder:
    """Makes the images of the Dockerfile, layer by layer, so that they share what they can."""

    buildah: Buildah
    options: Sequence[str]

    def image(self, target: str | None = None) -> Image:
        """The image of a target, or the one that is made where none is named."""
        tag = f"localhost/rancast:{target or 'test'}"
        named = () if target is None else ("--target", target)
        self.buildah.must(
            *("build", "--layers", "--pull=never", "--format=docker", *self.options, *named),
            *("--tag", tag, str(REPOSITORY)),
        )
        return Image(self.buildah, tag, self.buildah.must("from", "--pull=never", tag))


def _mounts(volumes: Sequence[str]) -> list[str]:
    return [word for volume in volumes for word in ("--volume", volume)]


def _base_image(buildah: Buildah, folder: Path) -> str:
    """The public base image, or one made of Debian's packages where no registry is reached."""
    stated = os.environ.get("BASE_IMAGE", PUBLIC_BASE)
    if buildah.run("pull", stated, timeout=300).returncode == 0:
        return stated
    if shutil.which("mmdebstrap") is None:
        pytest.skip(f"{stated} cannot be pulled and mmdebstrap is not here to make a base image")
    tar = folder / "base.tar"
    packages = "--include=ca-certificates,python3,python3-venv"
    made = subprocess.run(
        ["mmdebstrap", "--variant=minbase", packages, "bookworm", str(tar)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    if made.returncode:
        pytest.skip(f"{stated} cannot be pulled nor made: {made.stderr[-300:]}")
    container = buildah.must("from", "scratch")
    buildah.must("add", "--quiet", container, str(tar), "/")
    buildah.must("config", "--env", f"PATH={SYSTEM_PATH}", container)
    buildah.must("commit", "--quiet", "--rm", container, "localhost/base:test")
    tar.unlink()
    return "localhost/base:test"


def _torch_index(folder: Path) -> tuple[str, list[str]]:
    """An index with a CPU build of torch, and the options that let the build reach it."""
    stated = os.environ.get("TORCH_INDEX", "")
    if stated:
        return stated, []
    version = metadata.version("torch")
    if not version.endswith("+cpu"):
        pytest.skip("a CPU build of torch is needed here: set TORCH_INDEX")
    index = folder / "index" / "torch"
    index.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    subprocess.run(
        [*pip, "--dest", str(index), f"torch=={version.partition('+')[0]}"],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    (wheel,) = index.glob("*.whl")
    if "cpu" not in wheel.name:
        pytest.skip("pip offers no CPU build of torch by itself: set TORCH_INDEX")
    link = wheel.name.replace("+", "%2B")
    (index / "index.html").write_text(f'<a href="{link}">{wheel.name}</a>', encoding="utf-8")
    return "file:///torch-index", ["--volume", f"{index.parent}:/torch-index:ro"]


@pytest.fixture(scope="session")
def builder() -> Iterator[Builder]:
    """Builds as `make image` does, with a store of its own."""
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not here")
    if os.geteuid() != 0:
        pytest.skip("building without a daemon needs root here")
    with tempfile.TemporaryDirectory(prefix="rancast-image-", dir="/var/tmp") as name:
        folder = Path(name)
        buildah = Buildah(folder)
        if buildah.run("from", "--name", "probe", "scratch").returncode:
            buildah = Buildah(folder, "vfs")
        base = _base_image(buildah, folder)
        index, mounts = _torch_index(folder)
        if CERTIFICATES.exists():
            mounts += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        arguments = ["--build-arg", f"BASE_IMAGE={base}", "--build-arg", f"TORCH_INDEX={index}"]
        yield Builder(buildah, [*mounts, *arguments])
        buildah.run("rm", "--all")
        buildah.run("rmi", "--all", "--force")


@pytest.fixture(scope="session")
def image(builder: Builder) -> Image:
    """The image of the service."""
    return builder.image()


@pytest.fixture(scope="session")
def compiler_image(builder: Builder) -> Image:
    """The image with the compiler."""
    return builder.image("compiler")


@pytest.fixture(scope="session")
def own_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny one, because the shipped one takes minutes to compile."""
    import torch

    from kpi.catalogue import load_catalogue
    from model.checkpoint import Checkpoint, save_checkpoint
    from model.config import ForecasterConfig
    from model.forecaster import Forecaster

    torch.manual_seed(0)
    config = ForecasterConfig(
        width=32, layers=2, heads=2, feedforward=48, context_patches=8, horizon_patches=3
    )
    weights = Forecaster(config).state_dict()
    path = tmp_path_factory.mktemp("checkpoints") / "own.safetensors"
    version = load_catalogue().version
    save_checkpoint(Checkpoint("own", "0", config, weights, version), path)
    path.chmod(0o644)
    path.parent.chmod(0o755)
    return path
