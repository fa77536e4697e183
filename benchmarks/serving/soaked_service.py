"""Our service, which counts its tasks when told to: `python -m benchmarks.serving.soaked_service`.

Tasks and the threads of the event loop's pool are told apart from inside only. On SIGUSR1 a line
`soak tasks=… pool=…` is written to standard error; all else is `python -m service`.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
from types import FrameType

from service.server import serve
from service.settings import load_settings

_POOLS = ("asyncio_", "uvloop_")


def _count(_number: int, _frame: FrameType | None) -> None:
    gc.collect()  # what nobody holds any more is no growth
    tasks = len(asyncio.all_tasks(asyncio.get_running_loop()))
    pool = sum(thread.name.startswith(_POOLS) for thread in threading.enumerate())
    sys.stderr.write(f"soak tasks={tasks} pool={pool}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _count)
    sys.exit(serve(load_settings()))
