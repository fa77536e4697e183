"""The built image: who runs in it, what is in it, and that it serves."""

from __future__ import annotations

import json
import socket
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
    assert found["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_only_the_journals_place_can_be_written(image: Image) -> None:
    answer = image.shell("id -u; touch /var/lib/rancast/a && echo yes; touch /a /opt/rancast/a")
    assert answer.stdout.split() == ["10001", "yes"]
    assert answer.returncode != 0


def test_any_user_of_group_0_can_write_the_journal(image: Image) -> None:
    answer = image.shell("touch /var/lib/rancast/b && echo yes", user="12345:0")
    assert answer.stdout.split() == ["yes"], answer.stderr


def test_no_compiler_and_no_installer_is_inside(image: Image) -> None:
    answer = image.shell("command -v cc gcc g++ clang make pip pip3; ls -d " + SITE + "/pip")
    assert answer.stdout.strip() == ""


def test_data_files_of_the_packages_are_inside(image: Image) -> None:
    def files(folder: Path) -> set[str]:
        found = [*folder.glob("kpi/*.toml"), *folder.glob("model/pretrained/*.safetensors")]
        found += [path for path in folder.glob("service/static/*") if path.is_file()]
        return {path.relative_to(folder).as_posix() for path in found}

    listing = f"cd {SITE} && ls -d kpi/*.toml model/pretrained/*.safetensors service/static/*"
    inside = set(image.shell(listing).stdout.split())
    assert files(REPOSITORY)
    assert files(REPOSITORY) <= inside


def test_command_line_answers(image: Image) -> None:
    answer = image.shell("rancast --help")
    assert answer.returncode == 0, answer.stderr
    assert "serve" in answer.stdout


def test_service_becomes_healthy_by_its_own_health_check(image: Image) -> None:
    check = config(image)["Healthcheck"]["Test"]
    assert check[1:3] == ["python3", "-c"]
    answer = image.shell(
        f"export RANCAST_PORT={free_port()} HOME=/tmp\n"
        "rancast serve & service=$!\n"
        "tries=0\n"
        f'until python3 -c "{check[3]}" 2>/dev/null; do\n'
        "  tries=$((tries + 1))\n"
        "  if [ $tries -gt 60 ] || ! kill -0 $service; then echo ill; exit 1; fi\n"
        "  sleep 1\n"
        "done\n"
        "echo healthy\n"
        "kill -TERM $service; wait $service\n"
    )
    assert "healthy" in answer.stdout, answer.stdout + answer.stderr
