"""Compiled code in the service: from the cache, made meanwhile, or not at all."""

import asyncio
import hashlib
import json
import logging
import shutil
import signal
import sys
from pathlib import Path

import pytest

from kpi.catalogue import load_catalogue
from model.code_cache import CACHE_VARIABLE
from model.inference_path import PathKind, PrecisionChoice
from service import acceleration
from service.app import create_app
from service.container import Phase
from service.loading import load_model
from service.settings import Compiled, Settings
from tests.service.fakes import FakeClock

pytestmark = pytest.mark.anyio

COMPILER = """\
import pathlib, shutil, sys
assert sys.argv[1:6] == ["-P", "-m", "rancast", "compile", {file!r}], sys.argv
assert sys.argv[6:] == ["--precision", "float32", "--background"], sys.argv
shutil.copytree({source!r}, {target!r})
"""
FAILING = "print('some progress'); raise SystemExit('rancast: the disk is full')"
ENDLESS = "import time; time.sleep(600)"
DEAF = """\
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({begun!r}).touch()
time.sleep(600)
"""
PARENT = """\
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({child!r}).write_text(str(child.pid))
child.wait()
"""


@pytest.fixture
def cached(compiled_tiny, monkeypatch):
    """The settings of a service whose cache has what it needs."""
    monkeypatch.setenv(CACHE_VARIABLE, str(compiled_tiny.cache))
    return Settings(model_path=compiled_tiny.file, precision=PrecisionChoice.FLOAT32)


