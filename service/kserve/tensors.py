"""Tensors of the Open Inference Protocol: lists or raw bytes on the wire, arrays inside.

In JSON a tensor's data are a list, flat in row-major order or nested as its shape says; null is
NaN, which JSON does not have. With the binary tensor extension they follow the JSON as raw bytes,
little-endian and in the order of the inputs, and a header says where the JSON ends. A BYTES tensor
is a list of strings, in the extension each one behind its length in four bytes.

https://github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md, and the
binary tensor data extension of KServe and Triton.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.codecs.json_requests import decode_cut, decode_json
from service.errors import InvalidRequestError, MalformedBodyError
from service.kserve.messages import OF_INPUTS, InferInput, InferRequest, Numbers
from service.kserve.provenance import json_bytes
from service.series import pointer

LENGTH_HEADER = "Inference-Header-Content-Length"
BINARY_MEDIA_TYPE = "application/octet-stream"
EXTENSION = "binary_tensor_data"
TEXT = "BYTES"
NUMBERS: Mapping[str, np.dtype[Any]] = MappingProxyType(
    {
        "FP16": np.dtype("<f2"),
        "FP32": np.dtype("<f4"),
        "FP64": np.dtype("<f8"),
        **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
        **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    }
)
_LENGTH = struct.Struct("<I")
# Of a header with a number of bytes; a body of more is none.
_MOST_DIGITS = 19
# More than any body has; shapes of no elements may say more.
_MOST_ELEMENTS = 2**40

Tensors = Mapping[str, "Tensor"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a request or an answer.

    Attributes:
        name: What it is called.
        datatype: Of the protocol: `FP32`, `INT64`, `BYTES` and so on.
        values: Its numbers as float64 or of its own whole type, or its texts as objects, in its
            shape.
    """

    name: str
    datatype: str
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent: what its JSON says, and its tensors by name."""

    request: InferRequest
    tensors: Tensors


def decode(body: bytes, length_header: str | None) -> Sent:
    """Read a request of either form.

    Args:
        body: All of it.
        length_header: Value of `Inference-Header-Content-Length`, None where there is none.

    Raises:
        MalformedBodyError: It is not JSON, or the bytes are not what the JSON says.
        InvalidRequestError: A tensor does not fit its shape or type.
    """
    end = len(body) if length_header is None else _json_length(length_header, len(body))
    text = body[:end]
    rest = memoryview(body)[end:]
    try:
        return _sent(decode_cut(text, InferRequest, (OF_INPUTS,)), rest)
    except _InDoubtError:
        return _sent(decode_json(text, InferRequest), rest)


class _InDoubtError(Exception):
    """Numbers that were cut out of the text and do not fit; the whole text tells what is wrong."""


def _sent(request: InferRequest, rest: memoryview) -> Sent:
    tensors: dict[str, Tensor] = {}
    for position, one in enumerate(request.inputs):
        if one.name in tensors:
            raise InvalidRequestError(
                _place(position, "name"), f"input {one.name!r} is there twice"
            )
        size = (one.parameters or {}).get("binary_data_size")
        if (one.data is None) == (size is None):
            raise InvalidRequestError(
                _place(position, "data"), "expected either data or the parameter binary_data_size"
            )
        if isinstance(one.data, Numbers):
            values = _from_numbers(position, one, one.data)
        elif one.data is not None:
            values = _from_list(position, one, one.data)
        else:
            chunk, rest = _split(position, size, rest)
            values = _from_bytes(position, one, chunk)
        tensors[one.name] = Tensor(one.name, one.datatype, values)
    if len(rest):
        raise MalformedBodyError(f"{len(rest)} bytes follow the last tensor")
    return Sent(request, tensors)


def encode(
    head: Mapping[str, Any], outputs: Sequence[Tensor], binary: frozenset[str]
) -> tuple[bytes, int | None]:
    """Write an answer.

    Args:
        head: Its members but the outputs.
        outputs: The tensors, in order.
        binary: Names of those whose data follow the JSON as bytes.

    Returns:
        The bytes, and how many of them are the JSON where others follow.
    """
    members = [b"%b:%b" % (json_bytes(name), json_bytes(value)) for name, value in head.items()]
    texts: list[bytes] = []
    chunks: list[bytes] = []
    for output in outputs:
        said: dict[str, Any] = {
            "name": output.name,
            "shape": list(output.values.shape),
            "datatype": output.datatype,
        }
        if output.name in binary:
            chunks.append(_to_bytes(output))
            said["parameters"] = {"binary_data_size": len(chunks[-1])}
            texts.append(json_bytes(said))
        else:
            data = b",".join(_to_texts(output))
            texts.append(b'%b,"data":[%b]}' % (json_bytes(said)[:-1], data))
    text = b'{%b,"outputs":[%b]}' % (b",".join(members), b",".join(texts))
    return b"".join([text, *chunks]), len(text) if binary else None


def _place(position: int, *rest: str) -> str:
    return pointer("inputs", position, *rest)


def _json_length(header: str, most: int) -> int:
    is_number = header.isascii() and header.isdecimal() and len(header) <= _MOST_DIGITS
    if not is_number or int(header) > most:
        raise InvalidRequestError(
            f"header:{LENGTH_HEADER}",
            f"expected a number of at most {most} bytes, got {header[:_MOST_DIGITS]!r}",
        )
    return int(header)


def _from_numbers(position: int, one: InferInput, numbers: Numbers) -> NDArray[Any]:
    """Numbers that were cut out of the text, in the tensor's shape.

    Raises:
        _InDoubtError: They do not plainly fit.
    """
    values = numbers.values
    nested = values.shape[1:]
    if one.datatype == TEXT or values.size != prod(one.shape):
        raise _InDoubtError
    if nested != tuple(one.shape[1 : values.ndim]) or values.ndim > max(1, len(one.shape)):
        raise _InDoubtError
    if not _is_whole(position, one):
        return values.reshape(one.shape)
    if not numbers.is_whole:
        raise _InDoubtError
    _check_range(position, one, values.min(), values.max())
    return values.astype(NUMBERS[one.datatype]).reshape(one.shape)


def _from_list(position: int, one: InferInput, data: list[Any]) -> NDArray[Any]:
    flat = _flatten(position, one, data)
    kinds = set(map(type, flat))
    if one.datatype == TEXT:
        _check_kinds(position, one, kinds, {str}, "strings")
        return _shaped(position, one, np.array(flat, dtype=object))
    if not _is_whole(position, one):
        _check_kinds(position, one, kinds, {int, float, type(None)}, "numbers or null")
        try:
            return _shaped(position, one, np.array(flat, dtype=np.float64))
        except OverflowError:
            raise InvalidRequestError(
                _place(position, "data"), f"a number is too large for {one.datatype}"
            ) from None
    _check_kinds(position, one, kinds, {int}, "whole numbers")
    if flat:
        _check_range(position, one, min(flat), max(flat))
    return _shaped(position, one, np.array(flat, dtype=NUMBERS[one.datatype]))


def _check_range(position: int, one: InferInput, least: float, most: float) -> None:
    bounds = np.iinfo(NUMBERS[one.datatype])
    if least < bounds.min or most > bounds.max:
        raise InvalidRequestError(
            _place(position, "data"),
            f"expected whole numbers of {bounds.min} to {bounds.max} in a tensor of "
            f"{one.datatype}, got {int(least if least < bounds.min else most)}",
        )


def _shaped(position: int, one: InferInput, flat: NDArray[Any]) -> NDArray[Any]:
    """Elements, as many as the shape says, in that shape."""
    if prod(length for length in one.shape if length) > _MOST_ELEMENTS:
        raise InvalidRequestError(
            _place(position, "shape"), f"expected at most {_MOST_ELEMENTS} elements"
        )
    return flat.reshape(one.shape)


def _flatten(position: int, one: InferInput, data: list[Any]) -> list[Any]:
    """The elements in row-major order, of a list that is flat or nested as the shape says."""
    flat = data
    for depth in range(1, len(one.shape)):
        if not flat or not isinstance(flat[0], list):
            break
        if not all(isinstance(each, list) and len(each) == one.shape[depth] for each in flat):
            raise _other_shape(position, one, "is nested otherwise")
        flat = list(chain.from_iterable(flat))
    if len(flat) != prod(one.shape):
        raise _other_shape(position, one, f"has {len(flat)} elements")
    return flat


def _other_shape(position: int, one: InferInput, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        _place(position, "data"),
        f"expected {prod(one.shape)} elements in shape {one.shape}, but the list {what}",
    )


def _check_kinds(
    position: int, one: InferInput, found: set[type], allowed: set[type], words: str
) -> None:
    if wrong := sorted(kind.__name__ for kind in found - allowed):
        raise InvalidRequestError(
            _place(position, "data"),
            f"expected {words} in a tensor of {one.datatype}, got {', '.join(wrong)}",
        )


def _is_whole(position: int, one: InferInput) -> bool:
    if one.datatype not in NUMBERS:
        raise InvalidRequestError(
            _place(position, "datatype"),
            f"expected one of {', '.join([*NUMBERS, TEXT])}, got {one.datatype!r}",
        )
    return NUMBERS[one.datatype].kind != "f"


def _split(position: int, size: Any, rest: memoryview) -> tuple[memoryview, memoryview]:
    if type(size) is not int or not 0 <= size <= len(rest):
        raise InvalidRequestError(
            _place(position, "parameters", "binary_data_size"),
            f"expected at most the {len(rest)} bytes that follow, got {size!r}",
        )
    return rest[:size], rest[size:]


def _from_bytes(position: int, one: InferInput, chunk: memoryview) -> NDArray[Any]:
    count = prod(one.shape)
    if one.datatype == TEXT:
        texts = list(_read_texts(position, chunk))
        if len(texts) != count:
            raise _other_shape(position, one, f"has {len(texts)} elements")
        return _shaped(position, one, np.array(texts, dtype=object))
    whole = _is_whole(position, one)
    kind = NUMBERS[one.datatype]
    if len(chunk) != count * kind.itemsize:
        raise InvalidRequestError(
            _place(position, "parameters", "binary_data_size"),
            f"expected {count * kind.itemsize} bytes of {one.datatype} in shape {one.shape}, got "
            f"{len(chunk)}",
        )
    values = _shaped(position, one, np.frombuffer(chunk, dtype=kind))
    return values if whole else values.astype(np.float64)


def _read_texts(position: int, chunk: memoryview) -> Iterator[str]:
    while len(chunk):
        if len(chunk) < _LENGTH.size:
            raise _broken_text(position)
        (length,) = _LENGTH.unpack_from(chunk)
        text, chunk = chunk[_LENGTH.size : _LENGTH.size + length], chunk[_LENGTH.size + length :]
        if len(text) < length:
            raise _broken_text(position)
        try:
            yield str(text, "utf-8")
        except UnicodeDecodeError:
            raise _broken_text(position) from None


def _broken_text(position: int) -> InvalidRequestError:
    return InvalidRequestError(
        _place(position), "expected strings of UTF-8, each behind its length in four bytes"
    )


def _to_texts(output: Tensor) -> Iterator[bytes]:
    """The elements as JSON, row by row: no encoder runs for longer than one row takes.

    Numbers are the shortest decimals that mean what the tensor's type holds, null where that is
    not finite.
    """
    if not output.values.size:
        return
    values = output.values
    if output.datatype != TEXT:
        values = np.ascontiguousarray(values, dtype=NUMBERS[output.datatype])
    for row in values if values.ndim > 1 else [values]:
        flat = row.ravel()
        yield json_bytes(flat if output.datatype != TEXT else flat.tolist())[1:-1]


def _to_bytes(output: Tensor) -> bytes:
    if output.datatype == TEXT:
        texts = [text.encode() for text in output.values.ravel()]
        return b"".join(chain.from_iterable((_LENGTH.pack(len(text)), text) for text in texts))
    return output.values.astype(NUMBERS[output.datatype]).tobytes()
