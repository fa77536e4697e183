"""The GPU kernel, in Triton's interpreter: what it promises beyond what every backend does."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
import torch

from model.attention import UNMASKED, Mask
from model.attention.triton_kernel.tiles import SMALLEST, choose
from model.attention.triton_kernel.toolchain import INTERPRET_VARIABLE
from tests.conftest import REPOSITORY
from tests.model.attention import interpreted

Interpret = Callable[..., object]
SHAPES = (
    # N_q, N_k, D, H, B, then which of the cases
    ((33, 40, 17, 1, 2), torch.float32, 0, 22),
    ((40, 33, 8, 2, 1), torch.bfloat16, 5, 22),
    ((20, 20, 32, 2, 1), torch.float16, 3, 11),
    ((20, 20, 59, 1, 1), torch.float32, 7, 23),
    ((1, 50, 16, 1, 1), torch.float32, 2, 13),
    ((1, 1, 1, 2, 2), torch.float32, 1, 23),
)
LATE = torch.arange(40) % 3 > 0


@pytest.fixture(scope="session")
def interpret() -> Iterator[Interpret]:
    """Calls a function in a process whose Triton interprets, as it has to know from the start."""
    pytest.importorskip("triton", reason="no triton for this system")
    with (
        pytest.MonkeyPatch.context() as environment,
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        environment.setenv(INTERPRET_VARIABLE, "1")
        environment.setenv("OPENBLAS_NUM_THREADS", "1")  # a thread a tile costs more than the tile
        assert "interpreter" in pool.submit(interpreted.what_runs).result()

        def call(function: Callable[..., object], *arguments: object) -> object:
            return pool.submit(function, *arguments).result()

        yield call


@pytest.mark.parametrize(("shape", "dtype", "first", "step"), SHAPES, ids=str)
def test_it_gives_what_the_definition_gives(interpret, shape, dtype, first, step):
    interpret(interpreted.gives_what_the_definition_gives, shape, dtype, first, step)


@pytest.mark.parametrize(
    ("mask", "n_q", "n_k"),
    [
        (UNMASKED, 33, 50),
        (Mask(causal=True), 64, 64),
        (Mask(causal=True), 40, 20),
        (Mask(window=17), 50, 64),
        (Mask(causal=True, window=17, sinks=4), 80, 80),
        (Mask(window=1, sinks=20), 20, 64),
        (Mask(causal=True, window=3, sinks=3), 64, 20),
    ],
)
def test_tiles_without_a_visible_pair_are_not_worked_on(interpret, mask, n_q, n_k):
    interpret(interpreted.works_on_visible_tiles_only, mask, n_q, n_k)


def test_rows_that_see_nothing_give_zeros_and_no_gradient(interpret):
    interpret(interpreted.blind_rows_give_nothing)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
@pytest.mark.parametrize(
    ("mask", "hidden"),
    [
        (Mask(key_valid=LATE[None]), ~LATE),
        (Mask(causal=True, window=5, sinks=2), (torch.arange(40) >= 2) & (torch.arange(40) < 26)),
        (Mask(window=5), torch.arange(40) < 26),
    ],
    ids=["valid", "window and sinks", "window"],
)
def test_nothing_leaks_from_keys_that_nobody_sees(interpret, mask, hidden, poison):
    interpret(interpreted.nothing_hidden_leaks, mask, hidden, poison)


@pytest.mark.parametrize(
    "promise",
    [
        interpreted.same_call_gives_the_same_bits,
        interpreted.strides_do_not_matter,
        interpreted.shared_heads_sum_their_gradients,
        interpreted.nothing_gives_nothing,
        interpreted.huge_scores_stay_finite,
        interpreted.second_derivative_is_refused,
        interpreted.torch_finds_nothing_wrong_with_the_operator,
        interpreted.compiler_sees_through_it,
        interpreted.named_kernel_is_the_one_that_runs,
    ],
    ids=lambda promise: promise.__name__,
)
def test_it_keeps_the_promises_of_the_other_kernels(interpret, promise):
    interpret(promise)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize("width", [1, 17, 32, 64, 100, 128, 256])
def test_tiles_fit_into_shared_memory_and_short_sequences(width, itemsize, backward):
    tiles = choose(width, itemsize, 4096, 4096, backward)
    row = max(SMALLEST, width) * itemsize
    ours, theirs = (tiles.keys, tiles.queries) if backward else (tiles.queries, tiles.keys)
    # One side stays, of the other the operands of every stage are there at once.
    assert row * (ours * (1 + backward) + 2 * tiles.stages * theirs) <= 99 * 1024
    short = choose(width, itemsize, 1, 20, backward)
    assert (short.queries, short.keys) == (16, min(32, tiles.keys))


@pytest.mark.slow
def test_it_compiles_for_a_gpu_that_is_not_there(tmp_path):
    pytest.importorskip("triton", reason="no triton for this system")
    environment = {name: value for name, value in os.environ.items() if name != INTERPRET_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "tests.model.attention.gpu_compilation"],
        env={**environment, "TRITON_CACHE_DIR": str(tmp_path)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 99 * 1024


LOGGED = (
    "import logging, torch\n"
    "logging.basicConfig(level=logging.INFO)\n"
    "from model.attention import attention\n"
    "q = torch.ones(1, 1, 3, 8)\n"
    "print(*(attention(q, q, q, backend='triton').sum().item() for _ in range(2)))\n"
)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("", "torch sees no GPU"),
        ("import sys; sys.modules['triton'] = None\n", "triton is not installed"),
        (
            f"import os, sys; os.environ['{INTERPRET_VARIABLE}'] = '1'\n"
            "sys.modules['triton.knobs'] = None\n",
            "triton cannot be used",
        ),
    ],
    ids=["no GPU", "no triton", "another triton"],
)
def test_where_it_cannot_be_used_another_answers_and_one_line_says_why(before, reason):
    if "GPU" in reason and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    pytest.importorskip("triton", reason="no triton for this system")
    done = subprocess.run(
        [sys.executable, "-c", before + LOGGED],
        env={name: value for name, value in os.environ.items() if name != INTERPRET_VARIABLE},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "24.0 24.0\n", done.stderr
    (line,) = [each for each in done.stderr.splitlines() if "without triton" in each]
    assert reason in line


def test_nothing_of_triton_is_imported_before_it_is_asked_for():
    program = "import sys, model.attention; print('triton' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
