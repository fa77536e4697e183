"""The native kernel: what it promises beyond what every backend does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from model.attention import Mask, QkNorm, attention
from model.attention.native import library
from model.attention.native.library import kernel_library
from model.code_cache import CACHE_VARIABLE, FLAGS_VARIABLE, ISA_VARIABLE
from model.errors import AttentionError
from model.rotary import RotaryTable, rotary_table
from model.shared_library import compiler
from tests.conftest import REPOSITORY
from tests.model.attention.sweep import LIMITS, SHAPES, check

pytestmark = pytest.mark.usefixtures("native_kernel")

FILLED = "-DRANCAST_FILL_SCRATCH"
SANITISERS = f"{FILLED} -fsanitize=address,undefined -fno-sanitize-recover=undefined -g -O1"


def run_sweep(**environment: str) -> str:
    """What the sweep says, as a process with these environment variables."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.model.attention.sweep"],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def build_with(flags: str, monkeypatch, tmp_path_factory) -> dict[str, str]:
    """Build the kernel with more flags; the environment in which it is found."""
    folder = tmp_path_factory.mktemp("kernel")
    monkeypatch.setenv(FLAGS_VARIABLE, flags)
    kernel_library().build(folder)
    return {FLAGS_VARIABLE: flags, CACHE_VARIABLE: str(folder)}


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_gives_what_the_definition_gives(shape, dtype):
    check(shape, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["avx2", "avx512", "avx512_bf16"])
def test_lesser_instruction_sets_give_it_too(isa, native_kernel):
    known = [*library.KERNELS]
    if known.index(isa) > known.index(native_kernel.isa):
        pytest.skip(f"this processor has no {isa}")
    assert run_sweep(**{ISA_VARIABLE: isa}) == isa


@pytest.mark.slow
def test_the_code_for_tiles_gives_it_too_with_tile_instructions_in_software(
    monkeypatch, tmp_path_factory, native_kernel
):
    if native_kernel.isa not in ("avx512_bf16", "amx"):
        pytest.skip("the code around the tiles needs AVX512-BF16")
    environment = build_with(f"-DRANCAST_EMULATE_TILES {FILLED}", monkeypatch, tmp_path_factory)
    assert run_sweep(**environment, **{ISA_VARIABLE: "amx"}) == "amx"


