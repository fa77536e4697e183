"""PM XML files: TS 32.435 `measCollecFile` and TS 28.532 / TS 28.550 `measDataFile`.

The dialects differ in the names of a few elements and attributes only. Results are positional (`r`
joined to `measType` by `p`) or compact (`measResults` beside `measTypes`, by order). The period is
that of each `measInfo`, never the file's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree

from kpi.catalogue import Catalogue
from kpi.errors import UnreadableFileError
from kpi.observation import ObservationBatch
from kpi.readers.names import object_name
from kpi.readers.options import ReadOptions
from kpi.readers.samples import Samples
from kpi.readers.times import parse_duration, parse_time, parse_zone
from kpi.readers.xml_document import Document

ROOTS = ("measCollecFile", "measDataFile")
MEASUREMENTS = "measInfo"


def read_pm_xml(
    document: Document,
    name: object,
    options: ReadOptions,
    catalogue: Catalogue,
    *,
    arrival_ms: int,
) -> Iterator[ObservationBatch]:
    """Batches of a parsed PM file.

    Raises:
        UnreadableFileError: A `measInfo` has no readable period, or the file exceeds a limit.
    """
    reader = _PmXml(document, name, options, catalogue, arrival_ms)
    for element in document.elements:
        reader.take(element)
    return reader.batches()


class _PmXml:
    """The state of reading one file."""

    def __init__(
        self,
        document: Document,
        name: object,
        options: ReadOptions,
        catalogue: Catalogue,
        arrival_ms: int,
    ) -> None:
        self.samples = Samples(name, options, catalogue, arrival_ms)
        self._root = document.root
        self._name = name
        self._options = options
        self._zone = parse_zone(options.time_zone)
        self._periods: dict[tuple[str, str], tuple[int, int]] = {}
        self._data: etree._Element | None = None
        self._entity = ""
        self._prefix = ""
        self._names: dict[str, str] = {}
        self._without_type = 0
        self._unequal = 0

    def take(self, info: etree._Element) -> None:
        """Read one `measInfo`."""
        namespace = str(info.tag).removesuffix(MEASUREMENTS)
        data = info.getparent()
        if data is not self._data:
            self._data = data
            self._entity, self._prefix = self._element_names(data, namespace)
            self._names = {}
        end_ms, period_ms = self._period(info, namespace)
        positions, counters = self._types(info, namespace)
        result_tag, suspect_tag = f"{namespace}r", f"{namespace}suspect"
        for value in info.iterchildren(f"{namespace}measValue"):
            results = _children(value)
            suspect = False
            if results and results[-1].tag == suspect_tag:
                suspect = _is_true(results.pop().text)
            found = [result.get("p") for result in results]
            texts = [result.text or "" for result in results]
            wanted = counters
            if found != positions:
                # Rare: results are missing, out of order, compact, or beside other elements.
                suspect = suspect or _is_true(value.findtext(suspect_tag))
                kept = [
                    (position, text)
                    for result, position, text in zip(results, found, texts, strict=True)
                    if result.tag == result_tag
                ]
                if kept:
                    wanted, texts = self._joined(dict(zip(positions, counters, strict=True)), kept)
                else:
                    wanted, texts = self._compact(counters, value, namespace)
            path = value.get("measObjLdn", "")
            cell = self._names.get(path)
            if cell is None:
                # Objects come back from group to group.
                cell = self._names[path] = object_name(self._entity, path, self._prefix)
            self.samples.add(cell, wanted, texts, end_ms, period_ms, suspect)

    def batches(self) -> Iterator[ObservationBatch]:
        """What was read, after a word about what could not be."""
        if self._without_type:
            self._options.warn("results_without_type", file=self._name, count=self._without_type)
        if self._unequal:
            self._options.warn("results_unequal_length", file=self._name, objects=self._unequal)
        return self.samples.batches()

    def _element_names(self, data: etree._Element | None, namespace: str) -> tuple[str, str]:
        """DN of the element that `data` measures, and the prefix to put before it."""
        header = self._root.find(f"{namespace}fileHeader")
        sender = None if header is None else header.find(f"{namespace}fileSender")
        entity = ""
        for tag in ("managedElement", "measEntity"):
            element = None if data is None else data.find(f"{namespace}{tag}")
            if element is not None:
                entity = entity or element.get("localDn", "")
        if sender is not None:
            entity = entity or sender.get("localDn", "") or sender.get("senderName", "")
        wants_prefix = self._options.include_dn_prefix and header is not None
        return entity, header.get("dnPrefix", "") if wants_prefix and header is not None else ""

    def _period(self, info: etree._Element, namespace: str) -> tuple[int, int]:
        """End and length of the granularity period, in milliseconds."""
        period = next(info.iterchildren(f"{namespace}granPeriod"), None)
        if period is None:
            raise UnreadableFileError(
                self._name, f"expected a granPeriod in {_label(info)}, found none"
            )
        key = (period.get("endTime", ""), period.get("duration", ""))
        known = self._periods.get(key)
        if known is None:
            try:
                known = (parse_time(key[0], self._zone), parse_duration(key[1]))
            except ValueError as error:
                raise UnreadableFileError(
                    self._name,
                    f"granPeriod of {_label(info)} (endTime {key[0]!r}, duration {key[1]!r}): "
                    f"{error}",
                ) from error
            self._periods[key] = known
        return known

    def _types(self, info: etree._Element, namespace: str) -> tuple[list[str | None], list[int]]:
        """Positions as text, and the counter at each."""
        types = [*info.iterchildren(f"{namespace}measType")]
        if types:
            positions: list[str | None] = [element.get("p") for element in types]
            names = [element.text or "" for element in types]
        else:
            names = (info.findtext(f"{namespace}measTypes") or "").split()
            positions = [None] * len(names)
        if None in positions:
            positions = [p or str(order) for order, p in enumerate(positions, 1)]
        return positions, self.samples.counters(names)

    def _joined(
        self, by_position: dict[str | None, int], pairs: list[tuple[str | None, str]]
    ) -> tuple[list[int], list[str]]:
        """Results joined to their types by `p`, those without a type left out."""
        counters: list[int] = []
        texts: list[str] = []
        for order, (position, text) in enumerate(pairs, 1):
            found = by_position.get(position or str(order))
            if found is None and position is not None:
                found = by_position.get(position.strip().lstrip("0"))
            if found is None:
                self._without_type += 1
            else:
                counters.append(found)
                texts.append(text)
        return counters, texts

    def _compact(
        self, counters: list[int], value: etree._Element, namespace: str
    ) -> tuple[list[int], list[str]]:
        """Results of `measResults` by order; nothing where they are not as many as the types."""
        texts = (value.findtext(f"{namespace}measResults") or "").split()
        if len(texts) == len(counters):
            return counters, texts
        if texts:
            self._unequal += 1
        return [], []


def _label(info: etree._Element) -> str:
    identity = info.get("measInfoId")
    return f"measInfo {identity!r}" if identity else f"measInfo in line {info.sourceline}"


def _children(element: Any) -> list[etree._Element]:
    """Children by a slice, which is quicker than iteration; the stubs do not know slices."""
    children: list[etree._Element] = element[:]
    return children


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().casefold() in ("true", "1")
