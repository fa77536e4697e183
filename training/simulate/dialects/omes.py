"""Nokia's OMeS files: one PMSetup a period, one PMMOResult an object, counters as element names.

The interval is in minutes and the offset of the start has seconds, which ISO 8601 does not know.
There is no suspect flag and no text for a missing value: a counter is there or it is not, so a
suspect result is left out too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from xml.sax.saxutils import escape

import numpy as np

from training.simulate.cell import Cell
from training.simulate.naming import NameStyle, file_name
from training.simulate.noise import FloatArray
from training.simulate.report import Report

_BITS_PER_BYTE = 8
_SLOTS_PER_SECOND = 2000
_MS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class _Rule:
    """How one measurement is told: measurement type, counters, and their values."""

    measurement_type: str
    counters: tuple[str, ...]
    convert: Callable[[FloatArray, Cell, float], tuple[FloatArray, ...]]


def _used_and_available(
    values: FloatArray, cell: Cell, period_seconds: float
) -> tuple[FloatArray, ...]:
    available = np.full_like(values, cell.carrier_prb * _SLOTS_PER_SECOND * period_seconds)
    return np.rint(values / 100 * available), available


def _bytes(values: FloatArray, _cell: Cell, _period_seconds: float) -> tuple[FloatArray, ...]:
    return (np.rint(values * 1_000_000 / _BITS_PER_BYTE),)


def _count(values: FloatArray, _cell: Cell, _period_seconds: float) -> tuple[FloatArray, ...]:
    return (values,)


_RULES: Mapping[str, _Rule] = {
    "RRU.PrbTotDl": _Rule("NCELA", ("M55308C10001", "M55308C10003"), _used_and_available),
    "RRU.PrbTotUl": _Rule("NCELA", ("M55308C10002", "M55308C10004"), _used_and_available),
    "DRB.MaxActiveUeDl": _Rule("NCELA", ("M55308C02001",), _count),
    "DRB.PdcpSduVolumeDL": _Rule("NMSDU", ("M55309C01001",), _bytes),
    "DRB.PdcpSduVolumeUL": _Rule("NMSDU", ("M55309C02001",), _bytes),
}

KPIS = frozenset(_RULES)
"""Measurements that can be told in these counters."""


@dataclass(frozen=True, slots=True)
class OmesDialect:
    """OMeS.

    Attributes:
        name: Parts of the file's name.
        many_periods: A file may hold more than one period.
    """

    name: NameStyle = field(
        default_factory=lambda: NameStyle(unique_id="ManagedElement={gnb}", end_date_always=True)
    )
    many_periods: bool = True

    def file_name(self, report: Report) -> str:
        """Name of the report's file."""
        return file_name(report, self.name)

    def encode(self, report: Report, *, compact: bool = False) -> bytes:  # noqa: ARG002
        """The file as UTF-8; it has no compact form."""
        minutes = report.period_ms // _MS_PER_MINUTE
        lines = ['<?xml version="1.0" encoding="utf-8"?>', '<OMeS version="2.3">']
        converted = {
            (c, k): _RULES[name].convert(report.values[c, k], cell, report.period_ms / 1000)
            for c, cell in enumerate(report.gnb.cells)
            for k, name in enumerate(report.kpis)
            if name in _RULES
        }
        for position, period in enumerate(report.periods.tolist()):
            start = report.stated(period * report.period_ms)
            lines.append(f'<PMSetup startTime="{_stamp(start)}" interval="{minutes}">')
            for c, cell in enumerate(report.gnb.cells):
                if not report.suspect[c, position]:
                    lines.extend(_result(report, converted, c, cell, position))
            lines.append("</PMSetup>")
        lines += ["</OMeS>", ""]
        return "\n".join(lines).encode()


def _result(
    report: Report,
    converted: Mapping[tuple[int, int], tuple[FloatArray, ...]],
    c: int,
    cell: Cell,
    position: int,
) -> Iterator[str]:
    by_type: dict[str, list[str]] = {}
    for k, name in enumerate(report.kpis):
        if name in _RULES and not np.isnan(report.values[c, k, position]):
            target = by_type.setdefault(_RULES[name].measurement_type, [])
            for counter, values in zip(_RULES[name].counters, converted[c, k], strict=True):
                target.append(f"<{counter}>{values[position]:.0f}</{counter}>")
    for measurement_type, counters in by_type.items():
        yield "<PMMOResult>"
        yield f'<MO dimension="network_element"><DN>{escape(_dn(report, cell))}</DN></MO>'
        yield f'<PMTarget measurementType="{measurement_type}">'
        yield from counters
        yield "</PMTarget>"
        yield "</PMMOResult>"


def _dn(report: Report, cell: Cell) -> str:
    return f"PLMN-PLMN/MRBTS-{report.gnb.index + 1}/NRBTS-1/NRCELL-{cell.local_id}"


def _stamp(time: datetime) -> str:
    offset = time.strftime("%z")
    return f"{time:%Y-%m-%dT%H:%M:%S}.000{offset[:3]}:{offset[3:5]}:00"
