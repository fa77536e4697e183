"""Chunks of origins, tallied here or by processes of their own, handed back in order.

A worker keeps nothing between chunks: it reads the forecasters from a file that all share, so a
crash leaves no state behind and starting by `spawn` works wherever Python runs.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from model.predictor import Predictor
from training.backtest.config import BacktestConfig
from training.backtest.tally import Cut, Tally, tally

WAITING_CHUNKS_PER_JOB = 3
"""Chunks in flight: enough that no worker waits, few enough that memory stays bounded."""

Chunk = Sequence[Cut]


def tallies(
    predictors: Sequence[Predictor],
    chunks: Iterable[Chunk],
    config: BacktestConfig,
    jobs: int,
) -> Iterator[Tally]:
    """Tally every chunk, in order, whatever process does it.

    Args:
        predictors: The forecasters; with more than one job they are pickled.
        chunks: Origins.
        config: What to test.
        jobs: Processes; 1 works in this one.
    """
    if jobs == 1:
        for chunk in chunks:
            with _one_thread():
                part = tally(predictors, chunk, config)
            yield part
        return
    with TemporaryDirectory(prefix="rancast-backtest-") as folder:
        path = Path(folder) / "predictors.pickle"
        path.write_bytes(pickle.dumps(tuple(predictors)))
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
        try:
            yield from _in_order(pool, path, chunks, config, jobs * WAITING_CHUNKS_PER_JOB)
        finally:
            pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor,
    predictors: Path,
    chunks: Iterable[Chunk],
    config: BacktestConfig,
    most_waiting: int,
) -> Iterator[Tally]:
    waiting: deque[Future[Tally]] = deque()
    for chunk in chunks:
        waiting.append(pool.submit(_work, predictors, chunk, config))
        if len(waiting) >= most_waiting:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _work(predictors: Path, chunk: Chunk, config: BacktestConfig) -> Tally:
    """One chunk in a process of its own; only this run's parent can write in the folder."""
    with _one_thread():
        return tally(pickle.loads(predictors.read_bytes()), chunk, config)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread of the tensor library: sums then do not depend on how many there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
