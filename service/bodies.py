"""Reading a request's body: bounded in size and time, of a known form, taken apart and checked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from fastapi import Request

from service.codecs.compression import IDENTITY, Decompressor, content_encoding
from service.codecs.structure import is_quick
from service.container import Services
from service.errors import ClientGoneError, MediaTypeError, TooLargeError
from service.metrics import Stage
from service.room import SMALL_BYTES, Visit
from service.timing import timing_of

JSON_MEDIA_TYPE = "application/json"
# A client that says nothing for so long in the middle of its body is taken for gone.
STALLED_S = 30.0
_PIECE_BYTES = 1024 * 1024
# Of a number of bytes; Python itself reads no number of thousands.
_MOST_DIGITS = 18

Decoded = TypeVar("Decoded")


def body_type(request: Request, accepted: Sequence[str]) -> str:
    """The media type of a request's body.

    Args:
        request: Whose body it is.
        accepted: Media types that the route reads.

    Raises:
        MediaTypeError: It is none of them by its content type.
    """
    given = request.headers.get("content-type", "")
    media_type = given.partition(";")[0].strip().lower()
    if media_type not in accepted:
        raise MediaTypeError(
            f"expected Content-Type {' or '.join(accepted)}, got {given or 'none'}; name the "
            "body's type",
            {"Accept": ", ".join(accepted)},
        )
    return media_type


async def read_decoded(
    request: Request, services: Services, visit: Visit, decode: Callable[[bytes], Decoded]
) -> Decoded:
    """Read the body of a request, whatever its content type, and decode it.

    A body that takes long to decompress or to decode is sent to another thread, so that the event
    loop goes on breathing.

    Args:
        request: Whose body it is.
        services: Limits and metrics.
        visit: Takes the room that the body needs.
        decode: Makes of the bytes what the route wants; raises a `RequestError` where it cannot.

    Raises:
        MediaTypeError: It is compressed in a way that is not read.
        MalformedBodyError: It is not compressed as it says.
        TooLargeError: It is larger than the limit, as it came or decompressed, whatever its
            Content-Length said.
        OverloadedError: Other large bodies leave no room for it.
        ClientGoneError: The client left, fell silent, or took too long, before it was whole.
    """
    encoding = content_encoding(request.headers.get("content-encoding"))
    settings = services.settings
    parts = await _read_bounded(request, settings.max_body_bytes, visit, settings.body_seconds)
    with timing_of(request).stage(Stage.DECODE):
        if encoding != IDENTITY:
            parts = await _decompressed(encoding, parts, settings.max_body_bytes, visit)
        if _size(parts) <= SMALL_BYTES:
            body = b"".join(parts)
            if is_quick(body):
                return decode(body)
            return await asyncio.to_thread(decode, body)
        async with visit.turn:
            return await asyncio.to_thread(_decoded, parts, decode)


def _decoded(parts: list[bytes], decode: Callable[[bytes], Decoded]) -> Decoded:
    """Joins them here: tens of milliseconds for a large body, which the event loop has not."""
    body = b"".join(parts)
    parts.clear()
    return decode(body)


def _size(parts: list[bytes]) -> int:
    return sum(map(len, parts))


async def _read_bounded(
    request: Request, most_bytes: int, visit: Visit, most_s: float = float("inf")
) -> list[bytes]:
    """The whole body, in parts; ends where it is clear that it is too large, or has no room."""
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and (len(stated) > _MOST_DIGITS or int(stated) > most_bytes):
        raise TooLargeError(
            f"expected a body of at most {most_bytes} bytes, got {stated[:_MOST_DIGITS]}"
        )
    chunks: list[bytes] = []
    size = 0
    now_s = asyncio.get_running_loop().time
    last_s = now_s() + most_s
    try:
        async with asyncio.timeout(None) as patience:
            while True:
                patience.reschedule(min(now_s() + STALLED_S, last_s))
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError("the client left in the middle of its body")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > most_bytes:
                    raise TooLargeError(f"expected a body of at most {most_bytes} bytes, got more")
                # Room is taken for what has come, not for what was announced: words cost nothing.
                visit.grow(size)
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks
    except TimeoutError:
        if now_s() >= last_s:
            raise ClientGoneError(f"the client took more than {most_s:g} s for its body") from None
        raise ClientGoneError(
            f"the client sent nothing for {STALLED_S:g} s in the middle of its body"
        ) from None


async def _decompressed(
    encoding: str, parts: list[bytes], most_bytes: int, visit: Visit
) -> list[bytes]:
    """The body without its coding; stops as soon as it is clear that it is too large."""
    came = _size(parts)
    pieces: list[bytes] = []
    size = 0
    if came <= SMALL_BYTES:
        source = Decompressor(encoding, b"".join(parts))
        pieces.append(source.read(SMALL_BYTES, most_streams=1))
        size = len(pieces[0])
        _check_unpacked(size, most_bytes)
        visit.grow(came + size)
        if source.is_through:
            return pieces
    async with visit.turn:
        if came > SMALL_BYTES:
            source = await asyncio.to_thread(_source, encoding, parts)
        while piece := await asyncio.to_thread(source.read, _PIECE_BYTES):
            size += len(piece)
            _check_unpacked(size, most_bytes)
            visit.grow(came + size)
            pieces.append(piece)
    return pieces


def _source(encoding: str, parts: list[bytes]) -> Decompressor:
    body = b"".join(parts)
    parts.clear()
    return Decompressor(encoding, body)


def _check_unpacked(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise TooLargeError(
            f"expected a body of at most {most_bytes} bytes once decompressed, got more"
        )
