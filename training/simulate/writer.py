"""Files that appear whole or not at all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

PARTIAL_SUFFIX = ".partial"
_GZIP_LEVEL = 6


def write_whole(path: Path, content: bytes, *, compress: bool = False) -> tuple[Path, int]:
    """Write a file under another name and rename it, so that no reader ever sees a part of it.

    Args:
        path: Where the file goes; its directory is made when it is missing.
        content: The bytes.
        compress: Compress with gzip and add `.gz` to the name. No time stamp goes into the stream:
            equal contents give equal files.

    Returns:
        The final path and the number of bytes written.

    Raises:
        OSError: The file cannot be written; nothing is left under the final name.
    """
    if compress:
        path = path.with_name(path.name + ".gz")
        content = gzip.compress(content, _GZIP_LEVEL, mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    partial.write_bytes(content)
    os.replace(partial, path)
    return path, len(content)
