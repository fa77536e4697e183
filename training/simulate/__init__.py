"""A simulated network that writes PM files: the world behind `rancast simulate`.

`options.py` says what can be chosen, `network.py` holds the truth, `faults.py` what goes wrong,
`dialects/` how it is written down, and `run.py` puts them together.
"""

from training.simulate.errors import DirectoryError, OptionError, SimulateError
from training.simulate.faults import FaultRates
from training.simulate.network import NetworkSpec
from training.simulate.options import SimulateOptions
from training.simulate.run import Progress, Summary, simulate
from training.simulate.stop import Stop

__all__ = [
    "DirectoryError",
    "FaultRates",
    "NetworkSpec",
    "OptionError",
    "Progress",
    "SimulateError",
    "SimulateOptions",
    "Stop",
    "Summary",
    "simulate",
]
