"""The image, built for real with buildah, which needs no daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.image.base import base_image, lack, torch_index

REPOSITORY = Path(__file__).resolve().parents[2]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
STORE = "RANCAST_TEST_IMAGE_STORE"
FIGURES = pytest.StashKey[list[str]]()
REVISION = "0123456789abcdef0123456789abcdef01234567"
EPOCH = "1796040000"
CREATED = "2026-11-30T12:00:00Z"


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

    def must(self, script: str) -> str:
        """Run a script that has to succeed; what it printed."""
        answer = self.shell(script)
        assert answer.returncode == 0, (answer.stdout + answer.stderr)[-4000:]
        return answer.stdout

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
    base: str

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


@contextmanager
def _store() -> Iterator[Path]:
    """Where layers are kept: for the run, or where the variable says, so that the next is short."""
    stated = os.environ.get(STORE)
    if stated:
        yield Path(stated)
        return
    # Not where temporary files are: that may be memory, and these are gigabytes.
    with tempfile.TemporaryDirectory(prefix="rancast-image-", dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def builder() -> Iterator[Builder]:
    """Builds as `make image` does, with a store of its own."""
    if shutil.which("buildah") is None:
        lack("buildah is not here")
    if os.geteuid() != 0:
        lack("building without a daemon needs root here")
    with _store() as folder, tempfile.TemporaryDirectory() as scratch:
        buildah = Buildah(folder)
        if buildah.run("from", "--name", "probe", "scratch").returncode:
            buildah = Buildah(folder, "vfs")
        base = base_image(buildah)
        index, mounts = torch_index(Path(scratch))
        if CERTIFICATES.exists():
            mounts += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        arguments = {
            "BASE_IMAGE": base,
            "TORCH_INDEX": index,
            "SOURCE_DATE_EPOCH": EPOCH,
        }
        labels = {"revision": REVISION, "created": CREATED, "base.name": base}
        stated = [
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *(f"--label=org.opencontainers.image.{name}={value}" for name, value in labels.items()),
        ]
        yield Builder(buildah, [*mounts, *stated], base)
        buildah.run("rm", "--all")
        if not os.environ.get(STORE):
            buildah.run("rmi", "--all", "--force")


@pytest.fixture
def figures(pytestconfig: pytest.Config) -> list[str]:
    """Lines for the report at the end: what was measured, which no test judges."""
    return pytestconfig.stash.setdefault(FIGURES, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what was measured."""
    lines = config.stash.get(FIGURES, [])
    if lines:
        terminalreporter.section("measured of the image")
    for line in lines:
        terminalreporter.write_line(line)


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
