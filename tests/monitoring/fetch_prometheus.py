"""Fetch prometheus and promtool for the tests of rules, from Debian's package without its daemon.

The package is downloaded by apt, which checks it against its signed lists, and unpacked into a
cache in the user's folder; nothing is installed or started.

    python tests/monitoring/fetch_prometheus.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("prometheus", "promtool")
# Up to Debian 12 the first package holds both programs; from 13 on promtool is one of its own.
PACKAGES = ("prometheus", "promtool")


class PrometheusUnavailableError(Exception):
    """No Prometheus can be had here: no apt, no network, or no such package."""


def cache_folder() -> Path:
    """Where the programs are kept, outside of any checkout."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(caches) / "rancast-tools" / "prometheus"


def fetch(folder: Path) -> None:
    """Put the programs into a folder, or leave nothing there.

    Raises:
        PrometheusUnavailableError: They cannot be had here.
    """
    for needed in ("apt-get", "dpkg"):
        if shutil.which(needed) is None:
            raise PrometheusUnavailableError(f"there is no {needed}; put promtool on PATH")
    with tempfile.TemporaryDirectory() as scratch:
        # apt gives up its rights to download, and its user has to reach the folder then.
        Path(scratch).chmod(0o755)
        unpacked = Path(scratch) / "unpacked"
        found = [unpacked / "usr" / "bin" / name for name in PROGRAMS]
        for package in PACKAGES:
            if not all(path.is_file() for path in found):
                _run("dpkg", "-x", str(_download(package, Path(scratch))), str(unpacked))
        missing = [path.name for path in found if not path.is_file()]
        if missing:
            raise PrometheusUnavailableError(f"no package holds {' or '.join(missing)}")
        folder.mkdir(parents=True, exist_ok=True)
        for path in found:
            partial = folder / f"{path.name}.partial"
            shutil.copy2(path, partial)
            os.replace(partial, folder / path.name)


def _download(package: str, folder: Path) -> Path:
    try:
        _run("apt-get", "download", "-qq", package, cwd=folder)
    except PrometheusUnavailableError:
        # A machine that was just made has no lists of packages yet.
        _run("apt-get", "update", "-qq")
        _run("apt-get", "download", "-qq", package, cwd=folder)
    found = list(folder.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise PrometheusUnavailableError(f"expected one file of {package}, got {len(found)}")
    return found[0]


def _run(*command: str, cwd: Path | None = None) -> None:
    answer = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if answer.returncode:
        said = answer.stderr.strip().splitlines()[-1:] or [f"status {answer.returncode}"]
        raise PrometheusUnavailableError(f"{' '.join(command)}: {said[0]}")


def main(arguments: list[str] | None = None) -> int:
    """Fetch the programs unless they are here; 1 where they cannot be had."""
    parser = argparse.ArgumentParser(description="fetch Prometheus for the tests of its rules")
    parser.add_argument("folder", type=Path, nargs="?", default=cache_folder())
    folder = parser.parse_args(arguments).folder
    if all(shutil.which(name) or (folder / name).exists() for name in PROGRAMS):
        return 0
    try:
        fetch(folder)
    except PrometheusUnavailableError as error:
        sys.stderr.write(f"prometheus is not here: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
