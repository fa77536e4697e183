"""A small HTTP server on a thread of its own, faithful in what the load generator needs of one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Answer = Callable[["Small", bytes, bytes], Awaitable[bytes | None]]


@dataclass
class Small:
    """The server.

    Attributes:
        port: Where it listens.
        heads: Of the requests that came.
        under_way: Requests without an answer, now and at most.
    """

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    connections: int = 0


def response(body: bytes = b"{}", status: int = 200, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} whatever", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def plain(_: Small, __: bytes, ___: bytes) -> bytes | None:
    return response()


@contextmanager
def small_server(answer: Answer = plain) -> Iterator[Small]:
    """Answer until the block ends; an answer of None closes the connection instead."""
    small, ready, stop = Small(), threading.Event(), None
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        small.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].partition(b"\r")[0]
                body = await reader.readexactly(int(length or b"0"))
                small.heads.append(head)
                small.under_way += 1
                small.most_under_way = max(small.most_under_way, small.under_way)
                written = await answer(small, head, body)
                small.under_way -= 1
                if written is None:
                    break
                writer.write(written)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def run() -> None:
        nonlocal stop
        stop = asyncio.Event()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        small.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        await settle()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await settle()

    async def settle() -> None:
        """Let connections that were just taken or closed come to their end."""
        for _ in range(100):
            await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        assert ready.wait(30)
        yield small
    finally:
        assert stop is not None
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
