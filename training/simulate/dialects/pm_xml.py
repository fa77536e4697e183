"""PM files in XML: `measCollecFile` of TS 32.435 and `measDataFile` of TS 28.532.

The two differ in the names of five elements and attributes. Either may give results by position
(`<r p="1">`) or compactly (`<measResults>` as one list). The order of the elements is that of the
schemas: a measInfo holds job, granPeriod, repPeriod, the types, then the values; `suspect` comes
last in a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from training.simulate.dialects.counter_table import CounterTable, Projection, Text
from training.simulate.naming import NameStyle, file_name
from training.simulate.report import Report

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_STYLESHEET = '<?xml-stylesheet type="text/xsl" href="MeasDataCollection.xsl"?>'


@dataclass(frozen=True, slots=True)
class XmlSchema:
    """What the two specifications call the same things."""

    root: str
    namespace: str
    version: str
    sender_name: str
    sender_type: str
    collection: str
    entity: str


TS_32_435 = XmlSchema(
    root="measCollecFile",
    namespace="http://www.3gpp.org/ftp/specs/archive/32_series/32.435#measCollec",
    version="32.435 V10.0",
    sender_name="localDn",
    sender_type="elementType",
    collection="measCollec",
    entity="managedElement",
)
TS_28_532 = XmlSchema(
    root="measDataFile",
    namespace="http://www.3gpp.org/ftp/specs/archive/28_series/28.532#measData",
    version="28.532 V16.0.0",
    sender_name="senderName",
    sender_type="senderType",
    collection="measData",
    entity="measEntity",
)


@dataclass(frozen=True, slots=True)
class XmlDialect:
    """One vendor's PM XML.

    Attributes:
        schema: Which specification.
        project: From measurements to the vendor's counters.
        vendor_name: Attribute of the header.
        element_type: What the sender says it is.
        element_dn: Template of the element's local name; `{gnb}` stands for the gNB.
        dn_prefix: What all names of the file stand below.
        software: Version of the element's software, empty where it is not stated.
        stylesheet: Where the stylesheet instruction stands. Before the declaration is an error of
            the sender that makes the file not well-formed, and it exists.
        states_trust: Write `<suspect>false</suspect>` where nothing is suspect.
        late_stamp_ms: How much later than the period the stated end is, for a sender that
            stamps what it writes when it writes it.
        can_compact: Whether the vendor ever writes lists of results.
        name: Parts of the file's name.
        many_periods: A file may hold more than one period.
    """

    schema: XmlSchema
    project: Projection
    vendor_name: str
    element_type: str = "gNB"
    element_dn: str = "ManagedElement={gnb}"
    dn_prefix: str = "DC=example.com,SubNetwork=1"
    software: str = "1.0"
    stylesheet: Literal["none", "after", "before"] = "none"
    states_trust: bool = False
    late_stamp_ms: int = 0
    can_compact: bool = True
    name: NameStyle = field(default_factory=NameStyle)
    many_periods: bool = True

    def file_name(self, report: Report) -> str:
        """Name of the report's file."""
        return file_name(report, self.name)

    def encode(self, report: Report, *, compact: bool = False) -> bytes:
        """The file as UTF-8."""
        schema = self.schema
        element_dn = quoteattr(self.element_dn.format(gnb=report.gnb.name))
        software = f" swVersion={quoteattr(self.software)}" if self.software else ""
        begin_ms = report.first * report.period_ms
        end_ms = begin_ms + report.count * report.period_ms
        lines = [
            *self._prologue(),
            f'<{schema.root} xmlns="{schema.namespace}" xmlns:xsi="{_XSI}" '
            f'xsi:schemaLocation="{schema.namespace} {schema.namespace}">',
            f'<fileHeader fileFormatVersion="{schema.version}" '
            f"vendorName={quoteattr(self.vendor_name)} dnPrefix={quoteattr(self.dn_prefix)}>",
            f"<fileSender {schema.sender_name}={element_dn} "
            f"{schema.sender_type}={quoteattr(self.element_type)}/>",
            f'<{schema.collection} beginTime="{_stamp(report.stated(begin_ms))}"/>',
            "</fileHeader>",
            "<measData>",
            f"<{schema.entity} localDn={element_dn}{software}/>",
        ]
        tables = self.project(report)
        for position in range(len(report.periods)):
            for counters in tables:
                lines.extend(self._meas_info(report, counters, position, compact))
        lines += [
            "</measData>",
            "<fileFooter>",
            f'<{schema.collection} endTime="{_stamp(report.stated(end_ms))}"/>',
            "</fileFooter>",
            f"</{schema.root}>",
            "",
        ]
        return "\n".join(lines).encode()

    def _prologue(self) -> list[str]:
        if self.stylesheet == "before":
            return [_STYLESHEET, _DECLARATION]
        return [_DECLARATION, _STYLESHEET] if self.stylesheet == "after" else [_DECLARATION]

    def _meas_info(
        self, report: Report, counters: CounterTable, position: int, compact: bool
    ) -> Iterator[str]:
        compact = compact and self.can_compact
        seconds = report.period_ms // 1000
        end_ms = (int(report.periods[position]) + 1) * report.period_ms
        end = report.stated(end_ms + min(self.late_stamp_ms, int(0.38 * report.period_ms)))
        yield f"<measInfo measInfoId={quoteattr(counters.meas_info_id)}>"
        yield '<job jobId="1"/>'
        yield f'<granPeriod duration="PT{seconds}S" endTime="{_stamp(end)}"/>'
        yield f'<repPeriod duration="PT{seconds * report.count}S"/>'
        if compact:
            yield f"<measTypes>{escape(' '.join(counters.counters))}</measTypes>"
        else:
            for p, name in enumerate(counters.counters, 1):
                yield f'<measType p="{p}">{escape(name)}</measType>'
        for name, cell, texts in zip(counters.objects, counters.cells, counters.texts, strict=True):
            yield f"<measValue measObjLdn={quoteattr(name)}>"
            yield _list(texts[position]) if compact else _positions(texts[position])
            suspect = bool(report.suspect[cell, position])
            if suspect or self.states_trust:
                yield f"<suspect>{'true' if suspect else 'false'}</suspect>"
            yield "</measValue>"
        yield "</measInfo>"


def _positions(texts: Sequence[Text]) -> str:
    return "\n".join(
        f'<r p="{p}">{text}</r>' for p, text in enumerate(texts, 1) if text is not None
    )


def _list(texts: Sequence[Text]) -> str:
    """Results as one list: it has no way to leave one out."""
    return f"<measResults>{' '.join('NIL' if t is None else t for t in texts)}</measResults>"


def _stamp(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
