"""What a checkpoint is compared with: one opponent a file, each a `model.predictor.Predictor`.

Those that learn are given what lies before the first origin of every cell; those that cannot answer
for a window let its last value answer, and count it.
"""

from training.opponents.errors import MissingExtraError, UnknownOpponentError
from training.opponents.registry import DEFAULT_OPPONENTS, OPPONENTS, make_opponents

__all__ = [
    "DEFAULT_OPPONENTS",
    "OPPONENTS",
    "MissingExtraError",
    "UnknownOpponentError",
    "make_opponents",
]
