"""The doctor says which code answers, and what is amiss."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from kpi.catalogue import load_catalogue
from model import native_tokens
from model.attention.native import Kernel
from model.code_cache import CACHE_VARIABLE
from service.codecs.native.library import Library
from service.offline.cli import examine_machine
from service.offline.doctor import Trouble, examine
from tests.conftest import REPOSITORY


def findings(checkpoint=None):
    return {each.subject: each for each in examine(checkpoint, load_catalogue())}


def test_a_sound_machine_has_its_code_and_its_speed_named(monkeypatch, compiled_tiny):
    kernel = Kernel("avx2", "avx2 kernel from somewhere")
    monkeypatch.setattr("service.offline.doctor.load", lambda: kernel)
    monkeypatch.setenv(CACHE_VARIABLE, str(compiled_tiny.cache))
    monkeypatch.setenv("RANCAST_PRECISION", "float32")
    tokens = native_tokens.Library(lambda *_: 0, "native, from somewhere")
    monkeypatch.setattr("service.offline.doctor.native_tokens.load", lambda: tokens)
    cutter = Library(lambda *_: 0, lambda *_: 0, "native, from somewhere else")
    monkeypatch.setattr("service.offline.doctor.load_cutter", lambda: cutter)
    found = findings(compiled_tiny.file)
    assert {each.trouble for each in found.values()} == {Trouble.NONE}
    assert found["tokens"].words == "native, from somewhere"
    assert found["attention"].words == "avx2 kernel from somewhere"
    assert f"float32 code from {compiled_tiny.cache}" in found["compiled"].words
    assert "tiny 0" in found["checkpoint"].words
    assert " ms" in found["checkpoint"].words
    assert "torch 2." in found["versions"].words


def test_without_the_kernel_it_is_slow_and_says_why(monkeypatch, capsys):
    kernel = Kernel(None, "the kernel is not built; `rancast doctor --build` builds it")
    monkeypatch.setattr("service.offline.doctor.load", lambda: kernel)
    assert examine_machine(None, load_catalogue())
    assert "slow   attention: the kernel is not built; `rancast doctor" in capsys.readouterr().out


def test_without_compiled_code_it_is_slow_and_says_what_makes_it(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    found = findings()
    assert found["compiled"].trouble is Trouble.SLOW
    assert "`rancast compile` makes it" in found["compiled"].words
    assert found["checkpoint"].trouble is Trouble.NONE


def test_compiled_code_that_is_not_wanted_is_not_taken(monkeypatch, compiled_tiny):
    monkeypatch.setenv(CACHE_VARIABLE, str(compiled_tiny.cache))
    monkeypatch.setenv("RANCAST_COMPILED", "off")
    assert findings(compiled_tiny.file)["compiled"].words == "not wanted: RANCAST_COMPILED is off"


def test_compiled_code_that_is_refused_is_slow_and_says_why(monkeypatch, compiled_tiny, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(compiled_tiny.cache, cache)
    (program,) = cache.rglob("single.pt2")
    program.write_bytes(b"changed")
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    found = findings(compiled_tiny.file)
    assert found["compiled"].trouble is Trouble.SLOW
    assert "is not as it was made" in found["compiled"].words


def test_a_checkpoint_that_cannot_be_used_is_broken(tmp_path):
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"no checkpoint")
    found = findings(damaged)["checkpoint"]
    assert found.trouble is Trouble.BROKEN
    assert "damaged" in found.words


@pytest.mark.parametrize(("name", "status"), [("rancast-small", 0), ("rancast-huge", 1)])
def test_the_exit_status_says_whether_forecasts_can_be_made(name, status):
    done = subprocess.run(
        [sys.executable, "-m", "rancast", "doctor", "--checkpoint", name],
        env={**os.environ, "RANCAST_CPU_ISA": "none"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "slow   attention: RANCAST_CPU_ISA is none" in done.stdout
    assert "slow   tokens: RANCAST_CPU_ISA is none" in done.stdout
