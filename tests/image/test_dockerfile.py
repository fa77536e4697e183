"""The Dockerfile keeps its promises on paper: stages, user, arguments, what the builder sees."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from model.code_cache import CACHE_VARIABLE
from service.healthcheck import TIMEOUT_S
from service.settings import PREFIX, Settings

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Step:
    """One instruction and what follows it."""

    instruction: str
    rest: str


def steps(text: str) -> list[Step]:
    """Instructions of a Dockerfile, continued lines joined, comments dropped."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    pairs = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [Step(pair[0].upper(), pair[1] if len(pair) > 1 else "") for pair in pairs]


DOCKERFILE = steps((REPOSITORY / "Dockerfile").read_text(encoding="utf-8"))


def stages() -> dict[str, list[Step]]:
    """Steps of each stage by its name, FROM first; what stands before them under no name."""
    found: dict[str, list[Step]] = {"": []}
    for step in DOCKERFILE:
        if step.instruction == "FROM":
            found[step.rest.partition(" AS ")[2]] = []
        [*_, last] = found.values()
        last.append(step)
    return found


HEAD, REQUIREMENTS, PACKAGES, BUILD, FINAL, COMPILER, SERVICE = stages().values()


def all_of(instruction: str, among: list[Step]) -> list[str]:
    return [step.rest for step in among if step.instruction == instruction]


def test_base_images_are_arguments_with_a_fixed_version() -> None:
    arguments = dict(rest.split("=", 1) for rest in all_of("ARG", HEAD))
    assert re.search(r":3\.\d+-\S+$", arguments["BASE_IMAGE"])
    assert arguments["BUILD_IMAGE"] == "${BASE_IMAGE}"
    assert "latest" not in " ".join(arguments.values())
    assert all_of("FROM", REQUIREMENTS) == ["${BUILD_IMAGE} AS requirements"]
    assert all_of("FROM", PACKAGES) == ["${BUILD_IMAGE} AS packages"]
    assert all_of("FROM", BUILD) == ["packages AS build"]
    assert all_of("FROM", FINAL) == ["${BASE_IMAGE} AS runtime"]


def test_without_a_target_the_service_is_built_and_nothing_is_added() -> None:
    assert list(stages())[-1] == "service"
    assert all_of("FROM", SERVICE) == ["runtime AS service"]
    assert len(SERVICE) == 1


def test_compiler_is_the_runtime_with_a_compiler_and_torchs_headers() -> None:
    assert all_of("FROM", COMPILER) == ["runtime AS compiler"]
    assert "g++" in " ".join(all_of("RUN", COMPILER))
    assert all_of("COPY", COMPILER) == ["--from=packages /opt/compiler /opt/rancast"]
    assert json.loads(all_of("CMD", COMPILER)[0]) == ["compile"]
    assert not all_of("ENTRYPOINT", COMPILER), "it has that of the runtime"


def test_compiler_gives_its_rights_up_again() -> None:
    instructions = [step.instruction for step in COMPILER]
    last_user = len(instructions) - instructions[::-1].index("USER")
    assert COMPILER[last_user - 1].rest == all_of("USER", FINAL)[0]
    assert not {"RUN", "COPY", "ADD"} & set(instructions[last_user:])


def test_index_of_torch_is_an_empty_argument() -> None:
    assert 'TORCH_INDEX=""' in all_of("ARG", PACKAGES)
    assert any("--extra-index-url" in rest for rest in all_of("RUN", PACKAGES))


def test_whatever_pip_fetches_is_pinned() -> None:
    calls = re.findall(r"/pip [^&]*", " && ".join(all_of("RUN", DOCKERFILE)))
    fetches = [call for call in calls if " uninstall " not in call]
    assert len(fetches) == 5
    for call in fetches:
        assert "-c constraints.txt" in call or "--no-deps --no-" in call


def test_packages_and_our_own_code_are_layers_of_their_own() -> None:
    # A revision that changes no dependency is pulled without them.
    assert not {"pyproject.toml", "service", "."} & {
        name for rest in all_of("COPY", PACKAGES) for name in rest.split()
    }
    assert all_of("COPY", FINAL) == [
        "--from=packages /opt/rancast /opt/rancast",
        "--from=build /opt/staged/opt/rancast /opt/rancast",
    ]


@pytest.mark.parametrize("stage", [FINAL, COMPILER], ids=["service", "compiler"])
def test_inventory_is_written_after_everything_that_is_inside(stage: list[Step]) -> None:
    changes = [step for step in stage if step.instruction in {"RUN", "COPY", "ADD"}]
    assert changes[-1].rest == "python3 -P -m service.inventory write /opt/rancast"


