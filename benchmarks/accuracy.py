"""Accuracy on real cells that no checkpoint has seen, against seasonal-naive forecasts.

The tasks, windows and metrics are those of a yardstick that lies beside the checkout (three public
traces: hourly LTE volume, two-minute PRB use, per-second downlink rate); where it is missing the
benchmark says so and measures nothing. Every opponent gets the quantiles of its own residuals on
the training windows; the forecaster is zero-shot.

    python -m benchmarks.accuracy [--quick] [--json] [--record CHECKPOINT]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Result, Unavailable, main
from kpi.catalogue import load_catalogue
from kpi.window import KpiWindow
from model.checkpoint import load_checkpoint, save_checkpoint
from model.predictor import Predictor
from model.pretrained import default_checkpoint_path
from model.transformer import TransformerPredictor

YARDSTICK = Path(__file__).resolve().parents[2] / "shared" / "tools" / "yardstick.py"
TASKS = {
    "lte_hourly": "traffic_volume_mb",
    "barcelona_2min": "RRU.PrbTotDl",
    "tractor_1s": "DRB.UEThpDl",
}


def load_yardstick() -> ModuleType:
    """The yardstick module.

    Raises:
        Unavailable: It does not lie beside the checkout.
    """
    if not YARDSTICK.is_file():
        raise Unavailable("the yardstick and its traces do not lie beside the checkout")
    spec = importlib.util.spec_from_file_location("yardstick", YARDSTICK)
    if spec is None or spec.loader is None:
        raise Unavailable(f"{YARDSTICK.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["yardstick"] = module
    spec.loader.exec_module(module)
    return module


def to_windows(task: Any, test: Any, kpi: str) -> list[KpiWindow]:
    """The yardstick's contexts as windows; gaps stay gaps."""
    step_ms = task.step_seconds * 1000
    origins_ms = test.start.astype("datetime64[ms]").astype(np.int64)
    steps = test.context.shape[1]
    return [
        KpiWindow(
            cell=str(series),
            kpis=(kpi,),
            start_ms=int(origin) - steps * step_ms,
            step_ms=step_ms,
            values=context[None].astype(np.float32),
        )
        for series, origin, context in zip(test.series, origins_ms, test.context, strict=True)
    ]


def evaluate(predictor: Predictor, task_name: str) -> dict[str, float]:
    """The yardstick's scores of `predictor` on one task."""
    yardstick = load_yardstick()
    task = yardstick.load(task_name)
    test = yardstick.windows(task, "test")
    windows = to_windows(task, test, TASKS[task_name])
    levels = tuple(float(level) for level in yardstick.LEVELS)
    forecasts = predictor.predict(windows, task.horizon, levels)
    quantiles: NDArray[np.float64] = np.stack([f.values[0] for f in forecasts]).astype(np.float64)
    scores: dict[str, float] = yardstick.score(task, test, np.clip(quantiles, 0, None))
    return scores


def naive_scores(task_name: str) -> dict[str, dict[str, float]]:
    """Scores of the seasonal-naive forecasts that the yardstick knows for a task."""
    yardstick = load_yardstick()
    task = yardstick.load(task_name)
    train, test = yardstick.windows(task, "train"), yardstick.windows(task, "test")
    seasons = {"seasonal naive": task.season, "last value": 1}
    if task.week:
        seasons["weekly naive"] = task.week
    return {
        name: yardstick.score(
            task,
            test,
            yardstick.with_residual_quantiles(
                task, train, test, yardstick.seasonal_naive(task, season)
            ),
        )
        for name, season in seasons.items()
    }


def measure(quick: bool, checkpoint_path: Path | None = None) -> Iterator[Result]:
    """One result a task: WQL as a ratio to the best naive forecast."""
    del quick  # every task ends within seconds
    path = checkpoint_path or default_checkpoint_path()
    predictor = TransformerPredictor(load_checkpoint(path), load_catalogue())
    for task_name in TASKS:
        ours = evaluate(predictor, task_name)
        naive = naive_scores(task_name)
        best = min(naive, key=lambda name: naive[name]["WQL"])
        yield Result(
            id=f"accuracy.{task_name}.wql",
            value=ours["WQL"] / naive[best]["WQL"],
            unit="ratio",
            opponent=best,
            target=1.0,
            met=ours["WQL"] < naive[best]["WQL"],
            detail={"rancast": ours, **naive},
        )


def record(path: Path) -> str:
    """Write the scores of a checkpoint, beside the naive ones, into its card.

    Returns:
        The new digest of the file.

    Raises:
        CheckpointError: It is no checkpoint.
        Unavailable: The yardstick does not lie beside the checkout.
    """
    evaluation = {result.id.split(".")[1]: dict(result.detail) for result in measure(False, path)}
    return save_checkpoint(replace(load_checkpoint(path), evaluation=evaluation), path)


def run(arguments: Sequence[str] | None = None) -> None:
    """Measure, or with `--record FILE` write what was measured into a checkpoint's card."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--record", type=Path)
    options, others = parser.parse_known_args(arguments)
    if options.record is None:
        main("accuracy", measure, others)
    else:
        sys.stdout.write(f"{options.record} {record(options.record)}\n")


if __name__ == "__main__":
    run()
