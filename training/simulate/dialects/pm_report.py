"""PM reports in JSON, as the PM file converter of the O-RAN SC non-RT RIC publishes them.

One report holds one period of one element. Values and the suspect flag are strings; the entries
of `measResults` name their counter by its position `p` in `sMeasTypesList`, from 1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from training.simulate.dialects.counter_table import CounterTable, Projection, Text, plain
from training.simulate.naming import NameStyle, file_name
from training.simulate.report import Report


@dataclass(frozen=True, slots=True)
class PmReportDialect:
    """PM report.

    Attributes:
        project: From measurements to counters.
        name: Parts of the file's name.
        many_periods: A report holds one period only.
    """

    project: Projection = plain
    name: NameStyle = field(default_factory=lambda: NameStyle(suffix=".json"))
    many_periods: bool = False

    def file_name(self, report: Report) -> str:
        """Name of the report's file."""
        return file_name(report, self.name)

    def encode(self, report: Report, *, compact: bool = False) -> bytes:  # noqa: ARG002
        """The report as UTF-8; it has no compact form."""
        start_ms = report.first * report.period_ms + report.clock_ms
        end_ms = start_ms + report.period_ms
        return json.dumps(
            {
                "event": {
                    "commonEventHeader": _header(report, start_ms, end_ms),
                    "perf3gppFields": {
                        "perf3gppFieldsVersion": "1.0",
                        "measDataCollection": {
                            "granularityPeriod": report.period_ms // 1000,
                            "measuredEntityUserName": "",
                            "measuredEntityDn": f"ManagedElement={report.gnb.name}",
                            "measuredEntitySoftwareVersion": "1.0",
                            "measInfoList": [_meas_info(report, t) for t in self.project(report)],
                        },
                    },
                }
            },
            separators=(",", ":"),
        ).encode()


def _header(report: Report, start_ms: int, end_ms: int) -> dict[str, Any]:
    return {
        "domain": "",
        "eventId": "",
        "sequence": 0,
        "eventName": "",
        "sourceName": report.gnb.name,
        "reportingEntityName": "",
        "priority": "",
        "startEpochMicrosec": start_ms * 1000,
        "lastEpochMicrosec": end_ms * 1000,
        "version": "",
        "vesEventListenerVersion": "",
        "timeZoneOffset": f"UTC{report.begin():%z}",
    }


def _meas_info(report: Report, counters: CounterTable) -> dict[str, Any]:
    return {
        "measInfoId": {"sMeasInfoId": counters.meas_info_id},
        "measTypes": {"sMeasTypesList": list(counters.counters)},
        "measValuesList": [
            {
                "measObjInstId": name,
                "suspectFlag": "true" if report.suspect[cell, 0] else "false",
                "measResults": _results(texts[0]) if texts else [],
            }
            for name, cell, texts in zip(
                counters.objects, counters.cells, counters.texts, strict=True
            )
        ],
    }


def _results(texts: Sequence[Text]) -> list[dict[str, Any]]:
    return [{"p": p, "sValue": text} for p, text in enumerate(texts, 1) if text is not None]
