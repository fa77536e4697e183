"""Arrow IPC streams from strangers: bounded before anything is made of them.

A stream that was put together with ill intent may state compressed buffers that unpack to any size,
or columns that take no bytes at all. So its messages are looked at one by one first; what pyarrow
then reads lies within the body.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from service.errors import MalformedBodyError, TooLargeError

ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.stream"
# More columns than that no request has; a schema is checked in time that grows with them.
_MOST_COLUMNS = 32
_MOST_MESSAGES = 10_000
# Numbers of fields in the tables of Arrow's format/Message.fbs.
_MESSAGE_VERSION = 0
_MESSAGE_HEADER = 2
_MESSAGE_METADATA = 4
_BATCH_COMPRESSION = 3
_DICTIONARY_BATCH = 1
# Since Arrow 1.0; before it, compression of buffers had another place.
_VERSION_5 = 4


def read_stream(body: bytes, most_rows: int) -> pa.Table:
    """All rows of a stream, each column in one piece that shares the body's memory where it can.

    Args:
        body: The stream.
        most_rows: Rows that it may have.

    Raises:
        MalformedBodyError: It is no stream, is damaged, or its buffers are compressed.
        TooLargeError: It has more rows.
    """
    with refusing_damage():
        _check_messages(body)
        return _table(body, most_rows)


@contextmanager
def refusing_damage() -> Iterator[None]:
    """What pyarrow says of a damaged stream becomes an error of the request.

    Some damage shows only when a column is looked at, such as a name that is no UTF-8.

    Raises:
        MalformedBodyError: It is damaged.
    """
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, ValueError, NotImplementedError) as error:
        words = (str(error) or type(error).__name__).partition("\n")[0][:200]
        raise MalformedBodyError(f"expected an Arrow IPC stream: {words}") from error


def _check_messages(body: bytes) -> None:
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    for count, message in enumerate(messages):
        if count >= _MOST_MESSAGES:
            raise MalformedBodyError(
                f"expected at most {_MOST_MESSAGES} messages in an Arrow stream, got more; "
                "write larger record batches"
            )
        if message.type not in ("schema", "record batch", "dictionary"):
            raise MalformedBodyError(
                f"expected a schema, dictionaries and record batches, got a {message.type}"
            )
        try:
            _check_metadata(message.type, memoryview(message.metadata))
        except struct.error as error:
            raise MalformedBodyError(f"expected an Arrow IPC stream: {error}") from error


def _check_metadata(kind: str, metadata: memoryview) -> None:
    """Refuse buffers with a compression of their own; pyarrow has no way to ask for it.

    A message's metadata are a FlatBuffer, whose offsets pyarrow has checked when it opened it.
    Messages before version 5 may state the compression among their custom metadata, which pyarrow
    obeys, so neither is read.
    """
    (root,) = struct.unpack_from("<I", metadata, 0)
    place = _field(metadata, root, _MESSAGE_VERSION)
    (version,) = struct.unpack_from("<h", metadata, place) if place else (0,)
    if version != _VERSION_5:
        raise MalformedBodyError(
            f"expected messages of Arrow's metadata version 5, got {version + 1}; write the stream "
            "with Arrow 1.0 or later"
        )
    if kind == "schema":
        return
    if _field(metadata, root, _MESSAGE_METADATA):
        raise MalformedBodyError(
            "expected record batches without custom metadata; what is asked stands in the schema's"
        )
    batch = _table_at(metadata, _field(metadata, root, _MESSAGE_HEADER))
    if kind == "dictionary":
        batch = _table_at(metadata, _field(metadata, batch, _DICTIONARY_BATCH))
    if _field(metadata, batch, _BATCH_COMPRESSION):
        raise MalformedBodyError(
            "expected record batches without compression of their own; compress the whole body and "
            "name the coding in Content-Encoding"
        )


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Where a field of a FlatBuffer's table lies, 0 where the table has none."""
    (to_vtable,) = struct.unpack_from("<i", metadata, table)
    vtable = table - to_vtable
    if vtable < 0:
        raise struct.error("a table has no vtable")
    (vtable_bytes,) = struct.unpack_from("<H", metadata, vtable)
    slot = 4 + 2 * number
    if slot + 2 > vtable_bytes:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, vtable + slot)
    return table + int(offset) if offset else 0


def _table_at(metadata: memoryview, place: int) -> int:
    """The table that the offset at a place leads to."""
    if not place:
        raise struct.error("a message has no header")
    (offset,) = struct.unpack_from("<I", metadata, place)
    return place + int(offset)


def _table(body: bytes, most_rows: int) -> pa.Table:
    batches = []
    rows = 0
    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        if len(reader.schema) > _MOST_COLUMNS:
            raise MalformedBodyError(
                f"expected at most {_MOST_COLUMNS} columns, got {len(reader.schema)}"
            )
        for batch in reader:
            rows += batch.num_rows
            if rows > most_rows:
                raise TooLargeError(
                    f"expected at most {most_rows} rows in one request, got more; divide them "
                    "over several"
                )
            batch.validate(full=True)
            batches.append(batch)
        table = pa.Table.from_batches(batches, reader.schema)
    return table if len(batches) == 1 else table.unify_dictionaries().combine_chunks()
