"""The built image: who runs in it, what is in it, and that it serves."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import socket
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.image.conftest import REPOSITORY, Image

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]

SITE = "/opt/rancast/lib/python3.*/site-packages"


def config(image: Image) -> dict[str, Any]:
    described = json.loads(image.buildah.must("inspect", "--type", "image", image.name))
    result: dict[str, Any] = described["Docker"]["config"]
    return result


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_configuration_survives_the_build(image: Image) -> None:
    found = config(image)
    assert found["User"] == "10001:10001"
    assert (found["Entrypoint"], found["Cmd"]) == (["rancast"], ["serve"])
    assert found["Healthcheck"]["Test"][0] == "CMD"
    assert "8080/tcp" in found["ExposedPorts"]


def test_only_the_journals_place_can_be_written(image: Image) -> None:
    answer = image.shell("id -u; touch /var/lib/rancast/a && echo yes; touch /a /opt/rancast/a")
    assert answer.stdout.split() == ["10001", "yes"]
    assert answer.returncode != 0


def test_any_user_of_group_0_can_write_the_journal(image: Image) -> None:
    answer = image.shell("touch /var/lib/rancast/b && echo yes", user="12345:0")
    assert answer.stdout.split() == ["yes"], answer.stderr


def test_no_compiler_and_no_installer_is_inside(image: Image) -> None:
    # The public base has an installer of its own, for its own Python.
    answer = image.shell(
        "command -v cc gcc g++ clang make; "
        f"ls -d {SITE}/pip {SITE}/setuptools /opt/rancast/bin/pip*"
    )
    assert answer.stdout.strip() == ""


def test_data_files_of_the_packages_are_inside(image: Image) -> None:
    # The kernel is made inside; what is brought along for it are its sources.
    look = "find kpi model service training -type f ! -name '*.py' ! -path '*/__pycache__/*'"
    listing = f"{look} ! -path '*/native/lib/*'"
    answer = subprocess.run(
        ["sh", "-c", listing], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    wanted, inside = answer.stdout.split(), image.shell(f"cd {SITE} && {listing}").stdout.split()
    assert "kpi/catalogue.toml" in wanted
    assert set(wanted) <= set(inside)


def test_command_line_answers(image: Image) -> None:
    answer = image.shell("rancast --help")
    assert answer.returncode == 0, answer.stderr
    assert "serve" in answer.stdout


def test_attention_runs_in_the_kernel_that_was_built_with_the_image(image: Image) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("there is a kernel for x86-64 only")
    look = (
        "from model.attention.native.library import kernel_library; print(kernel_library().find())"
    )
    found = image.shell(f'python3 -c "{look}"').stdout
    assert fnmatch(found.strip(), f"{SITE}/model/attention/native/lib/attention-*.so")
    told = image.shell("rancast doctor")
    assert told.returncode == 0, told.stderr
    assert re.search(r"attention: (\w+ kernel from /opt|this processor lacks)", told.stdout)


def serve_script(then: str) -> str:
    """Serves until the shell function `healthy` succeeds and `then` has run."""
    return (
        f"export RANCAST_PORT={free_port()} RANCAST_OPEN_ACCESS=true HOME=/tmp\n"
        "rancast serve & service=$!\n"
        "tries=0\n"
        "until healthy 2>/dev/null; do\n"
        "  tries=$((tries + 1))\n"
        "  if [ $tries -gt 60 ] || ! kill -0 $service; then echo ill; exit 1; fi\n"
        "  sleep 1\n"
        "done\n"
        f"{then}\n"
        "kill -TERM $service; wait $service\n"
    )


def get(path: str) -> str:
    """Shell command that prints what the service answers."""
    url = f"'http://127.0.0.1:' + os.environ['RANCAST_PORT'] + '/{path}'"
    program = f"import os, urllib.request; print(urllib.request.urlopen({url}).read().decode())"
    return f'python3 -c "{program}"'


def test_service_becomes_healthy_by_its_own_health_check(image: Image) -> None:
    check = config(image)["Healthcheck"]["Test"]
    assert check[0] == "CMD"
    answer = image.shell(
        f"healthy() {{ {shlex.join(check[1:])}; }}\n" + serve_script("echo healthy")
    )
    assert "healthy" in answer.stdout, answer.stdout + answer.stderr


def test_service_does_not_start_open_unless_told_so(image: Image) -> None:
    answer = image.shell("HOME=/tmp rancast serve")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "RANCAST_OPEN_ACCESS=true" in answer.stderr


def test_compiler_compiles_unless_told_otherwise(compiler_image: Image) -> None:
    found = config(compiler_image)
    assert found["User"] == "10001:10001"
    assert (found["Entrypoint"], found["Cmd"]) == (["rancast"], ["compile"])
    assert found["Healthcheck"]["Test"] == ["NONE"]


def test_service_runs_the_code_that_the_compiler_left_behind(
    image: Image, compiler_image: Image, own_checkpoint: Path, tmp_path: Path
) -> None:
    cache, scratch = tmp_path / "cache", tmp_path / "scratch"
    for folder in (cache, scratch):
        folder.mkdir()
        os.chown(folder, 10001, 10001)
    checkpoints = f"{own_checkpoint.parent}:/checkpoints:ro"
    volumes = [checkpoints, f"{scratch}:/tmp"]

    compiled = compiler_image.hardened_shell(
        "touch /opt/rancast/a 2>/dev/null && exit 9; export HOME=/tmp\n"
        "rancast compile /checkpoints/own.safetensors",
        volumes=[*volumes, f"{cache}:/var/cache/rancast"],
    )
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr

    served = image.hardened_shell(
        "export RANCAST_MODEL_PATH=/checkpoints/own.safetensors\n"
        f"healthy() {{ {get('readyz')}; }}\n" + serve_script(get("metrics")),
        volumes=[*volumes, f"{cache}:/var/cache/rancast:ro"],
    )
    assert 'path="compiled"' in served.stdout, served.stdout[-2000:] + served.stderr[-4000:]
    assert 'rancast_compilations_total{result="cached"} 1.0' in served.stdout
