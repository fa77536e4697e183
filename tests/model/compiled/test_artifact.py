import json
import shutil
from dataclasses import replace

import pytest

from model.compiled import Precision, Target, find_artifact, read_artifact
from model.compiled.artifact import MANIFEST, remove_others, write_artifact
from model.compiled.graph import Shape
from model.errors import ArtifactError


@pytest.fixture
def target(compiled_tiny):
    return Target.of(compiled_tiny.checkpoint, Precision.FLOAT32)


def rewrite(folder, **changes):
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changes))


def test_an_artifact_is_found_by_what_it_was_made_for(copied, compiled_tiny):
    found = find_artifact(compiled_tiny.checkpoint, Precision.FLOAT32)
    assert found is not None
    assert found.folder == copied
    assert find_artifact(compiled_tiny.checkpoint, Precision.BFLOAT16) is None
    other = replace(compiled_tiny.checkpoint, digest="sha256:other")
    assert find_artifact(other, Precision.FLOAT32) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("checkpoint", "sha256:other"),
        ("processor", "x86_64 another"),
        ("torch", "1.0"),
        ("code", "0"),
        ("attention", "none"),
        ("precision", Precision.BFLOAT16),
    ],
)
def test_one_that_was_made_for_something_else_is_refused_by_name(copied, target, field, value):
    with pytest.raises(ArtifactError, match=f"made for {field} .*`rancast compile`"):
        read_artifact(copied, replace(target, **{field: value}))


def test_a_changed_program_is_refused(copied, target):
    program = copied / f"{Shape.SEVERAL}.pt2"
    program.write_bytes(b"changed" + program.read_bytes())
    with pytest.raises(ArtifactError, match=r"several\.pt2 is not as it was made"):
        read_artifact(copied, target)


@pytest.mark.parametrize("name", [MANIFEST, f"{Shape.SINGLE}.pt2"])
def test_a_missing_file_is_refused(copied, target, name):
    (copied / name).unlink()
    with pytest.raises(ArtifactError, match="not a whole artifact"):
        read_artifact(copied, target)


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"format": "rancast-compiled/1"}'])
def test_a_garbled_manifest_is_refused(copied, target, manifest):
    (copied / MANIFEST).write_text(manifest)
    with pytest.raises(ArtifactError, match=str(copied)):
        read_artifact(copied, target)


def test_another_format_is_refused_by_its_name(copied, target):
    rewrite(copied, format="rancast-compiled/9")
    with pytest.raises(ArtifactError, match="rancast-compiled/9"):
        read_artifact(copied, target)


def test_a_manifest_without_a_program_is_refused(copied, target):
    rewrite(copied, digests={"single": "0"})
    with pytest.raises(ArtifactError, match="expected the programs"):
        read_artifact(copied, target)


def test_a_program_that_others_may_change_is_not_run(copied, target):
    (copied / f"{Shape.SINGLE}.pt2").chmod(0o666)
    with pytest.raises(ArtifactError, match="may be written by others"):
        read_artifact(copied, target)


def test_a_written_artifact_takes_the_place_of_a_broken_one(copied, artifact, target, tmp_path):
    made = tmp_path / "made"
    shutil.copytree(artifact.folder, made)
    (copied / MANIFEST).write_text("broken")
    write_artifact(made, replace(artifact, folder=copied, moved_ratio=0.5))
    assert read_artifact(copied, target).moved_ratio == 0.5
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]


def test_only_older_code_of_the_same_checkpoint_and_processor_is_removed(copied, target):
    def beside(key, **changes):
        folder = copied.with_name(f"tiny-float32-{key}")
        shutil.copytree(copied, folder)
        rewrite(folder, target={**json.loads((copied / MANIFEST).read_text())["target"], **changes})
        return folder

    stale = beside("1", torch="1.0")
    elsewhere = beside("2", processor="x86_64 another")
    foreign = beside("3", checkpoint="sha256:other")
    remove_others(read_artifact(copied, target))
    assert not stale.exists()
    assert copied.exists()
    assert elsewhere.exists()
    assert foreign.exists()
