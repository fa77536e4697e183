"""PM reports of the non-RT RIC's Kafka chain: the JSON that its file converter makes of PM files.

The chain falsifies a few things, and this reader does not trust them: the granularity period is
always 900 whatever the file said; begin and end come from the notification and may be equal; some
producers put milliseconds into the `…Microsec` fields; positions are renumbered by filters. A
historical query ends with an empty record `{}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kpi.catalogue import Catalogue, load_catalogue
from kpi.errors import UnreadableFileError
from kpi.observation import ObservationBatch
from kpi.readers.names import object_name
from kpi.readers.options import ReadOptions
from kpi.readers.samples import Samples
from kpi.readers.source import unpack
from kpi.readers.times import DAY_MS, file_name_period, parse_epoch, parse_zone, to_text

_FRAME = 1024  # objects and lists around the results of a report
_DATA_PATH = ("event", "perf3gppFields", "measDataCollection")


def read_report(
    data: bytes,
    name: str,
    options: ReadOptions | None = None,
    catalogue: Catalogue | None = None,
    *,
    arrival_ms: int,
) -> Iterator[ObservationBatch]:
    """Batches of one report, plain or gzip.

    Args:
        data: Value of the Kafka record, or content of a file.
        name: Name of the file or stream; the last resort for the time where it follows TS 32.432.
        options: How to read.
        catalogue: Canonical names; None reads the built-in one.
        arrival_ms: When the record was made.

    Raises:
        UnreadableFileError: It is no PM report, its times make no sense, or it exceeds a limit.
    """
    options = options or ReadOptions()
    text = unpack(data, name, options.limits)
    # A result is one object, and brings at most two more with it; each costs 30 times its text.
    most = 3 * options.limits.max_samples + _FRAME
    if len(text) > most and (found := text.count(b"{") + text.count(b"[")) > most:
        raise UnreadableFileError(
            name, f"expected at most {most} objects and lists, got {found}; split the report"
        )
    try:
        report = json.loads(text)
    except RecursionError as error:
        raise UnreadableFileError(name, "expected a PM report, got JSON nested too deep") from error
    except ValueError as error:
        raise UnreadableFileError(
            name, f"expected a PM report as JSON, got: {error}; transfer it again"
        ) from error
    if report == {}:
        return iter(())
    return _Report(report, name, options, catalogue or load_catalogue(), arrival_ms).batches()


class _Report:
    """The state of reading one report."""

    def __init__(
        self,
        report: object,
        name: str,
        options: ReadOptions,
        catalogue: Catalogue,
        arrival_ms: int,
    ) -> None:
        self._name = name
        self._options = options
        self._samples = Samples(name, options, catalogue, arrival_ms)
        self._without_type = 0
        event = self._object(report, "event", "$")
        self._header = self._object(event, "commonEventHeader", "$.event")
        self._collection: Any = report
        path = "$"
        for key in _DATA_PATH:
            self._collection = self._object(self._collection, key, path)
            path += f".{key}"
        self._path = path

    def batches(self) -> Iterator[ObservationBatch]:
        """Read all measurements."""
        end_ms, period_ms = self._period()
        entity = _text(self._collection.get("measuredEntityDn"))
        entity = entity or _text(self._header.get("sourceName"))
        for index, info in enumerate(self._list(self._collection, "measInfoList", self._path)):
            path = f"{self._path}.measInfoList[{index}]"
            types = self._object(info, "measTypes", path)
            names = self._list(types, "sMeasTypesList", f"{path}.measTypes")
            counters = self._samples.counters(_text(name) for name in names)
            for order, value in enumerate(self._list(info, "measValuesList", path)):
                self._value(
                    value, counters, f"{path}.measValuesList[{order}]", entity, end_ms, period_ms
                )
        if self._without_type:
            self._options.warn("results_without_type", file=self._name, count=self._without_type)
        return self._samples.batches()

    def _value(
        self,
        value: object,
        counters: list[int],
        path: str,
        entity: str,
        end_ms: int,
        period_ms: int,
    ) -> None:
        """Take the results of one object."""
        results = self._list(value, "measResults", path)
        fields: dict[str, Any] = value if isinstance(value, dict) else {}
        found: list[int] = []
        texts: list[str] = []
        for result in results:
            position = result.get("p") if isinstance(result, dict) else None
            if isinstance(position, str) and position.isascii() and position.isdecimal():
                position = int(position[:9])
            if not isinstance(position, int) or not 1 <= position <= len(counters):
                self._without_type += 1
                continue
            found.append(counters[position - 1])
            texts.append(_text(result.get("sValue")))
        suspect = _text(fields.get("suspectFlag")).casefold() in ("true", "1")
        cell = object_name(entity, _text(fields.get("measObjInstId")))
        self._samples.add(cell, found, texts, end_ms, period_ms, suspect)

    def _period(self) -> tuple[int, int]:
        """End and length of the period, by what is plausible."""
        start_ms = self._epoch("startEpochMicrosec")
        end_ms = self._epoch("lastEpochMicrosec")
        named = file_name_period(self._name, parse_zone(self._options.time_zone))
        if end_ms is None:
            if named is None:
                raise UnreadableFileError(
                    self._name,
                    "expected lastEpochMicrosec of a time between 1990 and 2100 in micro- or "
                    f"milliseconds, got {str(self._header.get('lastEpochMicrosec'))[:40]!r}; mend "
                    "the sender's clock, or name the file as TS 32.432 does",
                )
            self._options.warn("clock_from_file_name", file=self._name, end=to_text(named[1]))
            return named[1], named[1] - named[0]
        if start_ms is not None and 1000 <= end_ms - start_ms <= DAY_MS:
            return end_ms, round((end_ms - start_ms) / 1000) * 1000
        stated = self._collection.get("granularityPeriod")
        if isinstance(stated, str) and stated.isascii() and stated.isdecimal():
            stated = int(stated[:9])
        if not isinstance(stated, int | float) or not 0.001 <= stated <= 86_400 * 366:
            raise UnreadableFileError(
                self._name,
                f"expected {self._path}.granularityPeriod in seconds, as begin and end are not a "
                f"period apart, got {str(stated)[:40]!r}",
            )
        return end_ms, round(stated * 1000)

    def _epoch(self, field: str) -> int | None:
        """Milliseconds of a header field, None where no unit makes sense of it."""
        number = self._header.get(field)
        if isinstance(number, str) and number.isascii() and number.isdecimal():
            number = int(number[:24])
        if isinstance(number, bool) or not isinstance(number, int | float):
            return None
        try:
            return parse_epoch(number)
        except ValueError:
            return None

    def _object(self, parent: object, key: str, path: str) -> dict[str, Any]:
        found = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(found, dict):
            raise UnreadableFileError(
                self._name, f"expected an object at {path}.{key}, got {type(found).__name__}"
            )
        return found

    def _list(self, parent: object, key: str, path: str) -> list[Any]:
        found = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(found, list):
            raise UnreadableFileError(
                self._name, f"expected a list at {path}.{key}, got {type(found).__name__}"
            )
        return found


def _text(value: object) -> str:
    """A JSON value as the text of a result or a name; structures and null are blank."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else ""
