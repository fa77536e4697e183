"""The C++ that reads bytes from the network, compiled with sanitizers, as a process of its own.

An error of memory in it ends that process with a report, and not the tests.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from model.errors import ArtifactError
from model.shared_library import compiler, run_compiler
from service.codecs.native.library import SOURCES

DRIVER = Path(__file__).with_name("cut_driver.cpp")
_FLAGS = (
    *("-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
# Leaks are not looked for: it would need to trace the process, which a container may forbid.
_ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
_ANSWER = struct.Struct("<qq")


class NoSanitizerError(Exception):
    """There is no compiler here, or it has no sanitizers."""


class SanitizedCutter:
    """`rancast_cut` behind a pipe.

    Args:
        program: The driver, built.
    """

    def __init__(self, program: Path) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def cut(self, text: bytes) -> tuple[int, int]:
        """Number of lists (-1 where the text is refused) and length of the skeleton.

        Raises:
            AssertionError: A sanitizer found an error; its report is the message.
        """
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        answer = b""
        with suppress(BrokenPipeError):
            process.stdin.write(struct.pack("<q", len(text)) + text)
            process.stdin.flush()
            answer = process.stdout.read(_ANSWER.size)
        if len(answer) < _ANSWER.size:
            raise AssertionError(f"the reader of samples failed on {text[:200]!r}: {self.stop()}")
        lists, length = _ANSWER.unpack(answer)
        return lists, length

    def stop(self) -> str:
        """End the process; what it said on its standard error."""
        process, self._process = self._process, None
        if process is None:
            return ""
        with suppress(BrokenPipeError):
            return process.communicate(timeout=30)[1].decode(errors="replace")
        # What was written last found nobody; the report is there all the same.
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace")
        process.wait(30)
        return said

    def _started(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [self._program],
            env=_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return self._process


@contextmanager
def sanitized_cutter(folder: Path) -> Iterator[SanitizedCutter]:
    """The reader, built into a folder, running until the block ends.

    Raises:
        NoSanitizerError: It cannot be built here.
    """
    program = folder / "cut"
    sources = [str(path) for path in (SOURCES / "cut.cpp", DRIVER)]
    try:
        run_compiler([*compiler(), *_FLAGS, *sources, "-o", str(program)])
    except ArtifactError as error:
        raise NoSanitizerError(str(error)) from error
    cutter = SanitizedCutter(program)
    try:
        yield cutter
    finally:
        cutter.stop()
