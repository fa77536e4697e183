"""Our service, which counts its tasks and threads when told to: `python -m …soaked_service`.

Tasks are seen from inside only. On SIGUSR1 a line `soak tasks=… threads=…` is written to standard
error; all else is `python -m service`.
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


def _count(_number: int, _frame: FrameType | None) -> None:
    gc.collect()  # what nobody holds any more is no growth
    tasks = len(asyncio.all_tasks(asyncio.get_running_loop()))
    sys.stderr.write(f"soak tasks={tasks} threads={threading.active_count()}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _count)
    sys.exit(serve(load_settings()))
