"""Bodies that come compressed: taken apart by pieces, so that a small one cannot grow unseen."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from service.errors import MalformedBodyError, MediaTypeError

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

IDENTITY = "identity"
# Input that is handed on at a time, so that what is not yet used of it is copied quickly.
_SLICE_BYTES = 64 * 1024
_GZIP_WINDOW = 31  # zlib's own number for: the largest window, and gzip's head and tail
# What a sender's frame may make us remember: 8 MiB, which every decoder has to grant (RFC 8878,
# section 3.1.1.1.2).
_ZSTD_WINDOW_LOG = 23
# Streams that stand one behind another; each costs time even where nothing is in it. Tools that
# compress block by block begin one for every 64 KiB and more.
_MOST_STREAMS = 2048


class _Stream(Protocol):
    """One compressed stream, after which others may follow."""

    @property
    def eof(self) -> bool:
        """Whether its end was reached."""

    @property
    def unused_data(self) -> bytes:
        """What was given and lies behind its end."""

    def decompress(self, data: bytes, most: int) -> bytes:
        """At most `most` bytes more; what is left of `data` is kept."""


class _GzipStream:
    """A member of a gzip file (RFC 1952)."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, most)


def _zstd_stream() -> _Stream:
    """A frame of Zstandard (RFC 8878)."""
    return ZstdDecompressor(options={DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})


_STREAMS: Mapping[str, Callable[[], _Stream]] = MappingProxyType(
    {"gzip": _GzipStream, "x-gzip": _GzipStream, "zstd": _zstd_stream}
)
ENCODINGS = ("gzip", "zstd")
"""Content codings of bodies that are read, besides none."""


def content_encoding(header: str | None) -> str:
    """The one content coding that a body has, `identity` where it has none.

    Args:
        header: The request's Content-Encoding.

    Raises:
        MediaTypeError: It is another than those in `ENCODINGS`, or there are several.
    """
    given = (header or IDENTITY).strip().lower()
    if given != IDENTITY and given not in _STREAMS:
        raise MediaTypeError(
            f"expected Content-Encoding {' or '.join(ENCODINGS)}, or an uncompressed body, "
            f"got {given[:100]}",
            {"Accept-Encoding": ", ".join(ENCODINGS)},
        )
    return given


class Decompressor:
    """Takes a compressed body apart, as far as it is asked to.

    Args:
        encoding: One of those that `content_encoding` gives, but not `identity`.
        body: The whole of it.
    """

    def __init__(self, encoding: str, body: bytes) -> None:
        self._encoding = encoding
        self._body = memoryview(body)
        self._given = 0
        self._stream = _STREAMS[encoding]()
        self._streams = 1
        self._is_hungry = True
        self._is_through = False

    @property
    def is_through(self) -> bool:
        """Whether all of it was read, and its end was seen."""
        return self._is_through

    def read(self, most: int, *, most_streams: int = _MOST_STREAMS) -> bytes:
        """The next bytes, `most` at the most; less only at the end, or of the last of some streams.

        Args:
            most: Bytes to read.
            most_streams: Stop before a further stream begins, counted from the body's beginning.

        Raises:
            MalformedBodyError: The body is not of its encoding, damaged or cut off.
        """
        parts: list[bytes] = []
        room = most
        try:
            while room and not self._is_through:
                if self._stream.eof and self._streams == most_streams < _MOST_STREAMS:
                    self._is_through = not self._has_more()
                    break
                parts.append(self._next_part(room))
                room -= len(parts[-1])
        except (zlib.error, ZstdError) as error:
            raise MalformedBodyError(
                f"expected a {self._encoding} body, as Content-Encoding says: {error}"
            ) from error
        return b"".join(parts)

    def _next_part(self, most: int) -> bytes:
        if self._stream.eof:
            data = self._stream.unused_data + self._next_slice()
            if not data:
                self._is_through = True
                return b""
            self._begin_stream()
        else:
            # A stream that gave all that was asked for may have more to give without more input.
            data = self._next_slice() if self._is_hungry else b""
        part = self._stream.decompress(data, most)
        if self._is_hungry and not data and not part and not self._stream.eof:
            raise MalformedBodyError(f"expected a whole {self._encoding} body, but it is cut off")
        self._is_hungry = len(part) < most
        return part

    def _has_more(self) -> bool:
        return bool(self._stream.unused_data) or self._given < len(self._body)

    def _next_slice(self) -> bytes:
        data = bytes(self._body[self._given : self._given + _SLICE_BYTES])
        self._given += len(data)
        return data

    def _begin_stream(self) -> None:
        self._streams += 1
        if self._streams > _MOST_STREAMS:
            raise MalformedBodyError(
                f"expected at most {_MOST_STREAMS} {self._encoding} streams in one body, got more"
            )
        self._stream = _STREAMS[self._encoding]()
        self._is_hungry = True
