"""The checkpoints that ship, by name."""

from __future__ import annotations

from pathlib import Path

DEFAULT = "rancast-small"


def default_checkpoint_path() -> Path:
    """The checkpoint that is used where none is named."""
    return _shipped(DEFAULT)


def shipped_names() -> tuple[str, ...]:
    """Names of the checkpoints that ship, for example `rancast-small`."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.safetensors")))


def find_checkpoint(named: Path | None) -> Path:
    """The file that a user means: a path, the bare name of a shipped checkpoint, or the default.

    A file of that very name in the working directory comes first.
    """
    if named is None:
        return default_checkpoint_path()
    is_name = len(named.parts) == 1 and named.name in shipped_names()
    return _shipped(named.name) if is_name and not named.exists() else named


def _shipped(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.safetensors")
