"""Our service with a predictor that costs nothing: `python -m benchmarks.serving.trivial_service`.

Settings come from the environment, as those of `python -m service`.
"""

from __future__ import annotations

import sys

from benchmarks.serving.trivial import RepeatLast
from service.server import serve
from service.settings import load_settings

if __name__ == "__main__":
    sys.exit(serve(load_settings(), predictor=RepeatLast()))
