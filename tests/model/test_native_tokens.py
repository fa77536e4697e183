"""The tokeniser in C++ against the definition in torch."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import tokens
from model.calendar import CALENDAR_WIDTH
from model.code_cache import CACHE_VARIABLE, ISA_VARIABLE
from model.config import COPY_CANDIDATES, TOKEN_INPUTS, ForecasterConfig
from model.native_tokens import build_tokens, library, load, tokeniser
from model.planned import planned_part, planned_width
from model.shared_library import find_compiler
from tests.conftest import REPOSITORY

STEPS_MS = (1_000, 30_000, 60_000, 120_000, 900_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000)
EXTREME = float(np.finfo(np.float32).max)

needs_library = pytest.mark.skipif(load().function is None, reason="the tokeniser is not built")


def draw_series(
    rng: np.random.Generator,
    config: ForecasterConfig,
    shape: tuple[int, int, int],
    step_ms: int,
    future_patches: int,
    missing_ratio: float = 0.1,
    scale: float = 1.0,
) -> tokens.Series:
    windows, kpis, steps = shape
    values = scale * rng.normal(3, 2, shape)
    values[rng.random(shape) < missing_ratio] = np.nan
    patches = tokens.context_patches(config, steps) + future_patches
    planned = rng.random((windows, patches, planned_width(config.patch)))
    return tokens.Series(
        values=torch.from_numpy(values.clip(-EXTREME, EXTREME).astype(np.float32)),
        step_ms=step_ms,
        calendar=torch.from_numpy(
            rng.normal(size=(windows, patches, CALENDAR_WIDTH)).astype(np.float32)
        ),
        planned=torch.from_numpy(0.4 * planned.astype(np.float32)),
        kinds=torch.zeros(windows, kpis, dtype=torch.int64),
        lower=torch.from_numpy(rng.choice([0, -math.inf], (windows, kpis)).astype(np.float32)),
        upper=torch.from_numpy(rng.choice([9, math.inf], (windows, kpis)).astype(np.float32)),
        present=torch.from_numpy(rng.random((windows, kpis)) < 0.9),
    )


def assert_alike(found: tokens.Tokens, wanted: tokens.Tokens) -> None:
    torch.testing.assert_close(found.inputs, wanted.inputs, atol=2e-5, rtol=2e-5)
    assert torch.equal(found.visible, wanted.visible)
    assert torch.equal(found.kinds, wanted.kinds)
    assert found.future_patches == wanted.future_patches
    for ours, theirs in zip(found.stats, wanted.stats, strict=True):
        torch.testing.assert_close(ours, theirs, atol=0, rtol=1e-12)
    if wanted.copies is None:
        assert found.copies is None
    else:
        assert found.copies is not None
        assert torch.equal(found.copies.known, wanted.copies.known)
        torch.testing.assert_close(found.copies.values, wanted.copies.values, atol=2e-5, rtol=2e-5)


@pytest.fixture
def torch_answers(monkeypatch):
    """Counts how often the definition answers in the place of the library."""
    answered = []
    define = tokens.build_tokens

    def counted(*arguments):
        answered.append(arguments)
        return define(*arguments)

    monkeypatch.setattr(tokens, "build_tokens", counted)
    return answered


@needs_library
@given(
    seed=st.integers(0, 2**32 - 1),
    step_ms=st.sampled_from(STEPS_MS),
    patch=st.sampled_from([4, 8, 16]),
    steps=st.integers(1, 700) | st.sampled_from([1_400, 3_000]),
    future_patches=st.integers(1, 4),
    missing_ratio=st.sampled_from([0.0, 0.1, 0.7, 0.98, 1.0]),
    scale=st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e6, 1e30]),
    size=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_tokens_are_those_of_the_definition(
    seed, step_ms, patch, steps, future_patches, missing_ratio, scale, size
):
    rng = np.random.default_rng(seed)
    copies = tuple(name for name in COPY_CANDIDATES if rng.random() < 0.8)
    inputs = tuple(name for name in TOKEN_INPUTS if rng.random() < 0.9) or ("value",)
    config = ForecasterConfig(patch=patch, context_patches=20, inputs=inputs, copies=copies)
    shape = (*size, steps)
    series = draw_series(rng, config, shape, step_ms, future_patches, missing_ratio, scale)
    assert_alike(
        build_tokens(series, config, future_patches),
        tokens.build_tokens(series, config, future_patches),
    )


@needs_library
def test_ordinary_windows_are_left_to_the_library(torch_answers):
    config = ForecasterConfig(copies=COPY_CANDIDATES)
    series = draw_series(np.random.default_rng(0), config, (2, 2, 200), 900_000, 2)
    build_tokens(series, config, 2)
    assert not torch_answers


@needs_library
@pytest.mark.parametrize("part", ["event_share", "sunday_days"])
def test_planned_days_are_left_to_torch(torch_answers, part):
    config = ForecasterConfig(copies=COPY_CANDIDATES)
    series = draw_series(np.random.default_rng(0), config, (2, 2, 200), 900_000, 2)
    planned_part(series.planned, config.patch, part)[1, -1, -1] = 1
    build_tokens(series, config, 2)
    assert len(torch_answers) == 1
    plain = replace(config, copies=COPY_CANDIDATES[:-2])
    build_tokens(series, plain, 2)
    assert len(torch_answers) == 1


@needs_library
def test_another_type_is_left_to_torch(torch_answers):
    config = ForecasterConfig()
    series = draw_series(np.random.default_rng(0), config, (2, 2, 200), 900_000, 2)
    build_tokens(replace(series, values=series.values.double()), config, 2)
    assert len(torch_answers) == 1


@needs_library
def test_strides_do_not_matter():
    config = ForecasterConfig(copies=COPY_CANDIDATES)
    series = draw_series(np.random.default_rng(0), config, (3, 2, 200), 900_000, 2)
    turned = replace(series, values=series.values.mT.contiguous().mT)
    assert torch.equal(
        build_tokens(turned, config, 2).inputs, build_tokens(series, config, 2).inputs
    )


@needs_library
def test_a_series_does_not_depend_on_its_neighbours():
    config = ForecasterConfig(copies=COPY_CANDIDATES)
    series = draw_series(np.random.default_rng(0), config, (3, 2, 200), 900_000, 2)
    names = ("values", "calendar", "planned", "kinds", "lower", "upper", "present")
    alone = replace(series, **{name: getattr(series, name)[1:2] for name in names})
    assert torch.equal(
        build_tokens(alone, config, 2).inputs, build_tokens(series, config, 2).inputs[1:2]
    )


def run_python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"RANCAST_CPU_ISA": "none"}, "RANCAST_CPU_ISA is none"),
        ({CACHE_VARIABLE: "/nonexistent"}, "is not built"),
    ],
)
def test_without_the_library_torch_answers_and_one_line_says_why(environment, words, monkeypatch):
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    program = (
        "import logging, sys; logging.basicConfig(level='INFO', stream=sys.stdout)\n"
        "from model.native_tokens import load; load(); load()"
    )
    (line,) = run_python(program, **environment).splitlines()
    assert line.startswith("INFO:rancast.tokens:tokens are made by torch")
    assert words in line


def test_a_library_that_others_may_change_is_not_loaded(tmp_path, monkeypatch):
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    path = tmp_path / library.token_library().file_name
    path.write_bytes(b"")
    path.chmod(0o666)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert "may be written by others" in library._load().reason


def test_a_library_that_cannot_be_loaded_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    path = tmp_path / library.token_library().file_name
    path.write_bytes(b"no library")
    path.chmod(0o755)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert "cannot be loaded" in library._load().reason


@pytest.mark.slow
@pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")
def test_no_sanitiser_finds_anything(tmp_path):
    flags = ("-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-fno-math-errno")
    sanitisers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    made = tmp_path / "tokens.so"
    tool = find_compiler()
    assert tool is not None
    source = str(library.SOURCES / "tokens.cpp")
    subprocess.run([*tool, *flags, *sanitisers, source, "-o", str(made)], check=True)
    runtime = subprocess.run(
        [*tool, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    program = (
        "import ctypes, sys, numpy as np\n"
        "from model.native_tokens import library\n"
        f"made = ctypes.CDLL({str(made)!r}); made.rancast_tokens.restype = ctypes.c_int\n"
        "size = made.rancast_plan_bytes()\n"
        "loaded = library.Library(made.rancast_tokens, 'sanitised', size)\n"
        "from model import tokens; define, tokens.build_tokens = tokens.build_tokens, None\n"
        "from model.native_tokens import tokeniser; tokeniser.load = lambda: loaded\n"
        "from model.config import COPY_CANDIDATES, ForecasterConfig\n"
        "from tests.model.test_native_tokens import STEPS_MS, draw_series\n"
        "for seed, step_ms in enumerate(STEPS_MS):\n"
        "    for steps in (1, 5, 200, 321):\n"
        "        rng = np.random.default_rng(seed)\n"
        "        config = ForecasterConfig(patch=8, context_patches=20, copies=COPY_CANDIDATES)\n"
        "        series = draw_series(rng, config, (2, 2, steps), step_ms, 3, 0.3)\n"
        "        tokeniser.build_tokens(series, config, 3)\n"
        "print('clean')\n"
    )
    found = run_python(program, LD_PRELOAD=runtime, ASAN_OPTIONS="detect_leaks=0")
    assert found.strip().endswith("clean")


def misshapen(series):
    """Series that do not fit: what torch refuses is not for the library to read beyond."""
    yield replace(series, calendar=series.calendar[:, :-1])
    yield replace(series, planned=series.planned[..., :-1])
    yield replace(series, planned=series.planned[:, 1:])
    yield replace(series, lower=series.lower[:, :1])
    yield replace(series, present=series.present.float())
    yield replace(series, values=torch.where(series.values > 4, math.inf, series.values))
    yield replace(series, values=series.values.clone().requires_grad_())


@needs_library
def test_what_does_not_fit_is_left_to_torch(torch_answers):
    config = ForecasterConfig(copies=COPY_CANDIDATES)
    series = draw_series(np.random.default_rng(0), config, (2, 2, 200), 900_000, 2)
    for number, odd in enumerate(misshapen(series), 1):
        with contextlib.suppress(RuntimeError):
            build_tokens(odd, config, 2)
        assert len(torch_answers) == number


@needs_library
def test_a_library_with_another_plan_is_not_called(torch_answers, monkeypatch):
    other = replace(load(), plan_bytes=load().plan_bytes + 8)
    monkeypatch.setattr(tokeniser, "load", lambda: other)
    config = ForecasterConfig()
    series = draw_series(np.random.default_rng(0), config, (2, 2, 200), 900_000, 2)
    build_tokens(series, config, 2)
    assert len(torch_answers) == 1


@pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler")
def test_the_sources_compile(tmp_path):
    assert library.token_library().build(tmp_path).is_file()
