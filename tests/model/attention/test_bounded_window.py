"""What a window bounds: the blocks that are visited, the memory that is read, the memory in use."""

from __future__ import annotations

import ctypes
import platform

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.allocations import Job, peak_bytes
from benchmarks.harness import Unavailable
from model.attention import UNMASKED, Mask, attention, visited_tiles
from model.attention.mask import sequence_positions
from model.attention.native import load
from model.attention.reference import reference_attention
from tests.model.attention.test_native import run_python

BLOCK = 64  # keys that the native kernel stages at once
LENGTHS = (1024, 2048, 4096, 8192)
KIB = 2**10

native = pytest.mark.usefixtures("native_kernel")


def native_blocks(n_q: int, n_k: int, mask: Mask) -> int:
    """Blocks of keys that the native kernel reads for one head, by its own walk over them."""
    blocks = ctypes.CDLL(str(load().path)).rancast_attention_blocks
    blocks.restype = ctypes.c_int64
    long = ctypes.c_int64
    blocks.argtypes = [long, long, ctypes.c_bool, long, long]
    return int(blocks(n_q, n_k, mask.causal, mask.window or 0, mask.sinks))


def queries_of_an_item() -> int:
    """Queries that share the blocks they read: the most that do with one block."""
    rows = 1
    while native_blocks(rows + 1, 1, UNMASKED) == 1:
        rows += 1
    return rows


def runs_of(seen: torch.Tensor) -> list[int]:
    """Lengths of the stretches of True."""
    edges = torch.diff(torch.nn.functional.pad(seen.to(torch.int8), (1, 1))).nonzero()[:, 0]
    return (edges[1::2] - edges[::2]).tolist()


