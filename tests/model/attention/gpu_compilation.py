"""Compiles every kernel for a GPU that need not be there, as a program: the interpreter forgives.

python -m tests.model.attention.gpu_compilation
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from model.attention.triton_kernel.forward import forward_kernel
from model.attention.triton_kernel.key_gradient import key_kernel
from model.attention.triton_kernel.query_gradient import query_kernel
from model.attention.triton_kernel.tiles import choose, padded_width

TYPES = {torch.float32: "fp32", torch.bfloat16: "bf16"}
IN_FLOAT32 = {"slopes", "lse", "d_lse", "shared"}
NUMBERS = {"heads", "n_q", "n_k", "window", "sinks"}
WARP = 32


def shared_memory(kernel: Any, dtype: torch.dtype, width: int, masked: bool, arch: int) -> int:
    """Bytes that a block of the compiled kernel asks for."""
    tiles = choose(width, dtype.itemsize, 4096, 4096, backward=kernel is not forward_kernel)
    constants: dict[str, Any] = {
        "WIDTH": width,
        "PADDED": padded_width(width),
        "TILE_Q": tiles.queries,
        "TILE_K": tiles.keys,
        **dict.fromkeys(("CAUSAL", "WINDOWED", "SLOPED", "VALIDATED"), masked),
        "WIDEN": False,
        "NARROW": dtype != torch.float32,
        **({} if masked else {"slopes": None, "key_valid": None}),
    }
    signature = {}
    for name in kernel.arg_names:
        if name in constants:
            signature[name] = "constexpr"
        elif name in NUMBERS or "_stride_" in name:
            signature[name] = "i32"
        elif name.endswith("scale"):
            signature[name] = "fp32"
        elif name == "key_valid":
            signature[name] = "*u8"
        else:
            signature[name] = f"*{'fp32' if name in IN_FLOAT32 else TYPES[dtype]}"
    used = {name: value for name, value in constants.items() if name in signature}
    compiled = compile(
        ASTSource(kernel, signature, used),
        target=GPUTarget("cuda", arch, WARP),
        options={"num_warps": tiles.warps, "num_stages": tiles.stages},
    )
    return int(compiled.metadata.shared)


def main() -> None:
    kernels = (forward_kernel, query_kernel, key_kernel)
    cases = ((torch.float32, 17, True), (torch.bfloat16, 128, True), (torch.bfloat16, 64, False))
    found = [shared_memory(kernel, *case, 80) for kernel, case in itertools.product(kernels, cases)]
    sys.stdout.write(f"{max(found)}\n")


if __name__ == "__main__":
    main()
