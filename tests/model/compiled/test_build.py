import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from model.code_cache import CACHE_VARIABLE
from model.compiled import (
    Precision,
    artifact_folder,
    best_artifact,
    build,
    choice,
    find_artifact,
    is_settled,
    trial,
    wanted_precisions,
)
from model.compiled.build import compile_best, compile_checkpoint, measure_movement
from model.compiled.graph import Shape
from model.compiled.runner import RUNNER
from model.compiled.target import multiplies_bfloat16
from model.compiled.trial import Movement
from model.errors import ArtifactError, SelfTestError


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "empty"))
    return tmp_path / "empty"


@pytest.fixture
def quick_compiler(artifact, monkeypatch):
    """Copies what has been compiled, in the place of compiling it again."""

    def copy(_, __, shape, folder):
        shutil.copy(artifact.program(shape), folder)

    monkeypatch.setattr(build, "_compile", copy)
    monkeypatch.setattr(
        build, "compile_runner", lambda folder: shutil.copy(artifact.folder / RUNNER, folder)
    )


@pytest.fixture
def too_coarse(monkeypatch):
    """No code in bfloat16 is faithful enough, on a processor that has it."""
    for module in (build, choice):
        monkeypatch.setattr(module, "multiplies_bfloat16", lambda: True)
    monkeypatch.setitem(trial.TOLERANCES, Precision.BFLOAT16, Movement(-1, -1))


def test_what_has_been_compiled_is_not_compiled_again(artifact, compiled_tiny, monkeypatch):
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    assert compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32) == artifact


def test_weights_are_laid_out_for_the_processor_beforehand(artifact):
    for shape in Shape:
        with zipfile.ZipFile(artifact.program(shape)) as archive:
            (name,) = [n for n in archive.namelist() if n.endswith(".wrapper.cpp")]
            calls = archive.read(name).decode()
        assert "linear_pointwise(" in calls
        assert "addmm_out(" not in calls


def test_the_self_test_of_float32_finds_hardly_any_difference(artifact, compiled_tiny):
    moved = measure_movement(compiled_tiny.checkpoint, artifact)
    assert moved == artifact.moved
    assert 0 < moved.most_ratio < 1e-3


@pytest.mark.skipif(not multiplies_bfloat16(), reason="the processor has no bfloat16")
def test_compiled_bfloat16_passes_its_self_test(compiled_tiny, empty_cache):
    found = compile_checkpoint(compiled_tiny.checkpoint, Precision.BFLOAT16)
    assert found.target.precision is Precision.BFLOAT16
    assert 1e-6 < found.moved.usual_ratio < 0.03
    assert find_artifact(compiled_tiny.checkpoint, Precision.BFLOAT16) == found
    assert {path.name for path in (empty_cache / "compiled").iterdir()} == {
        "lock",
        found.folder.name,
    }


def test_code_of_other_weights_does_not_pass_the_self_test(artifact, compiled_tiny):
    checkpoint = compiled_tiny.checkpoint
    weights = {name: 1.1 * tensor for name, tensor in checkpoint.weights.items()}
    moved = measure_movement(replace(checkpoint, weights=weights), artifact)
    assert not moved.within(trial.TOLERANCES[Precision.FLOAT32])


@pytest.mark.usefixtures("quick_compiler")
def test_a_refused_artifact_is_told_of_and_made_again(copied, compiled_tiny):
    (copied / f"{Shape.SINGLE}.pt2").write_bytes(b"changed")
    said: list[str] = []
    compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32, on_progress=said.append)
    assert "is not as it was made" in said[0]
    assert best_artifact(compiled_tiny.checkpoint, Precision.FLOAT32) is not None


@pytest.mark.usefixtures("quick_compiler", "empty_cache", "too_coarse")
def test_a_precision_that_moves_too_far_is_passed_over(compiled_tiny):
    said: list[str] = []
    found = compile_best(compiled_tiny.checkpoint, on_progress=said.append)
    assert found.target.precision is Precision.FLOAT32
    assert any("bfloat16 to move the quantiles of tiny" in words for words in said)
    assert best_artifact(compiled_tiny.checkpoint) == found


