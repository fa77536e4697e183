"""The init container that compiles the model, and what keeps it from holding the service up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from model.code_cache import CACHE_VARIABLE
from service.settings import PREFIX, Compiled, Settings
from tests.helm.conftest import Helm
from tests.helm.rendered import container, gibibytes, mounts, pod, variables, volumes

ENABLED = {"enabled": True}
DIGEST = "sha256:" + "cd" * 32


def compiler(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (only,) = pod(objects)["initContainers"]
    found: dict[str, Any] = only
    return found


def test_nothing_is_compiled_unless_it_is_asked_for(helm: Helm) -> None:
    objects = helm.template()
    assert "initContainers" not in pod(objects)
    assert set(volumes(pod(objects))) == {"journal", "tmp"}
    assert CACHE_VARIABLE not in variables(container(objects))


def test_the_service_reads_the_code_where_the_compiler_wrote_it(helm: Helm) -> None:
    objects = helm.template({"compiled": ENABLED})
    writer, reader = compiler(objects), container(objects)
    folder = variables(reader)[CACHE_VARIABLE]
    assert variables(writer)[CACHE_VARIABLE] == folder
    assert mounts(writer)[folder] == {"name": "code", "mountPath": folder}
    assert mounts(reader)[folder] == {"name": "code", "mountPath": folder, "readOnly": True}
    assert volumes(pod(objects))["code"] == {"name": "code", "emptyDir": {"sizeLimit": "1Gi"}}


def test_the_compiler_is_as_restricted_as_the_service(helm: Helm) -> None:
    objects = helm.template({"compiled": ENABLED})
    context = compiler(objects)["securityContext"]
    assert context == container(objects)["securityContext"]
    assert context["readOnlyRootFilesystem"] is True
    assert set(mounts(compiler(objects))) == {"/var/cache/rancast", "/tmp"}


def test_the_compiler_sees_the_checkpoint_and_the_settings_of_the_service(helm: Helm) -> None:
    mount = {"name": "checkpoints", "mountPath": "/checkpoints"}
    source = {"configMapRef": {"name": "more"}}
    objects = helm.template(
        {
            "compiled": ENABLED,
            "settings": {"model_path": "/checkpoints/own.safetensors", "precision": "float32"},
            "extraEnv": [{"name": "RANCAST_CPU_ISA", "value": "avx2"}],
            "extraEnvFrom": [source],
            "extraVolumes": [{"name": "checkpoints", "emptyDir": {}}],
            "extraVolumeMounts": [mount],
        }
    )
    writer, reader = compiler(objects), container(objects)
    assert variables(writer) == variables(reader)
    assert variables(writer)["RANCAST_MODEL_PATH"] == "/checkpoints/own.safetensors"
    assert writer["envFrom"] == reader["envFrom"] == [source]
    assert mounts(writer)["/checkpoints"] == mounts(reader)["/checkpoints"] == mount


@pytest.mark.parametrize(
    ("image", "of_compiler", "expected"),
    [
        ({}, {}, "rancast:0.1.0-compiler"),
        ({"tag": "1.2.3"}, {}, "rancast:1.2.3-compiler"),
        ({"digest": "sha256:" + "ab" * 32}, {}, "rancast:0.1.0-compiler"),
        ({"registry": "host.example", "repository": "a/b"}, {}, "host.example/a/b:0.1.0-compiler"),
        ({}, {"tag": "mine"}, "rancast:mine"),
        (
            {"tag": "1.2.3"},
            {"repository": "a/c"},
            "rancast:1.2.3-compiler".replace("rancast", "a/c"),
        ),
        (
            {"registry": "host.example"},
            {"registry": "other.example/"},
            "other.example/rancast:0.1.0-compiler",
        ),
        ({}, {"digest": DIGEST, "tag": "1.2.3"}, f"rancast@{DIGEST}"),
    ],
)
def test_image_of_the_compiler_follows_that_of_the_service(
    helm: Helm, image: dict[str, str], of_compiler: dict[str, str], expected: str
) -> None:
    values = {"image": image, "compiled": ENABLED | {"image": of_compiler}}
    assert compiler(helm.template(values))["image"] == expected


def test_a_volume_of_the_node_takes_the_place_of_the_pods(helm: Helm) -> None:
    source = {"hostPath": {"path": "/var/cache/rancast", "type": "Directory"}}
    objects = helm.template({"compiled": ENABLED | {"cacheVolume": source}})
    assert volumes(pod(objects))["code"] == {"name": "code", **source}


def test_resources_of_the_compiler_are_its_own(helm: Helm) -> None:
    objects = helm.template({"compiled": ENABLED, "resources": {"requests": {"memory": "9Gi"}}})
    resources = compiler(objects)["resources"]
    assert gibibytes(resources["requests"]["memory"]) == 2**30
    assert gibibytes(resources["limits"]["memory"]) == 2 * 2**30


def test_code_that_the_service_would_leave_alone_is_refused(helm: Helm) -> None:
    refusal = helm.refusal({"compiled": ENABLED, "settings": {"compiled": "off"}})
    assert "compiled.enabled" in refusal
    assert helm.template({"compiled": ENABLED, "settings": {"compiled": "cached"}})


def test_schema_knows_every_choice_of_the_setting(helm: Helm) -> None:
    assert Settings.model_fields["compiled"].annotation is Compiled
    for choice in Compiled:
        assert helm.template({"settings": {"compiled": choice.value}})


@pytest.fixture
def run_script(helm: Helm, tmp_path: Path):
    """Run the init container's command with a `rancast` that does as it is told."""
    objects = helm.template({"compiled": ENABLED | {"timeoutSeconds": 7}})
    *shell, script = compiler(objects)["command"]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = script.replace("/tmp/", f"{temporary}/")
    assert "timeout 7 rancast compile" in script

    def run(behaviour: str, **environment: str) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "rancast"
        program.write_text(f'#!/bin/sh\necho called "$@"\n{behaviour}\n')
        program.chmod(0o755)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(
            [*shell, script],
            env={**inherited, "PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_shipped_checkpoint_is_compiled_where_none_is_named(run_script) -> None:
    answer = run_script("")
    assert answer.stdout.split() == ["called", "compile", "--precision", "auto"]
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_checkpoint_and_the_precision_that_are_served_are_compiled(run_script) -> None:
    own = "/checkpoints/my own.safetensors"
    answer = run_script("", RANCAST_MODEL_PATH=own, RANCAST_PRECISION="float32")
    assert answer.stdout == f"called compile --precision float32 {own}\n"


def test_a_compiler_that_fails_does_not_keep_the_service_waiting(run_script) -> None:
    answer = run_script("exit 2")
    assert answer.returncode == 0
    assert "compiling ended with status 2; starting without" in answer.stderr
    assert "called" in run_script("").stdout, "a failure is tried again, a kill is not"


def test_a_container_that_was_killed_does_not_try_for_ever(run_script) -> None:
    # The grandparent is the shell: as if the kernel had killed the whole container.
    answer = run_script("read -r _ _ _ shell _ < /proc/$PPID/stat; kill -KILL $shell")
    assert answer.returncode != 0
    answer = run_script("")
    assert answer.returncode == 0
    assert "called" not in answer.stdout
    assert "compiling was cut short" in answer.stderr