def test_final_stage_installs_no_packages() -> None:
    runs = " ".join(all_of("RUN", FINAL))
    assert not re.search(r"apt-get|apk|pip|gcc|g\+\+|curl|wget", runs)


def test_service_runs_as_a_numeric_unprivileged_user() -> None:
    # Kubernetes can check runAsNonRoot against a number only.
    assert all_of("USER", FINAL) == ["10001:10001"]
    after = FINAL[[step.instruction for step in FINAL].index("USER") :]
    assert not {"RUN", "COPY", "ADD"} & {step.instruction for step in after}


def test_it_starts_as_a_process_that_gets_the_signals() -> None:
    assert json.loads(all_of("ENTRYPOINT", FINAL)[0]) == ["rancast"]
    assert json.loads(all_of("CMD", FINAL)[0]) == ["serve"]


def test_health_check_is_a_program_that_python_understands() -> None:
    (check,) = all_of("HEALTHCHECK", FINAL)
    command = json.loads(check.partition("CMD ")[2])
    # -P: a module that lies on the volume, which is the working directory, is not run.
    assert command[:3] == ["python3", "-P", "-m"]
    assert find_spec(command[3]) is not None
    (patience_s,) = re.findall(r"--timeout=(\d+)s", check)
    assert float(patience_s) > TIMEOUT_S


def test_every_variable_that_the_image_sets_is_a_setting() -> None:
    names = re.findall(rf"\b({PREFIX}[A-Z_]+)=", " ".join(all_of("ENV", FINAL)))
    assert {"RANCAST_HOST", "RANCAST_PORT", "RANCAST_JOURNAL_PATH", CACHE_VARIABLE} == set(names)
    settings = {PREFIX + name.upper() for name in Settings.model_fields}
    assert set(names) <= settings | {CACHE_VARIABLE}


def test_image_leaves_it_to_the_operator_who_may_come_in() -> None:
    # It listens on every address: an image that said so would be open wherever it is published.
    assert "RANCAST_OPEN_ACCESS" not in (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")


def test_what_is_written_belongs_to_the_service() -> None:
    (owned,) = re.findall(r"install -d -o 10001 [^&]*", " ".join(all_of("RUN", FINAL)))
    environment = " ".join(all_of("ENV", FINAL))
    (cache,) = re.findall(rf"{CACHE_VARIABLE}=(\S+)", environment)
    assert {cache, *all_of("VOLUME", FINAL)} <= set(owned.split())


def test_journal_lies_on_the_volume() -> None:
    environment = " ".join(all_of("ENV", FINAL))
    (volume,) = all_of("VOLUME", FINAL)
    assert f"RANCAST_JOURNAL_PATH={volume}/" in environment
    assert "PYTHONDONTWRITEBYTECODE=1" in environment


def test_labels_say_what_it_is_whence_and_on_what() -> None:
    prefix = "org.opencontainers.image."
    labels = " ".join(all_of("LABEL", FINAL))
    for name in ("title", "description", "licenses", "version"):
        assert f"{prefix}{name}=" in labels
    target = (REPOSITORY / "Makefile").read_text(encoding="utf-8").partition("\nimage:")[2]
    for name in ("revision", "source", "created", "base.name", "base.digest"):
        assert f'--label "{prefix}{name}=' in target


def test_make_states_every_argument_of_the_build() -> None:
    target = (REPOSITORY / "Makefile").read_text(encoding="utf-8").partition("\nimage:")[2]
    stated = set(re.findall(r'--build-arg "(\w+)=', target))
    assert stated == {"BASE_IMAGE", "EXTRAS", "TORCH_INDEX", "SOURCE_DATE_EPOCH"}
    known = {rest.partition("=")[0] for rest in all_of("ARG", DOCKERFILE)}
    assert known == {*stated, "BUILD_IMAGE", "VERSION"}


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"VERSION={project['version']}" in all_of("ARG", FINAL)


def test_everything_that_is_copied_exists_and_reaches_the_builder() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    sources = {
        name
        for rest in all_of("COPY", [*REQUIREMENTS, *PACKAGES, *BUILD])
        if not rest.startswith("--from")
        for name in rest.split()[:-1]
    }
    assert {"kpi", "model", "training", "service", "rancast.py"} <= sources
    assert {f"!{name}" for name in sources} <= set(ignored)


@pytest.mark.cluster
def test_hadolint_finds_nothing() -> None:
    beside_python = Path(sys.executable).with_name("hadolint")
    binary = str(beside_python) if beside_python.exists() else shutil.which("hadolint")
    if binary is None:
        pytest.skip("hadolint is not here; the cluster extra brings it")
    answer = subprocess.run(
        [binary, "--no-color", str(REPOSITORY / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
