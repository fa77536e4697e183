"""The bytes of a file, decompressed within a bound.

A gzip bomb is refused where the output reaches the limit, whatever the header says. Members that
follow one another are one file, as `cat a.gz b.gz` makes it.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from kpi.errors import UnreadableFileError
from kpi.readers.options import ReadLimits

GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20
_OTHER_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "an empty zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"Rar!": "a rar archive",
}


def read_bytes(path: Path, limits: ReadLimits) -> bytes:
    """Content of a file, decompressed where it is gzip.

    Raises:
        UnreadableFileError: It cannot be read, is empty, exceeds the limit, or is compressed in a
            way that is not gzip or is broken.
    """
    try:
        size = path.stat().st_size
        if size > limits.max_bytes:
            raise UnreadableFileError(
                path, f"expected at most {limits.max_bytes} bytes, got {size}; split the file"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableFileError(path, f"cannot be read: {error.strerror}") from error
    return unpack(data, path, limits)


def unpack(data: bytes, name: object, limits: ReadLimits) -> bytes:
    """`data`, decompressed where it is gzip.

    Args:
        data: Bytes of a file or of a record.
        name: Its name, for errors.
        limits: `max_bytes` bounds the result.

    Raises:
        UnreadableFileError: It is empty, too long, another sort of archive, or broken gzip.
    """
    for magic, kind in _OTHER_ARCHIVES.items():
        if data.startswith(magic):
            raise UnreadableFileError(name, f"expected plain or gzip, got {kind}; unpack it first")
    if data.startswith(GZIP_MAGIC):
        data = _gunzip(data, name, limits.max_bytes)
    if len(data) > limits.max_bytes:
        raise UnreadableFileError(name, f"expected at most {limits.max_bytes} bytes; split it")
    if not data.strip(b" \t\r\n\0"):
        raise UnreadableFileError(name, "expected measurements, the file is empty or blank")
    return data


def _gunzip(data: bytes, name: object, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(min(_CHUNK, max_bytes + 1 - size)):
                chunks.append(chunk)
                size += len(chunk)
                if size > max_bytes:
                    raise UnreadableFileError(
                        name,
                        f"expected at most {max_bytes} bytes after decompression, got more from "
                        f"{len(data)} bytes of gzip",
                    )
    except EOFError as error:
        raise UnreadableFileError(
            name, "expected whole gzip data, it is truncated; transfer the file again"
        ) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFileError(
            name, f"expected whole gzip data, it is damaged ({error}); transfer the file again"
        ) from error
    return b"".join(chunks)
