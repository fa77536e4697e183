"""Scrapes: the text of all metrics, made once for all who ask at a time.

Whoever reaches the port may scrape, as often as it likes. However many do, one thread is taken at a
time, and none waits for what it shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Scrapes:
    """Makes the text of the metrics; used from the event loop only.

    Args:
        exposition: Makes it, on another thread.
    """

    def __init__(self, exposition: Callable[[], bytes]) -> None:
        self._exposition = exposition
        self._refreshments: list[Callable[[], Awaitable[None]]] = []
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[bytes] | None = None

    def before(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Await this before each text is made; it has to be done soon."""
        self._refreshments.append(refresh)

    async def text(self) -> bytes:
        """All families as they are now; whoever asks while one text is made shares the next."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._make(), name="scrape")
        return await asyncio.shield(self._next)

    async def _make(self) -> bytes:
        async with self._turn:
            # Whoever asks from now on may know of more than this text will show.
            self._next = None
            for refresh in self._refreshments:
                await refresh()
            return await asyncio.to_thread(self._exposition)
