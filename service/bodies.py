"""Reading a request's body: bounded, of the right type, into a checked model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from service.container import Services
from service.errors import (
    ClientGoneError,
    InvalidRequestError,
    MalformedBodyError,
    MediaTypeError,
    TooLargeError,
)
from service.faults import body_faults
from service.metrics import Stage
from service.room import SMALL_BYTES, Visit

JSON_MEDIA_TYPE = "application/json"
# A client that says nothing for so long in the middle of its body is taken for gone.
STALLED_S = 30.0

Body = TypeVar("Body", bound=BaseModel)
Decoded = TypeVar("Decoded")


async def read_json(request: Request, services: Services, visit: Visit, model: type[Body]) -> Body:
    """Read and check the JSON body of a request.

    Args:
        request: Whose body it is.
        services: Limits and metrics.
        visit: Takes the room that the body needs.
        model: Shape of the body.

    Raises:
        MediaTypeError: It is not JSON by its content type, or it is compressed.
        TooLargeError: It is larger than the limit, whatever its Content-Length said.
        OverloadedError: Other large bodies leave no room for it.
        ClientGoneError: The client left, or fell silent, before it was whole.
        MalformedBodyError: It is not JSON.
        InvalidRequestError: It is JSON of another shape.
    """
    _check_type(request)
    return await read_decoded(request, services, visit, partial(_decode, model=model))


async def read_decoded(
    request: Request, services: Services, visit: Visit, decode: Callable[[bytes], Decoded]
) -> Decoded:
    """Read the body of a request, whatever its content type, and decode it.

    A large body is decoded on another thread, so that the event loop goes on breathing.

    Args:
        request: Whose body it is.
        services: Limits and metrics.
        visit: Takes the room that the body needs.
        decode: Makes of the bytes what the route wants; raises a `RequestError` where it cannot.

    Raises:
        MediaTypeError: It is compressed.
        TooLargeError: It is larger than the limit, whatever its Content-Length said.
        OverloadedError: Other large bodies leave no room for it.
        ClientGoneError: The client left, or fell silent, before it was whole.
    """
    _check_encoding(request)
    body = await _read_bounded(request, services.settings.max_body_bytes, visit)
    with services.metrics.timed(Stage.DECODE):
        if len(body) <= SMALL_BYTES:
            return decode(body)
        async with visit.turn:
            return await asyncio.to_thread(decode, body)


def decode_json(body: bytes, model: type[Body]) -> Body:
    """A checked model of a JSON text.

    Raises:
        MalformedBodyError: It is not JSON.
        InvalidRequestError: It is JSON of another shape.
    """
    return _decode(body, model)


def _check_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != JSON_MEDIA_TYPE:
        raise MediaTypeError(
            f"expected Content-Type {JSON_MEDIA_TYPE}, got {given or 'none'}; name the body's type"
        )


def _check_encoding(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise MediaTypeError(f"expected an uncompressed body, got Content-Encoding {encoding}")


async def _read_bounded(request: Request, most_bytes: int, visit: Visit) -> bytes:
    """The whole body; stops reading as soon as it is clear that it is too large, or has no room."""
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > most_bytes:
        raise TooLargeError(f"expected a body of at most {most_bytes} bytes, got {stated}")
    chunks: list[bytes] = []
    size = 0
    while True:
        try:
            message = await asyncio.wait_for(request.receive(), STALLED_S)
        except TimeoutError:
            raise ClientGoneError(
                f"the client sent nothing for {STALLED_S:g} s in the middle of its body"
            ) from None
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
            return b"".join(chunks)


def _decode(body: bytes, model: type[Body]) -> Body:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":
        raise MalformedBodyError(f"expected JSON: {errors[0]['ctx']['error']}")
    first, *others = body_faults(errors)
    raise InvalidRequestError(first.path, first.reason, tuple(others))
