"""The shipped model as our service runs it, for servers of others: same weights, same code."""

from __future__ import annotations

from kpi.catalogue import load_catalogue
from model.predictor import Predictor
from service.loading import load_model, warm_up_windows
from service.settings import Compiled, Settings


def shipped_predictor() -> Predictor:
    """The rung `full` of the checkpoint that ships, on one thread, compiled where ours is; warm."""
    settings = Settings(compiled=Compiled.CACHED, threads=1)
    predictor = load_model(settings.model_path, settings, load_catalogue()).ladder.predictor
    for window in warm_up_windows(settings.history_steps):
        predictor.predict([window], predictor.max_horizon, predictor.level_range)
    return predictor
