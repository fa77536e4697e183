"""Counters as an Ericsson RadioNode names them.

Means are not reported as such: a sum of samples and their number are (`…Sum…`, `…Samp`), PRB use is
a pair of used and available resource block symbols, throughput is a pair of volume and time, and
distributions are comma lists. Objects are split between the distributed and the central unit, and
energy is that of a meter. A missing value is blank.

Axis legend: n periods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from training.simulate.cell import Cell, Gnb
from training.simulate.dialects.counter_table import (
    CounterTable,
    Text,
    central_unit,
    column,
    distributed_unit,
    table,
)
from training.simulate.noise import FloatArray
from training.simulate.report import Report

_BLANK = " "
_SAMPLE_SECONDS = 5
_SYMBOLS_PER_SECOND = 14 * 2000
_BITS_PER_MBIT = 1_000_000
_MS_PER_SECOND = 1000
_MIMO_USERS = 8
_DISTRIBUTION = "pmMacRBSymUsedPdschMimoUserDistr"

_Values = tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    """How one measurement is told in counters.

    Attributes:
        group: Key of `_GROUPS`.
        counters: Names of the counters.
        convert: From values (n,), cell and period in seconds to one array of whole numbers each.
    """

    group: str
    counters: tuple[str, ...]
    convert: Callable[[FloatArray, Cell, float], _Values]


def _scaled(factor: float) -> Callable[[FloatArray, Cell, float], _Values]:
    def convert(values: FloatArray, _cell: Cell, _period_seconds: float) -> _Values:
        return (np.rint(values * factor),)

    return convert


def _sum_and_samples(values: FloatArray, _cell: Cell, period_seconds: float) -> _Values:
    samples = np.full_like(values, max(1.0, period_seconds // _SAMPLE_SECONDS))
    return np.rint(values * samples), samples


def _used_and_available(values: FloatArray, cell: Cell, period_seconds: float) -> _Values:
    available = np.full_like(values, cell.carrier_prb * _SYMBOLS_PER_SECOND * period_seconds)
    return np.rint(values / 100 * available), available


def _volume_and_time(values: FloatArray, _cell: Cell, period_seconds: float) -> _Values:
    """Kilobit in seconds are bits in milliseconds; the time is that of a busy tenth."""
    time_ms = np.full_like(values, np.rint(0.1 * period_seconds * _MS_PER_SECOND))
    return np.rint(values * time_ms), time_ms


_RULES: Mapping[str, _Rule] = {
    "RRU.PrbTotDl": _Rule(
        "DU", ("pmMacRBSymUsedPdschTypeA", "pmMacRBSymAvailDl"), _used_and_available
    ),
    "RRU.PrbTotUl": _Rule(
        "DU", ("pmMacRBSymUsedPuschTypeA", "pmMacRBSymAvailUl"), _used_and_available
    ),
    "DRB.PdcpSduVolumeDL": _Rule("DU", ("pmMacVolDl",), _scaled(_BITS_PER_MBIT)),
    "DRB.PdcpSduVolumeUL": _Rule("DU", ("pmMacVolUl",), _scaled(_BITS_PER_MBIT)),
    "DRB.UEThpDl": _Rule("DU", ("pmMacVolDlDrb", "pmMacTimeDlDrb"), _volume_and_time),
    "DRB.UEThpUl": _Rule("DU", ("pmMacVolUlResUe", "pmMacTimeUlResUe"), _volume_and_time),
    "DRB.MeanActiveUeDl": _Rule("DU", ("pmActiveUeDlSum", "pmActiveUeDlSamp"), _sum_and_samples),
    "DRB.MaxActiveUeDl": _Rule("DU", ("pmActiveUeDlMax",), _scaled(1)),
    "DRB.MeanActiveUeUl": _Rule("DU", ("pmActiveUeUlSum", "pmActiveUeUlSamp"), _sum_and_samples),
    "RRC.ConnMean": _Rule("CU", ("pmRrcConnLevelSumSa", "pmRrcConnLevelSamp"), _sum_and_samples),
    "RRC.ConnMax": _Rule("CU", ("pmRrcConnLevelMaxSa",), _scaled(1)),
    "RRC.ConnEstabAtt": _Rule("CU", ("pmRrcConnEstabAtt",), _scaled(1)),
    "RRC.ConnEstabSucc": _Rule("CU", ("pmRrcConnEstabSucc",), _scaled(1)),
    "PEE.Energy": _Rule("METER", ("pmConsumedEnergy",), _scaled(1000)),
}

KPIS = frozenset(_RULES)
"""Measurements that can be told in these counters."""


def _energy_meter(gnb: Gnb, cell: Cell) -> str:
    return (
        f"ManagedElement={gnb.name},Equipment=1,FieldReplaceableUnit=RRU-{cell.local_id},"
        "EnergyMeter=1"
    )


_GROUPS: Mapping[str, tuple[str, Callable[[Gnb, Cell], str]]] = {
    "CU": ("PM=1,PmGroup=NRCellCU_GNBCUCP", central_unit),
    "DU": ("PM=1,PmGroup=NRCellDU_GNBDU", distributed_unit),
    "METER": ("PM=1,PmGroup=EnergyMeter", _energy_meter),
}


def project(report: Report) -> tuple[CounterTable, ...]:
    """The report in Ericsson's counters; measurements without a counter are left out."""
    tables = []
    for group, (meas_info_id, object_name) in _GROUPS.items():
        kpis = [k for k, name in enumerate(report.kpis) if _is_in(name, group)]
        if not kpis:
            continue
        counters = [c for k in kpis for c in _RULES[report.kpis[k]].counters]
        has_distribution = "pmMacRBSymUsedPdschTypeA" in counters
        columns = []
        for c, cell in enumerate(report.gnb.cells):
            of_object = [text for k in kpis for text in _columns(report, c, k, cell)]
            if has_distribution:
                of_object.append(_distribution(of_object[counters.index(_used_dl())]))
            columns.append(of_object)
        names = [object_name(report.gnb, cell) for cell in report.gnb.cells]
        if has_distribution:
            counters.append(_DISTRIBUTION)
        tables.append(table(meas_info_id, counters, names, columns))
    return tuple(tables)


def _is_in(name: str, group: str) -> bool:
    rule = _RULES.get(name)
    return rule is not None and rule.group == group


def _used_dl() -> str:
    return _RULES["RRU.PrbTotDl"].counters[0]


def _columns(report: Report, c: int, k: int, cell: Cell) -> list[list[Text]]:
    values, omitted = report.values[c, k], report.omitted[c, k]
    converted = _RULES[report.kpis[k]].convert(values, cell, report.period_ms / 1000)
    gaps = np.isnan(values)
    return [column(np.where(gaps, np.nan, array), omitted, 0, _BLANK) for array in converted]


def _distribution(used: list[Text]) -> list[Text]:
    """Symbols by the number of users that share them, halving from one to the next."""
    return [text if text is None or text == _BLANK else _halved(int(text)) for text in used]


def _halved(total: int) -> str:
    parts = []
    for _ in range(_MIMO_USERS - 1):
        parts.append(total - total // 2)
        total //= 2
    return ",".join(map(str, [*parts, total]))
