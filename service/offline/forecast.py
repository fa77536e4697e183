"""The main job offline: files in, forecasts out, in batches with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.history import Selection, load_windows
from kpi.window import KpiWindow
from model.holidays import check_country
from model.predictor import Forecast, Predictor

CHUNK_WINDOWS = 64
DEFAULT_HORIZON_STEPS = 24
DEFAULT_LEVELS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class ForecastJob:
    """What to forecast.

    Attributes:
        paths: Files and directories with the history.
        selection: What to take from them.
        horizon: Steps to forecast.
        levels: Quantile levels.
    """

    paths: tuple[Path, ...]
    selection: Selection = field(default_factory=Selection)
    horizon: int = DEFAULT_HORIZON_STEPS
    levels: tuple[float, ...] = DEFAULT_LEVELS


@dataclass(frozen=True)
class ForecastResult:
    """What was forecast, from what.

    Attributes:
        windows: One a cell.
        forecasts: One a window, in the same order.
        unreadable: Files that could not be read.
        units: Unit of each KPI by its name.
    """

    windows: Sequence[KpiWindow]
    forecasts: Sequence[Forecast]
    unreadable: Sequence[UnreadableFileError]
    units: Mapping[str, str] = field(default_factory=dict)


def run_forecast(
    job: ForecastJob,
    predictor: Predictor,
    catalogue: Catalogue,
    on_progress: Callable[[int, int], None] | None = None,
) -> ForecastResult:
    """Read, forecast and return everything.

    Args:
        job: What to forecast.
        predictor: Who forecasts.
        catalogue: KPI catalogue.
        on_progress: Called with the cells done and in all.

    Raises:
        UnreadableFileError: A path does not exist, or nothing of it could be read.
        NothingSelectedError: No cell is left to forecast.
        ModelError: No holidays are known of the selection's country.
        HorizonError: The horizon is out of the model's range.
        LevelError: The levels are out of the model's range.
    """
    # Nothing to forecast yet: what is impossible is refused before hours of reading.
    predictor.predict([], job.horizon, job.levels)
    check_country(job.selection.country)
    unreadable: list[UnreadableFileError] = []
    windows = load_windows(job.paths, job.selection, catalogue, unreadable.append)
    forecasts: list[Forecast] = []
    for begin in range(0, len(windows), CHUNK_WINDOWS):
        chunk = windows[begin : begin + CHUNK_WINDOWS]
        forecasts += predictor.predict(chunk, job.horizon, job.levels)
        if on_progress:
            on_progress(len(forecasts), len(windows))
    names = {name for window in windows for name in window.kpis}
    units = {name: catalogue.resolve(name).unit for name in names}
    return ForecastResult(windows, forecasts, unreadable, units)
