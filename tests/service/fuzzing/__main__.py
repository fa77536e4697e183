"""Fuzz the decoders for a while: `python -m tests.service.fuzzing SECONDS`.

Rounds of new bodies follow one another until the time is over or one of them finds something; what
it found is shown smallest first, and tried again first in the next run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.service.fuzzing.effort import EXAMPLES_VARIABLE

_ROUND_EXAMPLES = 2_000


def main() -> int:
    """Fuzz; the exit code of the round that failed, or 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", type=float, help="how long; the round that is begun is ended")
    seconds: float = parser.parse_args().seconds
    # An integration run repeats itself; here every round is to be another.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment[EXAMPLES_VARIABLE] = str(_ROUND_EXAMPLES)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    ends_s = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < ends_s:
        code = subprocess.call([*command, str(Path(__file__).parent)], env=environment)
        if code:
            return code
        rounds += 1
    sys.stdout.write(f"{rounds} rounds of {_ROUND_EXAMPLES} bodies for each decoder, no fault\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
