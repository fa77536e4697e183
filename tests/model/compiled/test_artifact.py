import json
import os
import shutil
import time
from dataclasses import replace

import pytest

from model.compiled import Precision, Target, find_artifact, read_artifact
from model.compiled.artifact import KEPT_DAYS, MANIFEST, artifact_folder, remove_old, write_artifact
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
        ("system", "glibc-2.0"),
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
    with pytest.raises(ArtifactError, match="expected the files"):
        read_artifact(copied, target)


def test_a_program_that_others_may_change_is_not_run(copied, target):
    (copied / f"{Shape.SINGLE}.pt2").chmod(0o666)
    with pytest.raises(ArtifactError, match="may be written by others"):
        read_artifact(copied, target)


@pytest.mark.parametrize("name", [MANIFEST, "runner.so"])
def test_nothing_of_it_may_be_changed_by_others(copied, target, name):
    (copied / name).chmod(0o664)
    with pytest.raises(ArtifactError, match=rf"{name} may be written by others.* remove"):
        read_artifact(copied, target)


def test_a_written_artifact_takes_the_place_of_a_broken_one(copied, artifact, target, tmp_path):
    made = tmp_path / "made"
    shutil.copytree(artifact.folder, made)
    (copied / MANIFEST).write_text("broken")
    write_artifact(made, replace(artifact, folder=copied, seconds=0.5))
    assert read_artifact(copied, target).seconds == 0.5
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]


def test_what_a_lenient_mask_made_is_run_all_the_same(copied, artifact, target, tmp_path):
    made = tmp_path / "made"
    shutil.copytree(artifact.folder, made)
    for path in (made, *made.iterdir()):
        path.chmod(path.stat().st_mode | 0o020)
    write_artifact(made, replace(artifact, folder=copied))
    assert read_artifact(copied, target)


@pytest.mark.parametrize(
    "name", ["../../escaped", "/absolute", "a name [with] * signs", "long" * 100, "..", ""]
)
def test_no_name_of_a_checkpoint_leads_out_of_the_cache(compiled_tiny, copied, name):
    folder = artifact_folder(replace(compiled_tiny.checkpoint, name=name), Precision.FLOAT32)
    assert folder.parent == copied.parent
    assert folder.resolve().parent == copied.parent.resolve()
    assert len(folder.name) < 100


def test_a_cache_that_cannot_be_looked_into_is_named(compiled_tiny, monkeypatch):
    monkeypatch.setenv("RANCAST_CACHE_DIR", "/" + "long" * 100)
    with pytest.raises(ArtifactError, match="cannot be looked for"):
        find_artifact(compiled_tiny.checkpoint, Precision.FLOAT32)


def test_without_home_or_cache_it_is_said_what_to_name(compiled_tiny, monkeypatch):
    def homeless():
        raise RuntimeError

    for name in ("RANCAST_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("model.code_cache.Path.home", homeless)
    with pytest.raises(ArtifactError, match="RANCAST_CACHE_DIR"):
        find_artifact(compiled_tiny.checkpoint, Precision.FLOAT32)


def test_only_what_is_old_and_of_checkpoints_of_the_name_is_removed(copied, target, compiled_tiny):
    def beside(name, days):
        folder = copied.with_name(name)
        shutil.copytree(copied, folder)
        then = time.time() - days * 86_400
        os.utime(folder / MANIFEST, (then, then))
        return folder

    old = beside("tiny-float32-1", KEPT_DAYS + 1)
    fresh = beside("tiny-float32-2", KEPT_DAYS - 1)
    foreign = beside("other-float32-3", KEPT_DAYS + 1)
    os.utime(copied / MANIFEST, (0, 0))
    remove_old(compiled_tiny.checkpoint, read_artifact(copied, target))
    assert not old.exists()
    assert copied.exists()
    assert fresh.exists()
    assert foreign.exists()
