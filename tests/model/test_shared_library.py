"""Shared libraries: their names follow what they are made from, and they appear in one step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model.code_cache import CACHE_VARIABLE
from model.errors import ArtifactError
from model.shared_library import SharedLibrary, compiler, find_compiler, run_compiler

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")


def compile_into(folder: Path) -> Path:
    made = folder / "made"
    made.write_text("code")
    return made


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    sources = tmp_path / "csrc"
    sources.mkdir()
    (sources / "one.cpp").write_text("int one;")
    return SharedLibrary("one", sources, tmp_path / "lib", ("-O3",), compile_into)


def test_its_name_follows_sources_and_flags_and_nothing_else(library):
    names = {library.file_name, replace(library, made_with=("-O2",)).file_name}
    (library.sources / "one.cpp").write_text("int two;")
    names.add(library.file_name)
    (library.sources / "two.h").write_text("")
    names.add(library.file_name)
    assert len(names) == 4
    name = library.file_name
    (library.sources / "notes~").write_text("an editor's own")
    assert library.file_name == name


def test_it_is_found_beside_its_sources_before_the_cache(library):
    assert library.find() is None
    cached = library.build()
    assert library.find() == cached
    beside = library.build_beside()
    assert library.find() == beside
    assert cached != beside


def test_what_is_there_is_not_made_again(library):
    path = library.build()
    assert replace(library, compile_into=pytest.fail).build() == path


def test_what_fails_leaves_nothing_behind(library, tmp_path):
    def fail(folder: Path) -> Path:
        (folder / "half").write_text("")
        raise ArtifactError("no")

    with pytest.raises(ArtifactError, match="no"):
        replace(library, compile_into=fail).build()
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(library, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="expected to build one, could not"):
        library.build(tmp_path / "file" / "below")


def test_without_a_compiler_it_is_said_what_is_missing(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert find_compiler() is None
    with pytest.raises(ArtifactError, match=r"expected a C\+\+ compiler"):
        compiler()


@needs_compiler
def test_the_compiler_may_have_arguments(monkeypatch):
    monkeypatch.setenv("CXX", f"{compiler()[0]} -m64")
    assert compiler()[1:] == ["-m64"]


@needs_compiler
def test_a_compiler_that_fails_is_quoted():
    with pytest.raises(ArtifactError, match="no-such-flag"):
        run_compiler([*compiler(), "-no-such-flag"])
