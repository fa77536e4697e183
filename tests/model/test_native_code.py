"""Native code is built where it is missing, and one that cannot be built stops no other."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from model import native_code
from model.errors import ArtifactError
from model.shared_library import SharedLibrary


@pytest.fixture
def libraries(monkeypatch, tmp_path):
    """Two libraries that are quickly made, in places of their own, by name."""
    monkeypatch.setenv("RANCAST_CACHE_DIR", str(tmp_path / "cache"))

    def compile_into(folder: Path) -> Path:
        made = folder / "made"
        made.touch()
        return made

    made = {}
    for name in ("token", "kernel"):
        library = SharedLibrary(name, tmp_path, tmp_path / f"{name}-lib", (), compile_into)
        made[name] = library
        monkeypatch.setattr(native_code, f"{name}_library", lambda library=library: library)
    monkeypatch.setattr(native_code, "lacking_platform", lambda: None)
    return made


@pytest.fixture
def failing_tokens(libraries, monkeypatch):
    def fail(_):
        raise ArtifactError("no compiler")

    failing = replace(libraries["token"], compile_into=fail)
    monkeypatch.setattr(native_code, "token_library", lambda: failing)


def test_what_is_missing_is_built_into_the_cache(libraries, tmp_path):
    assert native_code.build_native_code() == []
    assert [library.find() for library in libraries.values()] == [
        tmp_path / "cache" / library.file_name for library in libraries.values()
    ]


def test_what_lies_beside_the_package_is_not_built_again(libraries, tmp_path):
    libraries["token"].build_beside()
    assert native_code.build_native_code() == []
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [libraries["kernel"].file_name]


def test_a_package_is_for_everyone_who_may_read_it(libraries):
    assert native_code.main(["--beside"]) == 0
    for library in libraries.values():
        path = library.find()
        assert path is not None
        assert path.parent == library.beside
        for each in (path, path.parent):
            assert stat.S_IMODE(each.stat().st_mode) & 0o555 == 0o555


def test_a_machine_that_can_have_no_kernel_has_its_tokens_built(libraries, monkeypatch):
    monkeypatch.setattr(native_code, "lacking_platform", lambda: "no kernel for this")
    assert native_code.build_native_code() == []
    assert libraries["token"].find() is not None
    assert libraries["kernel"].find() is None


@pytest.mark.usefixtures("failing_tokens")
def test_one_that_cannot_be_built_is_told_of_and_stops_no_other(libraries, capsys):
    assert native_code.main([]) == 1
    assert libraries["kernel"].find() is not None
    said = capsys.readouterr()
    assert said.err == "no compiler\n"
    assert said.out.startswith("tokens: ")


def test_a_package_that_cannot_be_written_is_told_of(libraries):
    for library in libraries.values():
        library.beside.write_text("a file where the folder should be")
    troubles = native_code.build_native_code(beside=True)
    assert len(troubles) == 2
    assert "expected a folder for token" in troubles[0]
