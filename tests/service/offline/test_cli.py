"""What the terminal shows of offline forecasts."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from kpi.catalogue import load_catalogue
from kpi.window import KpiWindow
from model.baseline import SeasonalBaseline
from service.offline.cli import MAX_ROWS, forecast_overview


def overview(cells: int, name: str = "Cell {}", values: float = 5.0) -> str:
    windows = [
        KpiWindow(name.format(index), ("Load",), 0, 3_600_000, np.full((1, 48), values, np.float32))
        for index in range(cells)
    ]
    forecasts = SeasonalBaseline(load_catalogue()).predict(windows, 3, (0.1, 0.5, 0.9))
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(forecast_overview(windows, forecasts))
    return console.export_text()


def test_names_with_brackets_are_shown_as_they_are():
    assert "Cell [north] 0" in overview(1, "Cell [north] {}")


def test_a_long_list_is_cut_and_says_how_to_get_all():
    text = overview(MAX_ROWS + 5)
    assert f"the first {MAX_ROWS} of {MAX_ROWS + 5} lines" in text
    assert f"Cell {MAX_ROWS - 1}" in text
    assert f"Cell {MAX_ROWS} " not in text


def test_a_kpi_never_seen_has_no_last_value():
    text = overview(1, values=np.nan)
    assert "│    - │" in text
    assert "-  -  -" in text
    assert "nan" not in text
