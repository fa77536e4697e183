"""Building the kernel by hand, into the cache or into the package."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from model.attention.native import __main__ as program
from model.attention.native import load
from model.errors import AttentionError


@pytest.fixture
def beside(monkeypatch, tmp_path):
    """Where the package would bring its kernel."""
    folder = tmp_path / "lib"
    monkeypatch.setattr(program, "BESIDE", folder)
    return folder


def test_whoever_reads_the_package_may_read_its_kernel(beside, monkeypatch):
    built: list[Path | None] = []
    monkeypatch.setattr(program, "build", built.append)
    assert program.main(["--beside"]) == 0
    assert built == [beside]
    assert stat.S_IMODE(beside.stat().st_mode) & 0o555 == 0o555


def test_the_cache_is_filled_unless_the_package_is_meant(beside, monkeypatch, capsys):
    built: list[Path | None] = []
    monkeypatch.setattr(program, "build", built.append)
    assert program.main([]) == 0
    assert built == [None]
    assert not beside.exists()
    assert capsys.readouterr().out == f"{load().reason}\n"


def test_where_it_cannot_be_built_one_line_says_why_and_the_status_is_1(monkeypatch, capsys):
    def fail(_):
        raise AttentionError("expected a compiler, found none")

    monkeypatch.setattr(program, "build", fail)
    assert program.main([]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "expected a compiler, found none",
        "attention will run in torch",
    ]


def test_a_package_that_cannot_be_written_is_told_of(beside, capsys):
    beside.write_text("a file where the folder should be")
    assert program.main(["--beside"]) == 1
    assert "attention will run in torch" in capsys.readouterr().err
