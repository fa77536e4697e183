"""Whether Triton can run attention on this machine, and if not, why."""

from __future__ import annotations

import importlib
import logging
import os
import threading
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch

INTERPRET_VARIABLE = "TRITON_INTERPRET"
"""Triton's own: set before Triton is imported, it runs kernels in Python on a CPU, for tests."""

LEAST_CAPABILITY = (8, 0)
"""Of an NVIDIA GPU: the first that multiplies bfloat16."""

_log = logging.getLogger("rancast.attention")
_loading = threading.Lock()


@dataclass(frozen=True)
class Toolchain:
    """What became of Triton on this machine.

    Attributes:
        usable: Whether attention can be answered by it.
        reason: Why, in words for a person.
        interpreted: Whether kernels run in Triton's interpreter, which takes tensors of a CPU.
    """

    usable: bool
    reason: str
    interpreted: bool = False


@cache
def load() -> Toolchain:
    """Triton, imported the first time; where it cannot be used, why, logged once."""
    with _loading:  # the outer cache lets two first calls in
        return _load_once()


@cache
def _load_once() -> Toolchain:
    toolchain = _load()
    if not toolchain.usable:
        _log.info("attention runs without triton: %s", toolchain.reason)
    return toolchain


def _load() -> Toolchain:
    if find_spec("triton") is None:
        return Toolchain(False, "triton is not installed; the extra `gpu` brings it")
    # Asked before Triton is imported, which takes a second.
    if INTERPRET_VARIABLE not in os.environ and (lacking := _lacking_gpu()):
        return Toolchain(False, lacking)
    try:
        version = importlib.import_module("triton").__version__
        interpreted = bool(importlib.import_module("triton.knobs").runtime.interpret)
        if not interpreted and (lacking := _lacking_gpu()):
            return Toolchain(False, lacking)
        # Importing the module is what tells torch of the operators.
        importlib.import_module("model.attention.triton_kernel.op")
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        return Toolchain(False, f"triton cannot be used: {error}")
    where = "in its interpreter" if interpreted else f"on {torch.cuda.get_device_name()}"
    return Toolchain(True, f"triton {version} {where}", interpreted)


def _lacking_gpu() -> str | None:
    """What keeps torch's GPUs from being used, None where nothing does."""
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    if torch.version.hip is None:
        least = min(map(torch.cuda.get_device_capability, range(torch.cuda.device_count())))
        if least < LEAST_CAPABILITY:
            return f"expected GPUs of compute capability {LEAST_CAPABILITY} or more, got {least}"
    return None
