"""How sources write their measurements down, by the name that the command line uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from training.simulate.dialects import ericsson, keysight, omes
from training.simulate.dialects.counter_table import plain
from training.simulate.dialects.omes import OmesDialect
from training.simulate.dialects.pm_report import PmReportDialect
from training.simulate.dialects.pm_xml import TS_28_532, TS_32_435, XmlDialect
from training.simulate.dialects.wide_table import TableDialect
from training.simulate.measurements import MEASUREMENTS
from training.simulate.naming import NameStyle
from training.simulate.report import Report


class Dialect(Protocol):
    """What turns a report into a file."""

    @property
    def many_periods(self) -> bool:
        """Whether one file may hold more than one period."""

    def file_name(self, report: Report) -> str:
        """Name of the report's file, without a suffix for compression."""

    def encode(self, report: Report, *, compact: bool = False) -> bytes:
        """Content of the file.

        Args:
            report: What is reported; at least one period, and one only unless `many_periods`.
            compact: Give results as one list where the dialect has such a form.
        """


DIALECTS: Mapping[str, Dialect] = {
    "3gpp-28532": XmlDialect(TS_28_532, plain, vendor_name="Example"),
    "3gpp-32435": XmlDialect(TS_32_435, plain, vendor_name="Example"),
    "ericsson": XmlDialect(
        TS_32_435,
        ericsson.project,
        vendor_name="Ericsson AB",
        element_type="RadioNode",
        element_dn="{gnb}",
        dn_prefix="SubNetwork=1",
        stylesheet="after",
        can_compact=False,
    ),
    "keysight": XmlDialect(
        TS_28_532,
        keysight.project,
        vendor_name="Keysight",
        element_type="ORAN Node",
        software="",
        stylesheet="before",
        states_trust=True,
        late_stamp_ms=23_000,
        can_compact=False,
        name=NameStyle(unique_id="DC=example.com,SubNetwork=1,ManagedElement={gnb}", job_id="1"),
    ),
    "nokia": OmesDialect(),
    "pm-report": PmReportDialect(),
    "csv": TableDialect("csv"),
    "parquet": TableDialect("parquet"),
}

_EXPRESSIBLE: Mapping[str, frozenset[str]] = {"ericsson": ericsson.KPIS, "nokia": omes.KPIS}


def expressible(dialect: str) -> frozenset[str]:
    """The measurements that a dialect has counters for."""
    return _EXPRESSIBLE.get(dialect, frozenset(MEASUREMENTS))
