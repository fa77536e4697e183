"""The C++ kernel: exact attention on a CPU, with norm and rotation of queries and keys inside.

Nothing is loaded or built at import. `load` says whether the kernel can be used here.
"""

from model.attention.native.library import Kernel, load
from model.attention.native.op import Answer, native_attention, quick_attention, supports

__all__ = ["Answer", "Kernel", "load", "native_attention", "quick_attention", "supports"]
