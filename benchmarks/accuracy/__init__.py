"""Accuracy on real cells, against LightGBM, an LSTM, and the forecaster itself with less to go by.

The tasks, windows and metrics are those of a yardstick that lies beside the checkout (three public
traces: hourly LTE volume, two-minute PRB use, per-second downlink rate); where it is missing the
benchmark says so and measures nothing.

    python -m benchmarks.accuracy [--quick] [--json] [--reuse] [--checkpoints DIR]
    python -m benchmarks.accuracy --record CHECKPOINT | --record-seed CHECKPOINT
    python -m benchmarks.accuracy --train-lstm | --train-positions

A full run measures every checkpoint at hand and writes one score sheet for each,
`benchmarks/results/accuracy-NAME.json`. Of those that are not at hand it reads the sheet, and each
figure says which seeds were measured and which were read. `--quick` measures what takes seconds of
the shipped checkpoint.
"""

from benchmarks.accuracy.command import measure, record, run
from benchmarks.accuracy.exam import TASKS, Exam, evaluate, load_yardstick, to_windows
from benchmarks.accuracy.opponents import naive_scores

__all__ = [
    "TASKS",
    "Exam",
    "evaluate",
    "load_yardstick",
    "measure",
    "naive_scores",
    "record",
    "run",
    "to_windows",
]
