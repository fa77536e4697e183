"""Small PM files for the readers' tests, made here so that every trap can be seen in the test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kpi.observation import ObservationBatch
from kpi.readers import ReadOptions, read

NAMESPACE_32435 = "http://www.3gpp.org/ftp/specs/archive/32_series/32.435#measCollec"
NAMESPACE_28532 = "http://www.3gpp.org/ftp/specs/archive/28_series/28.532#measData"


def info(
    body: str,
    *,
    end: str = "2026-11-29T15:15:00+00:00",
    duration: str = "PT900S",
    identity: str = "group",
) -> str:
    """A measInfo around types and values."""
    return (
        f'<measInfo measInfoId="{identity}"><job jobId="1"/>'
        f'<granPeriod duration="{duration}" endTime="{end}"/><repPeriod duration="PT1800S"/>'
        f"{body}</measInfo>"
    )


def pm_file(
    *infos: str,
    entity: str = "ManagedElement=7",
    dn_prefix: str = "SubNetwork=1",
    sender: str = "ManagedElement=7",
    declaration: str = '<?xml version="1.0" encoding="UTF-8"?>',
) -> str:
    """A TS 32.435 file."""
    element = f'<managedElement localDn="{entity}"/>' if entity else ""
    return (
        f'{declaration}<measCollecFile xmlns="{NAMESPACE_32435}">'
        f'<fileHeader fileFormatVersion="32.435 V10" dnPrefix="{dn_prefix}">'
        f'<fileSender localDn="{sender}"/>'
        '<measCollec beginTime="2026-11-29T15:00:00+00:00"/></fileHeader>'
        f"<measData>{element}{''.join(infos)}</measData>"
        '<fileFooter><measCollec endTime="2026-11-29T15:15:00+00:00"/></fileFooter>'
        "</measCollecFile>"
    )


def modern(text: str) -> str:
    """The same file in the TS 28.532 dialect."""
    return (
        text.replace(NAMESPACE_32435, NAMESPACE_28532)
        .replace("measCollecFile", "measDataFile")
        .replace("<fileSender localDn", "<fileSender senderName")
        .replace("<measCollec ", "<measData ")
        .replace("managedElement", "measEntity")
    )


def simple(value: str, *, name: str = "RRU.PrbTotDl", ldn: str = "NRCellDU=1") -> str:
    """A file of one counter of one object."""
    return pm_file(
        info(
            f'<measType p="1">{name}</measType>'
            f'<measValue measObjLdn="{ldn}"><r p="1">{value}</r></measValue>'
        )
    )


def write(folder: Path, content: str | bytes, name: str = "file.xml") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_text(
    folder: Path, content: str | bytes, options: ReadOptions | None = None, name: str = "file.xml"
) -> list[ObservationBatch]:
    """Batches of a file with this content."""
    return list(read(write(folder, content, name), options))


Row = tuple[str, str, int, int, float | None, bool]


def rows(batches: Iterable[ObservationBatch]) -> list[Row]:
    """Samples as (cell, KPI, period end, period, value or None, suspect), in order."""
    return [
        (
            batch.cells[batch.cell_index[row]],
            batch.kpis[batch.kpi_index[row]],
            int(batch.period_end_ms[row]),
            int(batch.period_ms[row]),
            None if np.isnan(batch.values[row]) else float(batch.values[row]),
            bool(batch.suspect[row]),
        )
        for batch in batches
        for row in range(len(batch))
    ]


def values(batches: Iterable[ObservationBatch]) -> dict[tuple[str, str], float | None]:
    """Value by (cell, KPI), the last where several."""
    return {(row[0], row[1]): row[4] for row in rows(batches)}
