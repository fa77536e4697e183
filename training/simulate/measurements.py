"""The measurements that a simulated cell reports, as TS 28.552 defines them.

Values are rounded to `decimals` once, in the network: what a file says in decimal digits and what
the simulator holds is then the same number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement.

    Attributes:
        name: TS 28.552 spelling.
        clause: Where TS 28.552 defines it.
        decimals: Digits after the point that are reported.
        additive: The value grows with the time that was measured (counts, volumes, energy), so a
            period that was cut short reports less of it.
        central: Reported by the central unit (NRCellCU) where an implementation splits the two.
    """

    name: str
    clause: str
    decimals: int
    additive: bool = False
    central: bool = False


_ALL = (
    Measurement("RRU.PrbTotDl", "5.1.1.2.1", 2),
    Measurement("RRU.PrbTotUl", "5.1.1.2.2", 2),
    Measurement("DRB.PdcpSduVolumeDL", "5.1.2.1.1.1", 3, additive=True, central=True),
    Measurement("DRB.PdcpSduVolumeUL", "5.1.2.1.2.1", 3, additive=True, central=True),
    Measurement("DRB.UEThpDl", "5.1.1.3.1", 1),
    Measurement("DRB.UEThpUl", "5.1.1.3.3", 1),
    Measurement("DRB.MeanActiveUeDl", "5.1.1.23.1", 2),
    Measurement("DRB.MaxActiveUeDl", "5.1.1.23.2", 0),
    Measurement("DRB.MeanActiveUeUl", "5.1.1.23.3", 2),
    Measurement("RRC.ConnMean", "5.1.1.4.1", 2, central=True),
    Measurement("RRC.ConnMax", "5.1.1.4.2", 0, central=True),
    Measurement("RRC.ConnEstabAtt", "5.1.1.15.1", 0, additive=True, central=True),
    Measurement("RRC.ConnEstabSucc", "5.1.1.15.2", 0, additive=True, central=True),
    Measurement("PEE.AvgPower", "5.1.1.19.2.1", 1),
    Measurement("PEE.Energy", "5.1.1.19.3", 6, additive=True),
)

MEASUREMENTS: Mapping[str, Measurement] = {m.name: m for m in _ALL}

POSITION: Mapping[str, int] = {m.name: position for position, m in enumerate(_ALL)}
