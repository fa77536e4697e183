"""The GPU kernel, written in Triton: exact attention over tiles, forward and backward.

Nothing of Triton is imported before `load` finds that it can be used here; the modules `score`,
`forward`, `backward` and `op` need it and are not imported by anything else.
"""

from model.attention.triton_kernel.function import supports, triton_attention
from model.attention.triton_kernel.toolchain import Toolchain, load

__all__ = ["Toolchain", "load", "supports", "triton_attention"]