@native
@given(
    n_q=st.integers(1, 400),
    n_k=st.integers(1, 400),
    causal=st.booleans(),
    window=st.none() | st.integers(1, 410),
    sinks=st.integers(0, 90),
)
@settings(max_examples=60, deadline=None)
def test_native_visits_the_blocks_that_the_definition_shows_and_no_other(
    n_q, n_k, causal, window, sinks
):
    mask = Mask(causal, window, sinks if window else 0)
    visible = mask.visible(*sequence_positions(n_q, n_k, torch.device("cpu")))[0, 0]
    expected = sum(
        -(-length // BLOCK)
        for rows in visible.split(queries_of_an_item())
        for length in runs_of(rows.any(dim=0))
    )
    assert native_blocks(n_q, n_k, mask) == expected


@native
def test_native_work_grows_with_the_length_times_the_window():
    rows = queries_of_an_item()
    counted = {n: native_blocks(n, n, Mask(causal=True, window=256)) for n in (4096, 16_384)}
    for n, blocks in counted.items():
        items = n // rows
        assert blocks <= items * -(-(rows + 256) // BLOCK)
        assert native_blocks(n, n, UNMASKED) == items * n // BLOCK
    assert counted[16_384] <= 4.2 * counted[4096]
    wide = native_blocks(16_384, 16_384, Mask(causal=True, window=512))
    assert wide <= 2 * counted[16_384]


def test_tiled_work_grows_with_the_length_times_the_window():
    counted = {n: visited_tiles(n, n, Mask(causal=True, window=256)) for n in (4096, 16_384)}
    assert counted[16_384] <= 4.2 * counted[4096]
    assert visited_tiles(16_384, 16_384, UNMASKED) == 16 * visited_tiles(4096, 4096, UNMASKED)
    wide = visited_tiles(16_384, 16_384, Mask(causal=True, window=512))
    assert wide <= 2 * counted[16_384]


@native
def test_a_single_late_query_visits_only_the_blocks_of_its_window():
    assert native_blocks(1, 16_384, Mask(causal=True, window=64)) == 1
    assert native_blocks(1, 16_384, Mask(causal=True, window=65, sinks=4)) == 3
    assert native_blocks(1, 16_384, UNMASKED) == 16_384 // BLOCK


@native
@pytest.mark.skipif(platform.system() != "Linux", reason="pages are taken away by mprotect")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_native_lives_where_keys_before_every_window_are_in_no_memory_at_all(dtype):
    # The last 64 of 8192 positions look back 256 keys: the pages of the first 7680 are taken away,
    # so that a processor that touches them ends the process.
    program = f"""
import ctypes, mmap, torch
from model.attention import Mask, attention
n, width, gone, dtype = 8192, 32, 7680, torch.{dtype}
size = n * width * dtype.itemsize
libc = ctypes.CDLL(None, use_errno=True)
def mapped(values):
    memory = mmap.mmap(-1, size)
    rows = torch.frombuffer(memory, dtype=dtype).view(1, 1, n, width)
    rows.copy_(values)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    span = ctypes.c_size_t(gone * width * dtype.itemsize)
    return rows, lambda: libc.mprotect(ctypes.c_void_p(start), span, 0)
torch.manual_seed(0)
(k, forget_k), (v, forget_v) = (mapped(torch.randn(1, 1, n, width)) for _ in range(2))
q = torch.randn(1, 1, 64, width).to(dtype)
mask = Mask(causal=True, window=256)
expected = attention(q, k[:, :, gone:], v[:, :, gone:], mask=mask, backend="native")
assert forget_k() == forget_v() == 0
with torch.no_grad():
    output = attention(q, k, v, mask=mask, backend="native")
print((output - expected).abs().max().item())
"""
    done = run_python(program)
    assert done.returncode == 0, f"{done.returncode} {done.stderr}"
    assert float(done.stdout) <= (2e-6 if dtype == "float32" else 1e-2)


@pytest.fixture(scope="module")
def peaks() -> dict[tuple[str, int | None, bool], list[int]]:
    """Peak bytes by backend, window and whether gradients are asked, over LENGTHS."""
    kinds = [
        (backend, window, learns)
        for backend in ("tiled", *(["native"] if load().usable else []))
        for window, learns in ((None, False), (256, False), (256, True))
    ]
    jobs = [Job(kind[0], n, 1, 16, *kind[1:]) for kind in kinds for n in LENGTHS]
    dense = [Job("reference", n, 1, 16) for n in LENGTHS[:2]]
    try:
        counted = peak_bytes([*jobs, *dense])
    except Unavailable as reason:
        pytest.skip(str(reason))
    found = {kind: counted[i * 4 : i * 4 + 4] for i, kind in enumerate(kinds)}
    return {**found, ("reference", None, False): counted[-2:]}


@pytest.mark.parametrize(
    "kind",
    [
        (backend, window, learns)
        for backend in ("tiled", "native")
        for window, learns in ((None, False), (256, False), (256, True))
    ],
    ids=str,
)
def test_memory_in_use_grows_as_the_length(peaks, kind):
    if kind not in peaks:
        pytest.skip("the native kernel cannot be used here")
    _, two, four, eight = peaks[kind]
    assert eight - four <= 2.2 * (four - two)


def test_the_count_sees_the_square_where_there_is_one(peaks):
    one, two = peaks["reference", None, False]
    assert two - one >= 2 * 3 * LENGTHS[0] ** 2 * 4  # scores and weights


@native
@pytest.mark.parametrize("window", [None, 256])
def test_native_needs_nothing_that_grows_beside_its_output(peaks, window):
    beside = [
        peak - Job("native", n, 1, 16).output_bytes
        for n, peak in zip(LENGTHS, peaks["native", window, False], strict=True)
    ]
    assert max(beside) <= 256 * KIB
    assert max(beside) - min(beside) <= 16 * KIB


@pytest.mark.parametrize("backend", ["tiled", "native"])
@pytest.mark.parametrize("mask", [Mask(causal=True), Mask(causal=True, window=300, sinks=5)])
def test_sixteen_thousand_tokens_are_as_exact_as_a_few(draw, backend, mask):
    n = 16_384
    q, k, v = (t.detach() for t in draw(batch=1, heads=1, n_q=n, width=16))
    output = attention(q, k, v, mask=mask, backend=backend)
    # Under causal the rows that end at `end` are those of the sequence cut off there.
    for end in (3, 1000, 9001, n):
        few = q[:, :, end - 3 : end].double()
        expected, _ = reference_attention(
            few, k[:, :, :end].double(), v[:, :, :end].double(), mask, 0.25
        )
        torch.testing.assert_close(
            output[:, :, end - 3 : end].double(), expected, rtol=0, atol=2e-6
        )


@pytest.mark.parametrize("backend", ["tiled", "native"])
def test_old_keys_leave_nothing_behind_as_a_window_moves_on(draw, backend):
    """A stream of tokens, each asked alone, gives what all of them give at once."""
    n, mask = 90, Mask(causal=True, window=7, sinks=2)
    q, k, v = (t.detach() for t in draw(batch=1, heads=2, n_q=n))
    at_once = attention(q, k, v, mask=mask, backend=backend)
    for end in range(1, n + 1):
        stale = max(2, end - 7)  # keys before it are sinks, or left behind
        here = [x[:, :, :end].clone() for x in (k, v)]
        for x in here:
            x[:, :, 2:stale] = torch.nan
        alone = attention(q[:, :, end - 1 : end], *here, mask=mask, backend=backend)
        torch.testing.assert_close(alone, at_once[:, :, end - 1 : end], rtol=0, atol=2e-6)
