"""The checkpoints that ship."""

from __future__ import annotations

from pathlib import Path

DEFAULT = "rancast-small"


def default_checkpoint_path() -> Path:
    """The checkpoint that is served where none is named."""
    return Path(__file__).with_name(f"{DEFAULT}.safetensors")
