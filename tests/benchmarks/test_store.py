"""The benchmark of the store, at sizes that take no time."""

from __future__ import annotations

from benchmarks import store


def test_all_figures_of_the_store_are_measured(monkeypatch):
    monkeypatch.setattr(store, "CELLS", (20, 50))
    monkeypatch.setattr(store, "WINDOW_READS", 100)
    figures = {figure.id: figure for figure in store.measure(True)}
    assert list(figures) == [
        "store.merge_100k_seconds",
        "store.window_microseconds",
        "store.bytes_ratio",
        "store.linear.20_cells",
        "store.linear.50_cells",
    ]
    assert figures["store.linear.50_cells"].detail["samples_per_period"] == 200
    assert figures["store.window_microseconds"].value > 0
