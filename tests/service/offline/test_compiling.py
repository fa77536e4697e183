"""`rancast compile` says what it does, what it brought, and what was wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

import rancast
from model.code_cache import CACHE_VARIABLE
from service.offline import compiling
from service.offline.timing import medians_ms


@pytest.fixture
def cache(compiled_tiny, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(compiled_tiny.cache))
    monkeypatch.setenv("COLUMNS", "400")
    return compiled_tiny.cache


def compile_(*arguments):
    return CliRunner().invoke(rancast.app, ["compile", *map(str, arguments)])


def test_it_says_where_the_code_is_and_what_it_brings(cache, compiled_tiny):
    result = compile_(compiled_tiny.file, "--precision", "float32")
    assert result.exit_code == 0, result.output
    assert f"tiny 0 compiled for float32: {cache}" in result.output
    assert (
        "quantiles moved by 0.00% for 99 in 100 quantiles and 0.00% for all of their 80 %"
        in result.output
    )
    assert " ms, before " in result.output


@pytest.mark.usefixtures("cache")
def test_in_the_background_it_gives_way_to_others_and_times_nothing(compiled_tiny, monkeypatch):
    given: list[int] = []
    monkeypatch.setattr("service.commands.os.nice", given.append)
    monkeypatch.setattr(compiling, "speeds_ms", lambda *_: pytest.fail("timed"))
    result = compile_(compiled_tiny.file, "--precision", "float32", "--background")
    assert result.exit_code == 0, result.output
    assert given == [10]


@pytest.mark.usefixtures("cache")
def test_a_kernel_that_cannot_be_built_is_told_of(compiled_tiny, monkeypatch):
    monkeypatch.setattr(compiling, "build_native_code", lambda: ["no kernel"])
    result = compile_(compiled_tiny.file, "--precision", "float32")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("no kernel\n")


def test_a_signal_to_end_leaves_no_half_made_files(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "rancast", "compile", "--precision", "float32"],
        env={**os.environ, CACHE_VARIABLE: str(tmp_path), "RANCAST_CPU_ISA": "none"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "compiling for float32" in process.stdout.readline()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert [path.name for path in (tmp_path / "compiled").iterdir()] == ["lock"]


def test_without_a_compiler_it_says_so_and_ends_with_2(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    result = compile_("--precision", "float32")
    assert result.exit_code == 2
    assert result.stderr == "rancast: expected a C++ compiler (CXX, or g++), found none\n"


def test_what_is_no_checkpoint_is_named(tmp_path):
    (tmp_path / "notes.safetensors").write_text("notes")
    result = compile_(tmp_path / "notes.safetensors")
    assert result.exit_code == 2
    assert "notes.safetensors is not a whole safetensors file" in result.stderr


def test_times_are_those_of_one_thread(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    set_to: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    seen = []
    found = medians_ms([lambda: seen.append(list(set_to)), lambda: None])
    assert len(found) == 2
    assert all(each == [1] for each in seen)
    assert set_to == [1, 7]
