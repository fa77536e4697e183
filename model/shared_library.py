"""Finding and building shared libraries: C++ that this package brings as sources.

A library is looked for beside its sources, where a package may bring it, and then in the user's
cache. Its name says what it was made from, so that a stale one is never found.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.code_cache import cache_folder
from model.errors import ArtifactError

SOURCE_PATTERNS = ("*.h", "*.cpp")
_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True)
class SharedLibrary:
    """One library and how it is made.

    Attributes:
        stem: What its file's name begins with.
        sources: Folder of its sources.
        beside: Folder in the package where it may lie.
        made_with: All that decides about its code apart from the sources, such as flags.
        compile_into: Makes it in a folder of its own and gives its path.
    """

    stem: str
    sources: Path
    beside: Path
    made_with: tuple[object, ...]
    compile_into: Callable[[Path], Path]

    @property
    def file_name(self) -> str:
        """Its file's name, by what it is made from."""
        digest = hashlib.sha256()
        for path in sorted(path for each in SOURCE_PATTERNS for path in self.sources.glob(each)):
            digest.update(path.name.encode() + path.read_bytes())
        digest.update(repr(self.made_with).encode())
        return f"{self.stem}-{digest.hexdigest()[:16]}.so"

    def find(self) -> Path | None:
        """Its file, if it has been built.

        Raises:
            ArtifactError: There is no folder to look in.
            OSError: The sources cannot be read.
        """
        name = self.file_name
        if (beside := self.beside / name).is_file():
            return beside
        cached = cache_folder() / name
        return cached if cached.is_file() else None

    def build(self, folder: Path | None = None) -> Path:
        """Compile it, unless it is there already.

        Args:
            folder: Where to, by default the cache.

        Returns:
            Its path. It appears there in one step, so that two builds at once do no harm.

        Raises:
            ArtifactError: There is no compiler, or it fails, in its own last words, or the folder
                cannot be written.
        """
        try:
            path = (folder or cache_folder()) / self.file_name
            if path.is_file():
                return path
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                built = self.compile_into(Path(scratch))
                built.chmod(0o755)
                os.replace(built, path)
        except OSError as error:
            raise ArtifactError(f"expected to build {self.stem}, could not: {error}") from error
        return path

    def build_beside(self) -> Path:
        """Compile it into the package, which unlike a cache is for everyone who may read it.

        Raises:
            ArtifactError: As `build`.
        """
        try:
            self.beside.mkdir(exist_ok=True)
            self.beside.chmod(0o755)
        except OSError as error:
            raise ArtifactError(f"expected a folder for {self.stem}, got none: {error}") from error
        return self.build(self.beside)


def find_compiler() -> list[str] | None:
    """The C++ compiler with its arguments: `CXX`, or g++."""
    words = shlex.split(os.environ.get("CXX") or "g++")
    return words if words and shutil.which(words[0]) else None


def compiler() -> list[str]:
    """The C++ compiler with its arguments.

    Raises:
        ArtifactError: There is none.
    """
    if (words := find_compiler()) is None:
        raise ArtifactError("expected a C++ compiler (CXX, or g++), found none")
    return words


def run_compiler(command: Sequence[str]) -> None:
    """Run a compiler.

    Raises:
        ArtifactError: It fails, in its own last words.
    """
    for words in run_compilers({"": command}).values():
        raise ArtifactError(words)


def run_compilers(commands: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Run compilers side by side; what those that fail say, by name."""
    running = {
        name: subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        for name, command in commands.items()
    }
    said = {name: process.communicate()[0] for name, process in running.items()}
    return {
        name: f"expected `{' '.join(commands[name])}` to work, it said: "
        f"{said[name][-_SHOWN_CHARACTERS:]}"
        for name, process in running.items()
        if process.returncode
    }
