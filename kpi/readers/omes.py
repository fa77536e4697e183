"""Nokia NetAct OMeS: counters as element names below `PMTarget`s, one interval per `PMSetup`.

`startTime` is the begin of the interval and may carry an offset with seconds; `interval` is in
minutes. An object is `MO/DN`, or `MO/baseId` and the path `MO/localMoid` below it.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.observation import ObservationBatch
from kpi.readers.options import ReadOptions
from kpi.readers.samples import Samples
from kpi.readers.times import parse_duration, parse_time, parse_zone
from kpi.readers.xml_document import Document, local_name

ROOT = "OMeS"
MEASUREMENTS = "PMMOResult"


def read_omes(
    document: Document,
    name: object,
    options: ReadOptions,
    catalogue: Catalogue,
    *,
    arrival_ms: int,
) -> Iterator[ObservationBatch]:
    """Batches of a parsed OMeS file.

    Raises:
        UnreadableFileError: A PMSetup has no readable interval, a result has no object, or the file
            exceeds a limit.
    """
    zone = parse_zone(options.time_zone)
    samples = Samples(name, options, catalogue, arrival_ms)
    periods: dict[tuple[str, str], tuple[int, int]] = {}
    for result in document.elements:
        setup = result.getparent()
        key = ("", "") if setup is None else (setup.get("startTime", ""), setup.get("interval", ""))
        if key not in periods:
            try:
                period_ms = parse_duration(f"PT{key[1].strip()}M")
                periods[key] = (parse_time(key[0], zone) + period_ms, period_ms)
            except ValueError as error:
                raise UnreadableFileError(
                    name, f"PMSetup (startTime {key[0]!r}, interval {key[1]!r} minutes): {error}"
                ) from error
        objects = [child for child in result if local_name(child) == "MO"]
        cell = ",".join(filter(None, (_object(element) for element in objects)))
        if not cell:
            raise UnreadableFileError(
                name, f"expected an MO with DN or baseId in line {result.sourceline}, found none"
            )
        for target in result:
            if local_name(target) == "MO":
                continue
            counters = samples.counters(local_name(counter) for counter in target)
            samples.add(
                cell, counters, [counter.text or "" for counter in target], *periods[key], False
            )
    return samples.batches()


def _object(element: etree._Element) -> str:
    """Name of one MO: its DN, or its base and the path below that."""
    parts = {local_name(child): (child.text or "").strip() for child in element}
    if parts.get("DN"):
        return parts["DN"]
    below = parts.get("localMoid", "").removeprefix("DN:")
    return "/".join(filter(None, (parts.get("baseId", ""), below)))