@pytest.mark.usefixtures("quick_compiler", "empty_cache", "too_coarse")
def test_what_moved_too_far_is_neither_run_nor_made_again(compiled_tiny, monkeypatch):
    compile_best(compiled_tiny.checkpoint)
    assert is_settled(compiled_tiny.checkpoint)
    monkeypatch.setattr(build, "_make", lambda *_: pytest.fail("made again"))
    with pytest.raises(SelfTestError):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.BFLOAT16)
    assert best_artifact(compiled_tiny.checkpoint, Precision.BFLOAT16) is None


@pytest.mark.usefixtures("quick_compiler")
def test_a_damaged_artifact_does_not_hide_a_good_one(copied, compiled_tiny, monkeypatch):
    monkeypatch.setattr(choice, "multiplies_bfloat16", lambda: True)
    narrow = artifact_folder(compiled_tiny.checkpoint, Precision.BFLOAT16)
    narrow.mkdir()
    found = best_artifact(compiled_tiny.checkpoint)
    assert found is not None
    assert found.folder == copied
    assert not is_settled(compiled_tiny.checkpoint)
    with pytest.raises(ArtifactError, match="not a whole artifact"):
        best_artifact(compiled_tiny.checkpoint, Precision.BFLOAT16)


@pytest.mark.usefixtures("quick_compiler")
def test_what_a_killed_compiler_left_is_swept(compiled_tiny, empty_cache):
    left_over = empty_cache / "compiled" / "making-x" / "made"
    left_over.mkdir(parents=True)
    compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)
    assert not left_over.parent.exists()


@pytest.mark.usefixtures("quick_compiler", "empty_cache")
def test_of_several_compilers_of_one_cache_the_first_does_the_work(compiled_tiny, monkeypatch):
    made = []
    make = build._make

    def counted(*arguments):
        made.append(arguments)
        return make(*arguments)

    monkeypatch.setattr(build, "_make", counted)
    with ThreadPoolExecutor(3) as pool:
        found = list(
            pool.map(
                lambda _: compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32), range(3)
            )
        )
    assert len(made) == 1
    assert len({each.folder for each in found}) == 1


def test_a_precision_that_is_named_is_the_only_one_tried(monkeypatch):
    monkeypatch.setattr(choice, "multiplies_bfloat16", lambda: True)
    assert wanted_precisions(None) == (Precision.BFLOAT16, Precision.FLOAT32)
    assert wanted_precisions(Precision.FLOAT32) == (Precision.FLOAT32,)
    monkeypatch.setattr(choice, "multiplies_bfloat16", lambda: False)
    assert wanted_precisions(None) == (Precision.FLOAT32,)


@pytest.mark.usefixtures("empty_cache")
def test_bfloat16_is_refused_without_instructions_for_it(compiled_tiny, monkeypatch):
    monkeypatch.setattr(build, "multiplies_bfloat16", lambda: False)
    with pytest.raises(ArtifactError, match="AVX512-BF16 or AMX"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.BFLOAT16)


@pytest.mark.usefixtures("empty_cache")
def test_without_a_compiler_it_is_said_what_is_missing(compiled_tiny, monkeypatch):
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    with pytest.raises(ArtifactError, match=r"C\+\+ compiler"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)


def test_a_compiler_that_fails_is_named_with_its_reason(compiled_tiny, empty_cache, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("C++ compile error\n\nOutput:\nno such instruction\n")

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", fail)
    with pytest.raises(ArtifactError, match=r"(?s)tiny cannot be compiled.*no such instruction$"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)
    assert [path.name for path in (empty_cache / "compiled").iterdir()] == ["lock"]


def test_a_cache_that_cannot_be_written_is_named(compiled_tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(ArtifactError, match="expected to write"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)
