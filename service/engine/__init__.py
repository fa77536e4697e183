"""From windows to forecasts, in batches, before their deadline, by the best rung that fits."""

from service.engine.engine import BATCH_LIMIT, Engine
from service.engine.job import Answer, Ask, Priority
from service.engine.ladder import Ladder, Step
from service.engine.worker import Worker

__all__ = ["BATCH_LIMIT", "Answer", "Ask", "Engine", "Ladder", "Priority", "Step", "Worker"]
