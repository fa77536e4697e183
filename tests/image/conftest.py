"""The image, built for real with buildah, which needs no daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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

    def shell(self, script: str, *, user: str = "10001:10001") -> subprocess.CompletedProcess[str]:
        """Run a script in the container with the image's environment."""
        return self.buildah.run("run", "--user", user, self.container, "--", "sh", "-c", script)


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
def image() -> Iterator[Image]:
    """The image, as `make image` builds it."""
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
        tag = "localhost/rancast:test"
        buildah.must(
            *("build", "--pull=never", "--format=docker", *mounts, *arguments),
            *("--tag", tag, str(REPOSITORY)),
        )
        container = buildah.must("from", "--pull=never", tag)
        yield Image(buildah, tag, container)
        buildah.run("rm", "--all")
        buildah.run("rmi", "--all", "--force")
