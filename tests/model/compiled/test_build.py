import zipfile
from dataclasses import replace

import pytest
import torch

from model.attention.native import library
from model.code_cache import CACHE_VARIABLE
from model.compiled import Precision, best_artifact, build, choice, trial, wanted_precisions
from model.compiled.build import compile_best, compile_checkpoint, self_test
from model.compiled.graph import Shape
from model.errors import ArtifactError, SelfTestError


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "empty"))
    return tmp_path / "empty"


@pytest.fixture
def quick_compiler(artifact, monkeypatch):
    """Copies the programs that have been compiled, in the place of compiling them again."""

    def copy(_, __, shape, folder):
        (folder / f"{shape}.pt2").write_bytes(artifact.program(shape).read_bytes())

    monkeypatch.setattr(build, "_compile", copy)


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
    assert 0 < self_test(compiled_tiny.checkpoint, artifact) < 1e-3


def test_code_of_other_weights_does_not_pass_the_self_test(artifact, compiled_tiny):
    checkpoint = compiled_tiny.checkpoint
    weights = {name: 1.1 * tensor for name, tensor in checkpoint.weights.items()}
    with pytest.raises(SelfTestError, match="float32 to move no quantile of tiny"):
        self_test(replace(checkpoint, weights=weights), artifact)


@pytest.mark.usefixtures("quick_compiler")
def test_a_refused_artifact_is_told_of_and_made_again(copied, compiled_tiny):
    (copied / f"{Shape.SINGLE}.pt2").write_bytes(b"changed")
    said: list[str] = []
    compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32, on_progress=said.append)
    assert "is not as it was made" in said[0]
    assert best_artifact(compiled_tiny.checkpoint, Precision.FLOAT32) is not None


@pytest.mark.usefixtures("quick_compiler")
def test_nothing_is_left_where_the_self_test_fails(compiled_tiny, empty_cache, monkeypatch):
    monkeypatch.setattr(build, "moved_ratio", lambda *_: 1.0)
    with pytest.raises(SelfTestError):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)
    assert not list((empty_cache / "compiled").iterdir())


@pytest.mark.usefixtures("quick_compiler", "empty_cache")
def test_a_precision_that_moves_too_far_is_passed_over(compiled_tiny, monkeypatch):
    for module in (build, choice):
        monkeypatch.setattr(module, "multiplies_bfloat16", lambda: True)
    monkeypatch.setitem(trial.MOST_MOVED_RATIO, Precision.BFLOAT16, -1.0)
    said: list[str] = []
    found = compile_best(compiled_tiny.checkpoint, on_progress=said.append)
    assert found.target.precision is Precision.FLOAT32
    assert any("bfloat16 to move no quantile" in words for words in said)
    assert best_artifact(compiled_tiny.checkpoint) == found


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
    assert library.compiler() is None
    with pytest.raises(ArtifactError, match=r"C\+\+ compiler"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)


def test_a_compiler_that_fails_is_named_with_its_reason(compiled_tiny, empty_cache, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no such instruction\nand more")

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", fail)
    with pytest.raises(ArtifactError, match=r"tiny cannot be compiled: no such instruction$"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)
    assert not list((empty_cache / "compiled").iterdir())


def test_a_cache_that_cannot_be_written_is_named(compiled_tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(ArtifactError, match="expected to write"):
        compile_checkpoint(compiled_tiny.checkpoint, Precision.FLOAT32)
