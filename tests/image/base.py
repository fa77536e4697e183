"""What an image is built on: the public base or one like it, and an index with torch for CPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from tests.image.conftest import Buildah

PUBLIC_BASE = "docker.io/library/python:3.11-slim-bookworm"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT_S = 14 * 86400
"""Age at which a base is made anew, so that it has the corrections of Debian's packages."""


def lack(reason: str) -> NoReturn:
    """Skip, because the machine lacks something; where all is promised to be there, fail."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def base_image(buildah: Buildah) -> str:
    """The public base image, or one made of Debian's packages where no registry is reached."""
    stated = os.environ.get("BASE_IMAGE", PUBLIC_BASE)
    if buildah.run("pull", stated, timeout=300).returncode == 0:
        return stated
    tar = _made_base(stated)
    # A store that is kept has it already; another one, even of the same files, would be built anew.
    name = f"localhost/base:made-{int(tar.stat().st_mtime)}"
    if buildah.run("inspect", "--type", "image", name).returncode == 0:
        return name
    container = buildah.must("from", "scratch")
    buildah.must("add", "--quiet", container, str(tar), "/")
    buildah.must("config", "--env", f"PATH={SYSTEM_PATH}", container)
    buildah.must("commit", "--quiet", "--rm", container, name)
    return name


def torch_index(folder: Path) -> tuple[str, list[str]]:
    """An index with a CPU build of torch, and the options that let the build reach it."""
    stated = os.environ.get("TORCH_INDEX", "")
    if stated:
        return stated, []
    version = metadata.version("torch")
    if not version.endswith("+cpu"):
        lack("a CPU build of torch is needed here: set TORCH_INDEX")
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
        lack("pip offers no CPU build of torch by itself: set TORCH_INDEX")
    link = wheel.name.replace("+", "%2B")
    (index / "index.html").write_text(f'<a href="{link}">{wheel.name}</a>', encoding="utf-8")
    return "file:///torch-index", ["--volume", f"{index.parent}:/torch-index:ro"]


def _made_base(stated: str) -> Path:
    """A small Debian with Python, kept between runs outside of the source tree."""
    tar = _cache_folder() / "bookworm.tar"
    if tar.exists() and time.time() - tar.stat().st_mtime < KEPT_S:
        return tar
    if shutil.which("mmdebstrap") is None:
        lack(f"{stated} cannot be pulled and mmdebstrap is not here to make a base image")
    tar.parent.mkdir(parents=True, exist_ok=True)
    # Under another name until it is whole: what is here is taken as it is.
    part = tar.with_name(f"bookworm-{os.getpid()}.tar")
    packages = "--include=ca-certificates,python3,python3-venv"
    made = subprocess.run(
        ["mmdebstrap", "--variant=minbase", packages, "bookworm", str(part)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    if made.returncode:
        part.unlink(missing_ok=True)
        lack(f"{stated} cannot be pulled nor made: {made.stderr[-300:]}")
    return part.replace(tar)


def _cache_folder() -> Path:
    stated = os.environ.get("RANCAST_TEST_CACHE")
    if stated:
        return Path(stated) / "image"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rancast" / "image"