@pytest.mark.slow
def test_it_touches_no_memory_that_is_not_its_own(monkeypatch, tmp_path_factory, native_kernel):
    environment = build_with(SANITISERS, monkeypatch, tmp_path_factory)
    tool = compiler()
    runtime = subprocess.run(
        [*tool, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert (
        run_sweep(**environment, LD_PRELOAD=runtime, ASAN_OPTIONS="detect_leaks=0")
        == native_kernel.isa
    )


def test_the_layout_of_a_projection_goes_in_and_out_without_a_copy():
    projected = torch.randn(2, 13, 3, 4, 8)  # B, N, three, H, D
    q, k, v = projected.permute(2, 0, 3, 1, 4)
    output = attention(q, k, v, backend="native")
    assert output.transpose(1, 2).is_contiguous()
    expected = attention(q, k, v, backend="reference")
    torch.testing.assert_close(output, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_channels_that_do_not_lie_side_by_side_are_read_rightly(dtype):
    q, k, v = torch.randn(3, 1, 2, 8, 50).to(dtype).transpose(-1, -2)
    output = attention(q, k, v, backend="native")
    expected = attention(q, k, v, backend="reference")
    torch.testing.assert_close(
        output, expected, rtol=0, atol=2e-2 if dtype != q.float().dtype else 2e-6
    )


@pytest.mark.parametrize("shape", [(0, 2, 5, 8), (2, 0, 5, 8), (2, 2, 0, 8)])
def test_nothing_gives_nothing(shape):
    q = torch.randn(shape, requires_grad=True)
    output, lse = attention(q, q, q, backend="native", return_lse=True)
    assert output.shape == shape
    assert lse.shape == shape[:3]
    output.sum().backward()
    assert q.grad is not None
    assert q.grad.shape == shape


def test_queries_without_keys_see_nothing():
    q, k = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 0, 8)
    output, lse = attention(q, k, k, backend="native", return_lse=True)
    assert (output == 0).all()
    assert (lse == -torch.inf).all()


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("hidden", [torch.nan, torch.inf])
@pytest.mark.parametrize(
    "mask",
    [
        Mask(key_valid=torch.arange(40)[None] % 3 > 0),
        Mask(causal=True, window=4),
        Mask(key_valid=torch.arange(40)[None] > 20, causal=True),
    ],
    ids=["valid", "window", "late"],
)
def test_what_no_query_sees_is_not_even_read(mask, hidden, dtype):
    q, k, v = torch.randn(3, 1, 2, 40, 32).to(dtype)
    unseen = torch.zeros(40, dtype=torch.bool)
    if mask.key_valid is not None:
        unseen = ~mask.key_valid[0]
    else:
        q, unseen[:17] = q[:, :, 20:], True  # queries at 20 and later see 17 and later
    expected = attention(q, k, v, mask=mask, backend="native")
    k, v = k.clone(), v.clone()
    k[:, :, unseen] = v[:, :, unseen] = hidden
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    output = attention(*leaves, mask=mask, backend="native")
    assert torch.equal(output, expected)
    output.square().sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


def test_a_number_that_is_none_is_not_hidden_from_those_who_see_it():
    q, k, v = torch.randn(3, 1, 1, 8, 32)
    q[0, 0, 3, 5] = torch.nan
    output = attention(q, k, v, backend="native")
    assert output[0, 0, 3].isnan().all()
    assert output[0, 0, [0, 1, 2, 4, 5, 6, 7]].isfinite().all()


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_threads_change_no_bit(dtype):
    inputs = [t.to(dtype).requires_grad_() for t in torch.randn(3, 2, 3, 300, 32)]
    found = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 2):
            torch.set_num_threads(count)
            output, lse = attention(*inputs, mask=Mask(causal=True), return_lse=True)
            grads = torch.autograd.grad(output.square().sum() + lse.sum(), inputs)
            found.append((output, lse, *grads))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_calls_at_once_do_not_disturb_each_other():
    inputs = [torch.randn(3, 1, 2, 100 + 10 * place, 32) for place in range(8)]

    def answer(qkv: torch.Tensor) -> torch.Tensor:
        return attention(*qkv, mask=Mask(causal=True), backend="native")

    alone = [answer(qkv) for qkv in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            together = list(pool.map(answer, inputs))
            assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("gradients", [False, True])
def test_torch_finds_nothing_wrong_with_the_operator(gradients):
    q, k, v = (torch.randn(2, 2, 9, 8, requires_grad=gradients) for _ in range(3))
    valid = torch.ones(2, 9, dtype=torch.bool)
    arguments = (q, k, v, valid, None, None, None, None, None, 0.0, 0.3, True, 4, 1, True)
    torch.library.opcheck(torch.ops.rancast.attention, arguments)


def test_torch_finds_nothing_wrong_with_it_when_it_norms_and_turns_in_a_narrow_type():
    q, k, v = (torch.randn(2, 2, 9, 8).bfloat16() for _ in range(3))
    table, gain, slopes = rotary_table(torch.arange(9), 8), torch.ones(8), torch.ones(2)
    prepared = (gain, gain, table.cos, table.sin, 1e-6)
    arguments = (q, k, v, None, slopes, *prepared, None, False, 0, 0, False)
    torch.library.opcheck(torch.ops.rancast.attention, arguments)


def test_torch_finds_nothing_wrong_with_its_gradient():
    q, k, v, d_output = (torch.randn(2, 2, 9, 8) for _ in range(4))
    terms = (0.3, True, 4, 1)
    output, lse = torch.ops.rancast.attention(q, k, v, *[None] * 6, 0.0, *terms, True)
    arguments = (q, k, v, output, lse, d_output, torch.ones_like(lse), None, None, *terms)
    torch.library.opcheck(torch.ops.rancast.attention_backward, arguments)


TOKENS = torch.zeros(2, 3, 5, 4)
PLAIN = {
    "q": TOKENS,
    "k": TOKENS,
    "v": TOKENS,
    "key_valid": None,
    "alibi_slopes": None,
    "q_gain": None,
    "k_gain": None,
    "cos": None,
    "sin": None,
    "eps": 1e-6,
    "scale": None,
    "causal": True,
    "window": 0,
    "sinks": 0,
    "with_lse": False,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"q": TOKENS[0]},
        {"k": TOKENS[:1]},
        {"k": TOKENS[:, :2]},
        {"v": TOKENS[:, :, :4]},
        {"k": TOKENS[..., :3]},
        {"k": TOKENS.double()},
        {"k": TOKENS.bfloat16()},
        {"q": TOKENS.double(), "k": TOKENS.double(), "v": TOKENS.double()},
        {"q": TOKENS.int(), "k": TOKENS.int(), "v": TOKENS.int()},
        {"v": TOKENS.to("meta")},
        {"q": TOKENS.to_sparse()},
        {"q": TOKENS.mT.contiguous().mT},
        {"key_valid": torch.ones(2, 4, dtype=torch.bool)},
        {"key_valid": torch.ones(2, 5)},
        {"alibi_slopes": torch.ones(2)},
        {"alibi_slopes": torch.ones(3, dtype=torch.float64)},
        {"q_gain": torch.ones(4)},
        {"q_gain": torch.ones(3), "k_gain": torch.ones(4)},
        {"cos": torch.ones(5, 2)},
        {"cos": torch.ones(4, 2), "sin": torch.ones(5, 2)},
        {"window": -1},
        {"window": 2, "sinks": -1},
        {"scale": float("nan")},
        {"scale": 1e39},
    ],
    ids=lambda wrong: " ".join(wrong),
)
def test_the_operator_itself_refuses_what_it_would_read_wrongly(wrong):
    torch.ops.rancast.attention(*PLAIN.values())
    with pytest.raises(RuntimeError):
        torch.ops.rancast.attention(*{**PLAIN, **wrong}.values())


