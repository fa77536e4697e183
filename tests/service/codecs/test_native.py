"""The reader of samples is built where it is missing, and missing it stops nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import ArtifactError
from model.shared_library import SharedLibrary
from service.codecs.native import __main__ as building
from service.codecs.native import library


@pytest.fixture
def quickly_made(monkeypatch, tmp_path):
    """A library that is made at once, in a place of its own."""
    monkeypatch.setenv("RANCAST_CACHE_DIR", str(tmp_path / "cache"))

    def compile_into(folder: Path) -> Path:
        (folder / "made").touch()
        return folder / "made"

    made = SharedLibrary("samples", tmp_path, tmp_path / "lib", (), compile_into)
    monkeypatch.setattr(building, "cutter_library", lambda: made)
    monkeypatch.setattr(library, "cutter_library", lambda: made)
    return made


def test_it_is_built_into_the_cache_once(quickly_made, tmp_path):
    assert building.build() is None
    assert quickly_made.find().parent == tmp_path / "cache"
    failing = replace(quickly_made, compile_into=lambda _: pytest.fail("built twice"))
    assert failing.find() == quickly_made.find()
    assert building.build() is None


def test_it_is_built_beside_the_package_where_that_is_asked_for(quickly_made, tmp_path, capsys):
    assert building.main(["--beside"]) == 0
    assert quickly_made.find().parent == tmp_path / "lib"
    assert capsys.readouterr().out.startswith("samples: ")


def test_what_cannot_be_built_is_said(quickly_made, monkeypatch, capsys):
    def fail(_):
        raise ArtifactError("no compiler")

    failing = replace(quickly_made, compile_into=fail)
    monkeypatch.setattr(building, "cutter_library", lambda: failing)
    assert building.main([]) == 1
    assert "no compiler" in capsys.readouterr().err


@pytest.mark.usefixtures("quickly_made")
def test_one_that_is_not_built_says_how_to_build_it():
    found = library._load()
    assert found.aside is None
    assert "rancast doctor --build" in found.reason


@pytest.mark.usefixtures("quickly_made")
def test_one_that_is_no_library_is_not_loaded():
    building.build()
    assert "cannot be loaded" in library._load().reason


def test_one_that_others_may_write_is_not_loaded(quickly_made):
    building.build()
    quickly_made.find().chmod(0o777)
    assert "may be written by others" in library._load().reason


def test_none_is_loaded_where_native_code_is_not_wanted(monkeypatch):
    monkeypatch.setenv("RANCAST_CPU_ISA", "none")
    assert library._load().reason == "RANCAST_CPU_ISA is none"
