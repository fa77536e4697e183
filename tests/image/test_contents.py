"""What is in the built image: the pinned packages and no others, each stated with its licence."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from service.inventory.__main__ import BILL, LICENCES
from service.inventory.policy import REVIEWED
from tests.image.conftest import CREATED, REPOSITORY, REVISION, Builder, Image

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]

FOLDER = "/opt/rancast"
SITE = f"{FOLDER}/lib/python3.*/site-packages"
LIST = (
    "import json; from importlib.metadata import distributions; "
    "found = {d.metadata['Name']: [d.version, d.requires or []] for d in distributions()}; "
    "print(json.dumps(found))"
)
# Torch names it for building extensions, which the image cannot do: it has no compiler.
LEFT_OUT = {"setuptools"}


@pytest.fixture(scope="module")
def installed(image: Image) -> dict[str, tuple[str, list[str]]]:
    """Version and requirements of each package of Python inside, by its canonical name."""
    found = json.loads(image.must(f'python3 -P -c "{LIST}"'))
    return {canonicalize_name(name): (version, needs) for name, (version, needs) in found.items()}


@pytest.fixture(scope="module")
def bill(image: Image) -> str:
    return image.must(f"cat {FOLDER}/{BILL}")


def pinned() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def test_every_package_is_the_pinned_one(installed) -> None:
    # What stands behind a plus sign says for which machine torch was built.
    versions = {name: version.partition("+")[0] for name, (version, _) in installed.items()}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert versions.pop("rancast") == project["version"]
    assert versions == {name: pinned().get(name) for name in versions}


def test_nothing_is_inside_that_nothing_needs_and_nothing_is_missing(installed) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    needed: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in LEFT_OUT:
            continue
        for extra in ("", *wanted.extras):
            if (name, extra) in needed:
                continue
            needed.add((name, extra))
            inner = [Requirement(line) for line in installed[name][1]]
            waiting += [
                one for one in inner if one.marker is None or one.marker.evaluate({"extra": extra})
            ]
    assert {name for name, _ in needed} | {"rancast"} == set(installed)


def test_bill_of_materials_keeps_to_the_schema(bill) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    assert json.loads(bill)["metadata"]["timestamp"] == CREATED


def test_bill_states_what_is_there_and_nothing_else(image: Image, installed, bill) -> None:
    answer = image.shell(f"python3 -P -m service.inventory check {FOLDER}")
    assert (answer.returncode, answer.stdout) == (0, "all is as stated\n"), answer.stderr
    # Python and Debian each have a tzdata.
    stated = {
        (part["purl"].startswith("pkg:deb/"), part["name"], part["version"])
        for part in json.loads(bill)["components"]
    }
    system = image.must("dpkg-query -W -f '${Package} ${Version}\\n'").splitlines()
    assert {(True, *line.split()) for line in system} <= stated
    assert {(False, name, version) for name, (version, _) in installed.items()} <= stated


def test_check_notices_a_package_that_was_added_later(image: Image) -> None:
    answer = image.shell(
        "mkdir -p extra/late-9.dist-info && cd extra/late-9.dist-info\n"
        "printf 'Name: late\\nVersion: 9\\nLicense-Expression: MIT\\n' > METADATA\n"
        f"PYTHONPATH=/var/lib/rancast/extra python3 -P -m service.inventory check {FOLDER}\n"
        "status=$?; rm -r /var/lib/rancast/extra; exit $status"
    )
    assert (answer.returncode, answer.stdout) == (1, "here, and not stated: late 9\n")


def test_compilers_image_states_its_own_parts(compiler_image: Image) -> None:
    assert "all is as stated" in compiler_image.must(
        f"python3 -P -m service.inventory check {FOLDER}; rm -rf extra"
    )
    bill = json.loads(compiler_image.must(f"cat {FOLDER}/{BILL}"))
    assert {"g++", "setuptools"} <= {part["name"] for part in bill["components"]}


def test_no_part_lacks_a_licence_and_all_their_texts_are_inside(image: Image, bill) -> None:
    listed = image.must(f"cat {FOLDER}/{LICENCES}")
    parts = [
        part
        for outer in json.loads(bill)["components"]
        for part in (outer, *outer.get("components", ()))
    ]
    assert len(parts) > 200
    for part in parts:
        assert part["licenses"], part["name"]
        assert f"{part['name']} {part.get('version', '')}".strip() in listed
    texts = re.findall(r"^    (/.+)$", listed, re.MULTILINE)
    assert len(texts) > len(json.loads(bill)["components"])
    missing = image.must(
        f"sed -n 's|^    \\(/.*\\)|\\1|p' {FOLDER}/{LICENCES}"
        ' | while read -r text; do [ -s "$text" ] || echo "$text"; done'
    )
    assert missing == ""


def test_reviewed_reasons_are_those_that_are_needed(image: Image) -> None:
    listed = image.must(f"cat {FOLDER}/{LICENCES}")
    assert set(re.findall(r"May be shipped: (.+)", listed)) == set(REVIEWED.values())


def test_labels_say_what_was_built(image: Image, builder: Builder) -> None:
    described = json.loads(image.buildah.must("inspect", "--type", "image", image.name))
    labels = described["Docker"]["config"]["Labels"]
    stated = {name.removeprefix("org.opencontainers.image."): labels[name] for name in labels}
    assert stated["licenses"] == "Apache-2.0"
    assert (stated["revision"], stated["created"]) == (REVISION, CREATED)
    assert stated["base.name"] == builder.base
    assert {"title", "description", "version"} <= set(stated)


def test_what_only_building_and_testing_need_is_not_inside(image: Image) -> None:
    unwanted = "torch/test torch/include torch/bin/protoc pyarrow/include plotly/labextension"
    found = image.shell(
        f"cd {SITE} && ls -d {unwanted} pyarrow/*flight*; find . -type d -name tests"
    )
    assert found.stdout == ""


def test_what_was_taken_out_is_missed_by_nothing_that_runs_here(image: Image) -> None:
    modules = (
        "pyarrow.dataset, pyarrow.parquet, pyarrow.csv, pyarrow.orc, pyarrow.acero, sympy, "
        "networkx, numpy.testing, torch._dynamo, torch._inductor.compile_fx, "
        "torch.distributed.run, torch.utils.checkpoint, plotly.graph_objects, uvloop, rancast"
    )
    program = (
        f"import {modules}; from pyarrow.fs import S3FileSystem, GcsFileSystem, LocalFileSystem; "
        "import torch; assert torch.distributed.is_gloo_available(); "
        "print(float((torch.ones(64, 64) @ torch.ones(64, 64)).sum()))"
    )
    assert image.must(f'python3 -P -c "{program}"').split()[-1] == str(64.0**3)


def test_sizes_are_reported(image: Image, figures: list[str]) -> None:
    (described,) = json.loads(image.buildah.must("images", "--json", image.name))
    folders = f"/usr /opt/rancast {SITE}/[a-z]*"
    # Each by itself: one call counts no file twice.
    script = f'for folder in {folders}; do du -sm "$folder"; done | sort -rn | head -16'
    largest = [line.split() for line in image.must(script).splitlines()]
    figures.append(f"size: {described['size']}")
    figures += [f"{size:>6} MiB  {folder}" for size, folder in largest]
    assert {"/usr", "/opt/rancast"} < {folder for _, folder in largest}