def test_it_is_part_of_an_exported_program():
    class Attend(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            table = rotary_table(torch.arange(x.shape[2]), x.shape[3])
            norm = QkNorm(torch.ones(x.shape[3]), torch.ones(x.shape[3]))
            return attention(x, x, x, rope=table, qk_norm=norm)

    batch = torch.export.Dim("batch", min=1, max=64)
    example = torch.randn(3, 2, 11, 16)
    with torch.no_grad():
        program = torch.export.export(Attend(), (example,), dynamic_shapes=({0: batch},))
    assert "rancast.attention" in str(program.graph)
    other = torch.randn(7, 2, 11, 16)
    torch.testing.assert_close(program.module()(other), Attend()(other), rtol=0, atol=0)


def test_memory_does_not_grow_with_the_square_of_the_length():
    q, k, v = torch.randn(3, 1, 4, 8_192, 32)
    attention(q[:, :, :64], k, v, backend="native")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts from here
    before = peak_kib()
    output = attention(q, k, v, backend="native")
    assert (peak_kib() - before) * 1024 <= output.nbytes + 2 * 2**20


def peak_kib() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


@pytest.mark.parametrize("window", [100, 2**31, 2**32 + 3, 2**63 - 1])
@pytest.mark.parametrize("causal", [False, True])
def test_a_window_wider_than_the_sequence_hides_nothing(window, causal):
    q, k, v = torch.randn(3, 1, 2, 100, 32)
    output = attention(q, k, v, mask=Mask(causal=causal, window=window, sinks=3))
    expected = attention(q, k, v, mask=Mask(causal=causal))
    assert torch.equal(output, expected)


def test_gradients_reach_angles_and_gains():
    q, k, v = torch.randn(3, 1, 2, 9, 8)
    table = rotary_table(torch.arange(9), 8)
    leaves = [x.clone().requires_grad_() for x in (table.cos, table.sin, torch.ones(8))]
    found = []
    for backend in ("native", "reference"):
        turned = RotaryTable(leaves[0], leaves[1])
        norm = QkNorm(leaves[2], leaves[2])
        output = attention(q, k, v, rope=turned, qk_norm=norm, backend=backend)
        found.append(torch.autograd.grad(output.square().sum(), leaves))
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)


def test_a_second_derivative_is_refused_by_name():
    leaves = torch.randn(3, 1, 1, 5, 8).requires_grad_().unbind()
    output = attention(*leaves, backend="native")
    (gradient,) = torch.autograd.grad(output.square().sum(), leaves[0], create_graph=True)
    with pytest.raises(AttentionError, match="backend='tiled'"):
        torch.autograd.grad(gradient.square().sum(), leaves[0])


