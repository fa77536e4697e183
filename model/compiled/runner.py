"""The library that runs compiled programs while Python goes on.

Torch's own binding holds the interpreter for the whole of a run: a service could neither accept nor
refuse a request meanwhile. The few lines of C++ behind this module are called through ctypes, which
lets it go.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch._C import _aoti

from model.errors import ArtifactError
from model.shared_library import compiler, run_compiler

RUNNER = "runner.so"
SOURCE = Path(__file__).parent / "csrc" / "runner.cpp"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-shared")
_WORDS_BYTES = 4096

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.restype = ctypes.py_object
_capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def compile_runner(folder: Path) -> Path:
    """Compile the library into a folder; it takes seconds.

    Raises:
        ArtifactError: There is no compiler, or it fails, in its own last words.
    """
    package = Path(torch.__file__).parent
    headers = package / "include"
    path = folder / RUNNER
    run_compiler(
        [
            *compiler(),
            *_FLAGS,
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            f"-isystem{headers}",
            f"-isystem{headers / 'torch' / 'csrc' / 'api' / 'include'}",
            str(SOURCE),
            *("-o", str(path)),
            *(f"-L{package / 'lib'}", "-ltorch_cpu", "-lc10"),
        ]
    )
    return path


class Runner:
    """The loaded library.

    Args:
        path: What `compile_runner` made.

    Raises:
        ArtifactError: It cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
            self._load, self._run = library.rancast_program_load, library.rancast_program_run
            self._free = library.rancast_program_free
        except (OSError, AttributeError) as error:
            raise ArtifactError(f"{path} cannot be loaded: {error}") from error
        self._load.restype = self._run.restype = ctypes.c_void_p
        self._load.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        self._run.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
        self._free.restype, self._free.argtypes = None, [ctypes.c_void_p]

    def load(self, path: Path) -> Program:
        """Load a program.

        Raises:
            ArtifactError: It cannot be loaded.
        """
        words = ctypes.create_string_buffer(_WORDS_BYTES)
        address = self._load(str(path).encode(), words, _WORDS_BYTES)
        if not address:
            raise ArtifactError(f"{path} cannot be loaded: {_first_line(words)}")
        return Program(self, address)

    def run(self, address: int, tensors: Sequence[Tensor]) -> Tensor:
        """Run a loaded program; see `Program`."""
        capsules = _aoti.unsafe_alloc_void_ptrs_from_tensors(list(tensors))
        inputs = (ctypes.c_void_p * len(capsules))(*(_pointer_of(each, None) for each in capsules))
        words = ctypes.create_string_buffer(_WORDS_BYTES)
        output = self._run(address, inputs, len(capsules), words, _WORDS_BYTES)
        if not output:
            raise ArtifactError(f"compiled code failed: {_first_line(words)}")
        # The binding for a single tensor copies it, and would leave this one behind.
        (answer,) = _aoti.alloc_tensors_by_stealing_from_void_ptrs(
            [_capsule_of(output, None, None)]
        )
        return answer

    def free(self, address: int) -> None:
        """Give a loaded program's memory back."""
        self._free(address)


class Program:
    """A compiled program; several threads may call it, and take turns.

    Args:
        runner: What runs it.
        address: What the runner knows it by.
    """

    def __init__(self, runner: Runner, address: int) -> None:
        self._runner = runner
        self._address = address

    def __call__(self, tensors: Sequence[Tensor]) -> Tensor:
        """The one output for dense inputs.

        Raises:
            ArtifactError: The program failed.
        """
        return self._runner.run(self._address, tensors)

    def __del__(self) -> None:
        self._runner.free(self._address)


def _first_line(words: ctypes.Array[ctypes.c_char]) -> str:
    return words.value.decode(errors="replace").partition("\n")[0]
