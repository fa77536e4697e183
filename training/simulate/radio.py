"""From offered load to measurements: what a cell serves, and what that does to its users.

Resource blocks saturate, users share what is left, queues grow without bound near the limit,
connections fail more often there, and power follows the load: the KPIs of one cell move together
because they have one cause.

Axis legend: K measurements (the order of `measurements.MEASUREMENTS`), n periods.
"""

from __future__ import annotations

import numpy as np

from training.simulate.cell import Cell
from training.simulate.load import Instants, offered_load
from training.simulate.local_time import MS_PER_HOUR
from training.simulate.measurements import MEASUREMENTS
from training.simulate.noise import FloatArray, Stream, normals, slow_normal

# Common channels occupy some blocks of an empty cell; a scheduler never fills the last ones.
_EMPTY_PRB_PCT = 1.8
_FULL_PRB_PCT = 99.6
_UPLINK_CAPACITY_RATIO = 0.22
_WIDTH = 12


def measure(seed: int, cell: Cell, instants: Instants, period_ms: int) -> FloatArray:
    """All measurements of one cell over consecutive periods.

    Returns:
        (K, n), rounded to the decimals that each measurement is reported with.
    """
    n = len(instants.time_ms)
    z = normals(seed, Stream.RADIO, cell.index, instants.first, n, _WIDTH).T  # (_WIDTH, n)
    period_seconds = period_ms / 1000
    load = offered_load(seed, cell, instants)
    uplink_load = load * cell.profile.uplink_ratio * np.exp(0.08 * z[0])
    served, uplink_served = served_ratio(load), served_ratio(uplink_load)
    radio = np.exp(
        0.08 * slow_normal(seed, Stream.EFFICIENCY, cell.index, instants.time_ms, 8 * MS_PER_HOUR)
        + 0.02 * z[1]
    )
    uplink_mbit_s = cell.capacity_mbit_s * _UPLINK_CAPACITY_RATIO
    active = _active_users(served, z[2])
    connected = np.maximum(
        cell.profile.users_at_capacity
        * (0.04 + 0.96 * np.minimum(load, 2.0) ** 0.9)
        * np.exp(0.04 * z[3]),
        1.2 * active,
    )
    attempts = _counted(connected * period_seconds / cell.profile.session_seconds, z[4])
    lost_ratio = np.clip(
        (0.002 + 0.5 * np.maximum(served - 0.85, 0.0) ** 1.5) * np.exp(0.3 * z[5]), 0.0, 0.5
    )
    power_watt = np.round(
        (cell.idle_watt + (cell.full_watt - cell.idle_watt) * served) * np.exp(0.01 * z[6]), 1
    )
    by_name = {
        "RRU.PrbTotDl": _prb_pct(served),
        "RRU.PrbTotUl": _prb_pct(uplink_served),
        "DRB.PdcpSduVolumeDL": served * cell.capacity_mbit_s * radio * period_seconds,
        "DRB.PdcpSduVolumeUL": uplink_served * uplink_mbit_s * radio * period_seconds,
        "DRB.UEThpDl": 1000 * cell.capacity_mbit_s * radio * _left_for_one(served, z[7]),
        "DRB.UEThpUl": 1000 * uplink_mbit_s * radio * _left_for_one(uplink_served, z[8]),
        "DRB.MeanActiveUeDl": active,
        "DRB.MaxActiveUeDl": np.ceil(np.round(active, 2) * (1.6 + 0.4 * np.abs(z[9]))),
        "DRB.MeanActiveUeUl": _active_users(uplink_served, z[10]),
        "RRC.ConnMean": connected,
        "RRC.ConnMax": np.ceil(np.round(connected, 2) * (1.08 + 0.1 * np.abs(z[11]))),
        "RRC.ConnEstabAtt": attempts,
        "RRC.ConnEstabSucc": attempts - np.floor(attempts * lost_ratio + 0.5),
        "PEE.AvgPower": power_watt,
        "PEE.Energy": power_watt * (period_ms / MS_PER_HOUR) / 1000,
    }
    return np.stack([np.round(by_name[m.name], m.decimals) for m in MEASUREMENTS.values()])


def served_ratio(load: FloatArray) -> FloatArray:
    """What a cell serves of an offered load: all of little, never more than it has; any shape."""
    served: FloatArray = load / (1.0 + load**4) ** 0.25
    return served


def _prb_pct(served: FloatArray) -> FloatArray:
    return _EMPTY_PRB_PCT + (_FULL_PRB_PCT - _EMPTY_PRB_PCT) * served


def _left_for_one(served: FloatArray, z: FloatArray) -> FloatArray:
    """Share of the cell's throughput that one user sees, (n,)."""
    share: FloatArray = (0.015 + 0.6 * (1.0 - served) ** 1.1) * np.exp(0.05 * z)
    return share


def _active_users(served: FloatArray, z: FloatArray) -> FloatArray:
    """Users with data in the buffer: a processor-sharing queue, bounded at the limit, (n,)."""
    users: FloatArray = 1.5 * served / (1.03 - served) * np.exp(0.05 * z)
    return users


def _counted(mean: FloatArray, z: FloatArray) -> FloatArray:
    """A count of independent happenings with this mean (normal approximation of Poisson), (n,)."""
    count: FloatArray = np.maximum(np.rint(mean + np.sqrt(mean) * z), 0.0)
    return count