@pytest.fixture
def empty(compiled_tiny, monkeypatch, tmp_path):
    """The settings of a service whose cache is empty."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return Settings(model_path=compiled_tiny.file, precision=PrecisionChoice.FLOAT32)


@pytest.fixture
def python(monkeypatch, tmp_path):
    """Lets another program run where the service would run its own."""

    def stands_for(program):
        script = tmp_path / "program.py"
        script.write_text(program)
        wrapper = tmp_path / "python"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        wrapper.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(wrapper))

    return stands_for


class Started:
    """An application with a real model, started, and its figures."""

    def __init__(self, settings):
        self.app = create_app(settings, clock=FakeClock())
        self.services = self.app.state.services

    async def __aenter__(self):
        self.context = self.app.router.lifespan_context(self.app)
        await self.context.__aenter__()
        await self.app.state.lifecycle.started()
        assert self.services.phase is Phase.READY, self.services.reason
        self.acceleration = self.app.state.lifecycle._acceleration
        return self

    async def __aexit__(self, *error):
        await self.context.__aexit__(*error)

    def shown(self, name):
        """Labels of the samples of a metric that are not zero."""
        return [
            sample.labels
            for family in self.services.metrics._registry.collect()
            for sample in family.samples
            if sample.name == name and sample.value
        ]

    @property
    def path(self):
        ((labels),) = self.shown("rancast_inference_info")
        return labels["path"], labels["precision"]

    @property
    def results(self):
        return [labels["result"] for labels in self.shown("rancast_compilations_total")]


async def test_what_the_cache_has_answers_from_the_start(cached):
    async with Started(cached) as service:
        assert service.path == ("compiled", "float32")
        assert service.results == ["cached"]


async def test_what_is_missing_is_made_meanwhile_and_answers_then(
    empty, compiled_tiny, python, tmp_path, caplog
):
    python(
        COMPILER.format(
            file=str(compiled_tiny.file),
            source=str(compiled_tiny.cache),
            target=str(tmp_path / "cache"),
        )
    )
    caplog.set_level(logging.INFO)
    async with Started(empty) as service:
        model = service.services.running.models.default
        eager = model.predictor
        await service.acceleration.finished()
        assert service.path == ("compiled", "float32")
        assert service.results == ["built"]
        assert model.predictor is not eager
        assert model.identity == eager.identity
    assert [r.message for r in caplog.records if r.name == acceleration.__name__] == [
        "compiling",
        "compiled",
    ]


async def test_a_compiler_that_fails_costs_nothing_but_speed(empty, python, caplog):
    python(FAILING)
    async with Started(empty) as service:
        await service.acceleration.finished()
        assert service.path == ("eager", "float32")
        assert service.results == ["failed"]
        assert service.services.unreadiness() is None
    (record,) = [r for r in caplog.records if r.message == "compilation_failed"]
    assert "status 1: rancast: the disk is full" in str(record.rancast_fields["reason"])


async def test_a_compiler_that_leaves_nothing_behind_is_told_of(empty, python, caplog):
    python("")
    async with Started(empty) as service:
        await service.acceleration.finished()
        assert service.results == ["failed"]
    (record,) = [r for r in caplog.records if r.message == "compilation_failed"]
    assert "found none" in str(record.rancast_fields["reason"])


async def test_a_bug_on_the_way_is_told_with_its_traceback(empty, monkeypatch, caplog):
    async def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr(acceleration.Acceleration, "_compile", broken)
    async with Started(empty) as service:
        await service.acceleration.finished()
        assert service.results == ["failed"]
    assert any(record.exc_info for record in caplog.records)


async def test_a_service_that_stops_ends_its_compiler(empty, python, monkeypatch):
    processes = []
    create = asyncio.create_subprocess_exec

    async def kept(*arguments, **options):
        processes.append(await create(*arguments, **options))
        return processes[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", kept)
    python(ENDLESS)
    async with Started(empty):
        while not processes:
            await asyncio.sleep(0)
    assert processes[0].returncode == -signal.SIGTERM


async def test_a_compiler_that_does_not_heed_is_killed(empty, python, monkeypatch, tmp_path):
    begun = tmp_path / "begun"
    processes = []
    create = asyncio.create_subprocess_exec

    async def kept(*arguments, **options):
        processes.append(await create(*arguments, **options))
        return processes[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", kept)
    monkeypatch.setattr(acceleration, "_STOP_SECONDS", 0.01)
    python(DEAF.format(begun=str(begun)))
    async with Started(empty):
        while not begun.exists():
            await asyncio.sleep(0)
    assert processes[0].returncode == -signal.SIGKILL


async def test_what_a_compiler_has_started_ends_with_it(empty, python, tmp_path):
    child = tmp_path / "child"
    python(PARENT.format(child=str(child)))
    async with Started(empty):
        while not (child.exists() and child.read_text()):
            await asyncio.sleep(0)
    status = Path(f"/proc/{child.read_text()}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, "was ended by SIGKILL, perhaps for want of memory; it last said: words"),
        (signal.SIGSEGV, "was ended by SIGSEGV; it last said: words"),
    ],
)
async def test_a_compiler_that_is_killed_from_outside_is_told_of(
    empty, python, caplog, number, words
):
    python(f"import os; print('words', flush=True); os.kill(os.getpid(), {int(number)})")
    async with Started(empty) as service:
        await service.acceleration.finished()
    (record,) = [r for r in caplog.records if r.message == "compilation_failed"]
    assert words in str(record.rancast_fields["reason"])


async def test_the_compiler_takes_no_module_from_the_working_directory(
    empty, monkeypatch, tmp_path, caplog
):
    (tmp_path / "rancast.py").write_text("raise SystemExit('not ours')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", sys.executable)  # no compiler: it fails soon
    async with Started(empty) as service:
        await service.acceleration.finished()
    (record,) = [r for r in caplog.records if r.message == "compilation_failed"]
    assert "not ours" not in str(record.rancast_fields["reason"])
    assert "rancast compile" in str(record.rancast_fields["reason"])


async def test_without_a_compiler_the_model_runs_as_it_is(empty, monkeypatch):
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    async with Started(empty) as service:
        await service.acceleration.finished()
        assert service.path == ("eager", "float32")
        assert service.results == ["unavailable"]


@pytest.mark.parametrize("compiled", [Compiled.CACHED, Compiled.OFF])
async def test_nothing_is_made_where_the_settings_forbid_it(empty, compiled):
    async with Started(empty.model_copy(update={"compiled": compiled})) as service:
        await service.acceleration.finished()
        assert service.path == ("eager", "float32")
        assert service.results == []


async def test_what_the_cache_has_is_not_taken_where_it_is_off(cached):
    async with Started(cached.model_copy(update={"compiled": Compiled.OFF})) as service:
        assert service.path == ("eager", "float32")


def test_a_precision_that_is_not_wanted_is_not_taken(cached):
    narrow = cached.model_copy(update={"precision": PrecisionChoice.BFLOAT16})
    model = load_model(narrow.model_path, narrow, load_catalogue())
    assert model.path is not None
    assert model.path.kind is PathKind.EAGER


@pytest.mark.parametrize("name", ["single.pt2", "runner.so"])
def test_code_that_cannot_be_loaded_is_told_of_and_not_run(
    cached, compiled_tiny, tmp_path, monkeypatch, caplog, name
):
    cache = tmp_path / "cache"
    shutil.copytree(compiled_tiny.cache, cache)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    (file,) = cache.rglob(name)
    file.write_bytes(b"no code, but as the manifest has it")
    manifest = file.with_name("manifest.json")
    story = json.loads(manifest.read_text())
    story["digests"][name] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(story))
    model = load_model(cached.model_path, cached, load_catalogue())
    assert model.path is not None
    assert model.path.kind is PathKind.EAGER
    (record,) = [r for r in caplog.records if r.message == "compiled_code_refused"]
    assert f"{name} cannot be loaded" in str(record.rancast_fields["reason"])


def test_a_cache_that_cannot_be_looked_into_is_told_of(cached, monkeypatch, caplog):
    monkeypatch.setenv(CACHE_VARIABLE, "/" + "long" * 100)
    model = load_model(cached.model_path, cached, load_catalogue())
    assert model.path is not None
    assert model.path.kind is PathKind.EAGER
    assert any(record.message == "compiled_code_refused" for record in caplog.records)


def test_damaged_code_is_told_of_and_not_run(cached, compiled_tiny, tmp_path, monkeypatch, caplog):
    cache = tmp_path / "cache"
    shutil.copytree(compiled_tiny.cache, cache)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    (program,) = cache.rglob("single.pt2")
    program.write_bytes(b"changed")
    model = load_model(cached.model_path, cached, load_catalogue())
    assert model.path is not None
    assert model.path.kind is PathKind.EAGER
    (record,) = [r for r in caplog.records if r.message == "compiled_code_refused"]
    assert "is not as it was made" in str(record.rancast_fields["reason"])
