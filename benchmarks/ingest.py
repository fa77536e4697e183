"""How much CPU time PM files take to become columnar observations, against a bare parse of them.

The file is the 159 kB counter file of a real radio node where it lies beside the checkout, else one
of the same shape made here; the result says which.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from benchmarks.harness import Result, main, run_interleaved, spread
from kpi.catalogue import load_catalogue
from kpi.readers import ReadOptions, read

_SAMPLES = Path(__file__).resolve().parent.parent.parent / "shared" / "samples" / "pm"
_PATTERN = "ericsson_A20220418*.xml"
_TARGET_RATIO = 2.5


def measure(quick: bool) -> Iterator[Result]:
    """Time the reader and a bare parse of one file, turn by turn."""
    found = sorted(_SAMPLES.glob(_PATTERN)) if _SAMPLES.is_dir() else []
    with tempfile.TemporaryDirectory() as folder:
        path = found[0] if found else Path(folder, "A20260101.0000+0000-0015+0000_node.xml")
        if not found:
            path.write_text(made_file(), encoding="utf-8")
        catalogue, options = load_catalogue(), ReadOptions(on_warning=lambda _: None)
        samples = sum(len(batch) for batch in read(path, options, catalogue))
        seconds = run_interleaved(
            {
                "lxml": lambda: etree.parse(str(path)),
                "rancast": lambda: [*read(path, options, catalogue)],
            },
            repeats=100 if quick else 1000,
            warmups=5,
            clock=time.process_time,
        )
        ours, theirs = statistics.median(seconds["rancast"]), statistics.median(seconds["lxml"])
        yield Result.at_most(
            "ingest.pm_xml_vs_lxml",
            ours / theirs,
            "x",
            _TARGET_RATIO,
            opponent="lxml.etree.parse",
            file="real radio node file" if found else "made file of the same shape",
            file_bytes=path.stat().st_size,
            samples=samples,
            samples_per_second=round(samples / ours),
            rancast=spread(seconds["rancast"]),
            lxml=spread(seconds["lxml"]),
        )


def made_file() -> str:
    """A file of 34 groups, 880 types, 125 objects and some 2 700 results, every sixth a list."""
    groups = []
    for group in range(34):
        types = [f"pmCounter{group}x{index}" for index in range(26)]
        declared = "".join(
            f'      <measType p="{p}">{name}</measType>\n' for p, name in enumerate(types, 1)
        )
        objects = []
        for cell in range(3 + (group % 3 == 0)):
            results = "".join(
                f'        <r p="{p}">{_result(group, p)}</r>\n' for p in range(1, len(types) + 1)
            )
            ldn = f"ManagedElement=node7,Function=1,Cell={cell}"
            objects.append(f'      <measValue measObjLdn="{ldn}">\n{results}      </measValue>\n')
        groups.append(
            f'    <measInfo measInfoId="group{group}">\n'
            '      <granPeriod duration="PT900S" endTime="2026-01-01T00:15:00+00:00"/>\n'
            f"{declared}{''.join(objects)}    </measInfo>\n"
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<measCollecFile xmlns="http://www.3gpp.org/ftp/specs/archive/32_series/32.435#measCollec">\n'
        '  <fileHeader dnPrefix="SubNetwork=1"><fileSender localDn="node7"/></fileHeader>\n'
        f'  <measData>\n    <managedElement localDn="node7"/>\n{"".join(groups)}  </measData>\n'
        "</measCollecFile>\n"
    )


def _result(group: int, p: int) -> str:
    if p % 6 == 0:
        return ",".join(str((group * p + index) % 7) for index in range(24))
    return str(group * p % 1000)


if __name__ == "__main__":
    main("ingest", measure)