@pytest.mark.filterwarnings("ignore")  # of torch about itself
def test_forward_derivatives_are_refused_and_not_made_up():
    q, k, v = torch.randn(3, 1, 1, 5, 8)
    with pytest.raises(NotImplementedError, match="forward AD"):
        torch.func.jvp(lambda x: attention(x, k, v, backend="native"), (q,), (q,))


def test_a_program_traced_without_gradients_refuses_to_make_them_up():
    class Attend(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return attention(x, x, x, backend="native")

    x = torch.randn(1, 2, 9, 8)
    with torch.no_grad():
        program = torch.export.export(Attend(), (x,))
    output = program.module()(x.clone().requires_grad_())
    with pytest.raises(AttentionError, match="traced without them"):
        output.sum().backward()


@pytest.mark.filterwarnings("ignore")  # of torch about itself
@pytest.mark.parametrize("learns", [False, True])
def test_a_compiler_sees_through_it(learns):
    inputs = torch.randn(3, 1, 9, 2, 8).transpose(2, 3).requires_grad_(learns).unbind()
    gains = torch.linspace(0.5, 1.5, 8, dtype=torch.float64)
    norm, mask = QkNorm(gains, gains), Mask(alibi_slopes=gains[:2])

    def attend(q, k, v):
        return attention(q, k, v, mask=mask, qk_norm=norm, backend="native")

    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), attend(*inputs))


def test_a_head_of_one_channel_may_lie_anyhow():
    q = torch.randn(16).as_strided((1, 2, 8, 1), (16, 8, 1, 8))
    expected = attention(q, q, q, backend="reference")
    torch.testing.assert_close(attention(q, q, q, backend="native"), expected)
    with torch.no_grad():
        torch.export.export(_SelfAttend(), (q,))


class _SelfAttend(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return attention(x, x, x, backend="native")


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({ISA_VARIABLE: "none"}, "is none"),
        ({ISA_VARIABLE: "altivec"}, "lacks altivec"),
        ({CACHE_VARIABLE: "/nonexistent"}, "not built"),
    ],
)
def test_where_it_cannot_be_used_torch_answers_and_one_line_says_why(environment, reason):
    program = (
        "import logging, torch\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "from model.attention import attention\n"
        "q = torch.ones(1, 1, 3, 8)\n"
        "print(attention(q, q, q, backend='native').sum().item(), attention(q, q, q).sum().item())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "24.0 24.0\n"
    (line,) = [each for each in done.stderr.splitlines() if "rancast.attention" in each]
    assert reason in line


def test_a_library_asked_for_what_the_processor_lacks_says_so_and_lives(native_kernel):
    program = (
        "import torch\n"
        f"torch.ops.load_library({str(native_kernel.path)!r})\n"
        "q = torch.ones(1, 1, 3, 8)\n"
        "torch.ops.rancast.attention(q, q, q, *[None] * 6, 0.0, None, False, 0, 0, False)"
    )
    done = run_python(program, **{ISA_VARIABLE: "altivec"})
    assert done.returncode == 1
    assert "expected a processor with AVX2" in done.stderr


def test_a_library_that_others_may_change_is_not_loaded(native_kernel, tmp_path):
    shutil.copy(native_kernel.path, tmp_path)
    tmp_path.chmod(0o777)
    done = run_python(
        "from model.attention.native import load; print(load().reason)",
        **{CACHE_VARIABLE: str(tmp_path)},
    )
    assert "may be written by others" in done.stdout


def test_without_a_home_there_is_no_kernel_and_no_error():
    program = (
        "import os, pwd\n"
        "pwd.getpwuid = lambda uid: {}[uid]\n"
        "from model.attention.native import load\n"
        "print(load().reason)"
    )
    done = run_python(program, HOME="", XDG_CACHE_HOME="", **{CACHE_VARIABLE: ""})
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_instruction_set_that_the_compiler_lacks_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(
        library,
        "KERNELS",
        {"avx2": library.AVX2_FLAGS, "avx512_bf16": ("-mno-such-set",)},
    )
    path = kernel_library().build(tmp_path)
    program = f"import ctypes; lib = ctypes.CDLL({str(path)!r}); f = lib.rancast_attention_isa; "
    done = run_python(f"import torch; {program} f.restype = ctypes.c_char_p; print(f().decode())")
    assert done.stdout.strip() == "avx2"


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
