"""The cells and gNBs of a simulated network, drawn once from the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.simulate.noise import Stream, uniforms
from training.simulate.profiles import Profile

# Resource blocks of the common NR carriers (TS 38.101-1 table 5.3.2-1): 20, 40, 60, 80, 100 MHz.
_CARRIERS_PRB = (51, 106, 162, 217, 273)
_GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Cell:
    """One NR cell; what does not change while the simulation runs.

    Attributes:
        index: Position in the network, from 0; keys the cell's randomness.
        gnb: Position of its gNB, from 0.
        local_id: Number within the gNB, from 1.
        profile: Class of the cell.
        carrier_prb: Resource blocks of the carrier.
        capacity_mbit_s: Downlink throughput at full load and usual radio conditions.
        peak_load_ratio: Load of the busy hour.
        shift_hours: How much later than the class its day runs.
        upgrade_phase_ratio: Where the cell stands between two capacity upgrades, 0 to 1.
        idle_watt: Power without traffic.
        full_watt: Power at full load.
    """

    index: int
    gnb: int
    local_id: int
    profile: Profile
    carrier_prb: int
    capacity_mbit_s: float
    peak_load_ratio: float
    shift_hours: float
    upgrade_phase_ratio: float
    idle_watt: float
    full_watt: float


@dataclass(frozen=True, slots=True)
class Gnb:
    """One gNB and its cells; every file comes from one gNB.

    Attributes:
        index: Position in the network, from 0.
        name: Name of the network element, for example `GNB-1`.
        cells: Its cells.
    """

    index: int
    name: str
    cells: tuple[Cell, ...]


def draw_gnbs(
    seed: int, cells: int, cells_per_gnb: int, profiles: Sequence[Profile]
) -> tuple[Gnb, ...]:
    """Draw a network; a larger one begins with the cells of a smaller one of the same seed."""
    drawn = [_draw_cell(seed, index, cells_per_gnb, profiles) for index in range(cells)]
    return tuple(
        Gnb(
            index=gnb,
            name=f"GNB-{gnb + 1}",
            cells=tuple(drawn[gnb * cells_per_gnb : (gnb + 1) * cells_per_gnb]),
        )
        for gnb in range(-(-cells // cells_per_gnb))
    )


def _draw_cell(seed: int, index: int, cells_per_gnb: int, profiles: Sequence[Profile]) -> Cell:
    unit = [float(u) for u in uniforms(seed, Stream.CELL, index, 0, 1, 8)[0]]
    # A site serves one place: its sectors share the class. Golden-ratio steps spread the classes
    # over small networks too, where independent draws would often leave some out.
    gnb = index // cells_per_gnb
    place = (float(uniforms(seed, Stream.SITE, 0, 0, 1, 1)[0, 0]) + gnb * _GOLDEN_RATIO) % 1.0
    weights = np.cumsum([profile.weight for profile in profiles])
    profile = profiles[int(np.searchsorted(weights / weights[-1], place))]
    carrier_prb = _CARRIERS_PRB[int(unit[0] * len(_CARRIERS_PRB))]
    idle_watt = (0.35 + 0.2 * unit[5]) * (180 + 2.2 * carrier_prb)
    return Cell(
        index=index,
        gnb=gnb,
        local_id=index % cells_per_gnb + 1,
        profile=profile,
        carrier_prb=carrier_prb,
        # 180 kHz at 15 kHz subcarriers, twice that at the 30 kHz of wide carriers, times bit/s/Hz.
        capacity_mbit_s=carrier_prb * (0.36 if carrier_prb > 106 else 0.18) * (3.5 + 4 * unit[1]),
        peak_load_ratio=_between(profile.peak_load_ratio, unit[2]),
        shift_hours=1.4 * (unit[3] - 0.5),
        upgrade_phase_ratio=unit[4],
        idle_watt=idle_watt,
        full_watt=idle_watt * (1.8 + 0.6 * unit[6]),
    )


def _between(limits: tuple[float, float], ratio: float) -> float:
    return limits[0] + (limits[1] - limits[0]) * ratio
