"""PM reports of the Kafka chain, with what the chain falsifies."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kpi.errors import UnreadableFileError
from kpi.readers import ReadLimits, ReadOptions, read, read_report
from tests.kpi.readers.pm_files import info, pm_file, read_text, rows, values

START = 1_795_964_400_000  # 2026-11-29T15:00:00Z
END = START + 900_000
CELL = "ManagedElement=7,NRCellDU=1"


def report(**changes: Any) -> dict[str, Any]:
    """A report of two counters of one object; changes go to the header or the collection."""
    header: dict[str, Any] = {
        "sourceName": "source",
        "startEpochMicrosec": START * 1000,
        "lastEpochMicrosec": END * 1000,
    }
    collection: dict[str, Any] = {
        "granularityPeriod": 900,
        "measuredEntityDn": "ManagedElement=7",
        "measInfoList": [
            {
                "measInfoId": {"sMeasInfoId": "group"},
                "measTypes": {"sMeasTypesList": ["a", "b"]},
                "measValuesList": [
                    {
                        "measObjInstId": "NRCellDU=1",
                        "suspectFlag": "false",
                        "measResults": [{"p": 2, "sValue": "20"}, {"p": 1, "sValue": "10"}],
                    }
                ],
            }
        ],
    }
    for name, value in changes.items():
        target = header if name in header else collection
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value
    return {
        "event": {
            "commonEventHeader": header,
            "perf3gppFields": {"measDataCollection": collection},
        }
    }


def read_json(document: Any, name: str = "topic", options: ReadOptions | None = None) -> list[Any]:
    return rows(read_report(json.dumps(document).encode(), name, options, arrival_ms=9))


def with_value(**changes: Any) -> dict[str, Any]:
    document = report()
    collection = document["event"]["perf3gppFields"]["measDataCollection"]
    collection["measInfoList"][0]["measValuesList"][0].update(changes)
    return document


def test_results_are_joined_by_p_to_the_types_beside_them() -> None:
    assert read_json(report()) == [
        (CELL, "b", END, 900_000, 20.0, False),
        (CELL, "a", END, 900_000, 10.0, False),
    ]


def test_arrival_is_what_the_caller_says() -> None:
    (batch,) = read_report(json.dumps(report()).encode(), "x", arrival_ms=77)
    assert batch.arrival_ms == 77


def test_gzip_record_is_read() -> None:
    data = gzip.compress(json.dumps(report()).encode())
    assert len(rows(read_report(data, "topic", arrival_ms=0))) == 2


def test_empty_record_that_ends_a_query_is_nothing() -> None:
    assert read_json({}) == []


def test_same_object_has_the_same_name_as_in_the_file(tmp_path: Path) -> None:
    for entity, path in (
        ("node7", "ManagedElement=node7,NRCellDU=32"),
        ("ManagedElement=7", "ManagedElement=7,NRCellDU=1"),
        ("SubNetwork=1,ManagedElement=7", "NRCellDU=1"),
        ("node7", ""),
    ):
        text = pm_file(
            info(
                f'<measTypes>a</measTypes><measValue measObjLdn="{path}">'
                "<measResults>1</measResults></measValue>"
            ),
            entity=entity,
            sender=entity,
        )
        document = with_value(measObjInstId=path)
        collection = document["event"]["perf3gppFields"]["measDataCollection"]
        collection["measuredEntityDn"] = entity
        assert read_json(document)[0][0] == rows(read_text(tmp_path, text))[0][0]


def test_without_entity_the_source_names_the_element() -> None:
    assert read_json(report(measuredEntityDn=""))[0][0] == "source,NRCellDU=1"


@pytest.mark.parametrize("unit", [1e-3, 1, 1000, 1_000_000])
def test_clock_in_any_unit_is_understood(unit: float) -> None:
    document = report(startEpochMicrosec=START * unit, lastEpochMicrosec=END * unit)
    assert {row[2:4] for row in read_json(document)} == {(END, 900_000)}


def test_distance_of_begin_and_end_beats_the_hard_coded_period() -> None:
    document = report(startEpochMicrosec=(END - 60_000) * 1000)
    assert {row[2:4] for row in read_json(document)} == {(END, 60_000)}
    jitter = report(startEpochMicrosec=(END - 60_000) * 1000 + 2000)
    assert {row[3] for row in read_json(jitter)} == {60_000}


@pytest.mark.parametrize("start", [END * 1000, END * 1000 - 3, (END + 5000) * 1000, 12, None])
def test_equal_or_senseless_begin_leaves_the_stated_period(start: int | None) -> None:
    document = report(startEpochMicrosec=start, granularityPeriod="300")
    assert {row[2:4] for row in read_json(document)} == {(END, 300_000)}


@pytest.mark.parametrize("stated", [0, -1, "x", None, 1e99, []])
def test_period_that_nothing_states_is_refused(stated: Any) -> None:
    document = report(startEpochMicrosec=END * 1000, granularityPeriod=stated)
    with pytest.raises(UnreadableFileError, match="granularityPeriod"):
        read_json(document)


@pytest.mark.parametrize("last", [151_983, -5, 10**40, "x", True, None, [1]])
def test_senseless_clock_falls_back_on_the_file_name_or_is_refused(last: Any) -> None:
    document = report(lastEpochMicrosec=last)
    with pytest.raises(UnreadableFileError, match="lastEpochMicrosec"):
        read_json(document)
    said: list[str] = []
    found = read_json(
        document,
        "A20000626.2315+0200-2330+0200_node.json",
        ReadOptions(on_warning=said.append),
    )
    assert {row[2:4] for row in found} == {(962_055_000_000, 900_000)}
    assert said[0].startswith("event=clock_from_file_name")


@pytest.mark.parametrize("value", ["", " ", "NIL", None, True, {}, [], "x", "\ud800"])
def test_value_that_is_no_number_is_missing(value: Any) -> None:
    quiet = ReadOptions(on_warning=lambda _: None)
    document = with_value(measResults=[{"p": 1, "sValue": value}])
    assert read_json(document, options=quiet) == [(CELL, "a", END, 900_000, None, False)]


def test_lists_and_plain_json_numbers_are_read_too() -> None:
    document = with_value(
        measResults=[{"p": 1, "sValue": "1,2"}, {"p": "2", "sValue": 0.5}], suspectFlag=True
    )
    assert [(row[1], row[4], row[5]) for row in read_json(document)] == [
        ("a[0]", 1.0, True),
        ("a[1]", 2.0, True),
        ("b", 0.5, True),
    ]


def test_separator_of_the_bulk_parser_inside_a_value_is_junk_and_shifts_nothing() -> None:
    quiet = ReadOptions(on_warning=lambda _: None)
    document = with_value(measResults=[{"p": 1, "sValue": "1\x1f2"}, {"p": 2, "sValue": "3"}])
    assert [row[4] for row in read_json(document, options=quiet)] == [None, 3.0]


@pytest.mark.parametrize("position", [0, 3, -1, None, "x", 10**30])
def test_result_without_type_is_left_out_with_a_word(position: Any) -> None:
    said: list[str] = []
    document = with_value(measResults=[{"p": position, "sValue": "1"}, {"p": 1, "sValue": "2"}])
    found = read_json(document, options=ReadOptions(on_warning=said.append))
    assert [row[4] for row in found] == [2.0]
    assert "results_without_type" in said[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "as JSON"),
        (b"\xff\xfe{", "as JSON"),
        (b"[" * 200_000, "too deep"),
        (b"[]", "object at \\$.event"),
        (b'{"event":{}}', "commonEventHeader"),
        (b'{"event":{"commonEventHeader":{},"perf3gppFields":[]}}', "perf3gppFields, got list"),
        (json.dumps(report(measInfoList={})).encode(), "list at .*measInfoList"),
        (json.dumps(report(measInfoList=[{}])).encode(), r"measInfoList\[0\].measTypes"),
        (json.dumps(with_value(measResults=None)).encode(), r"measValuesList\[0\].measResults"),
        (
            json.dumps(report(startEpochMicrosec=0, granularityPeriod=10**400)).encode(),
            "granularityPeriod in seconds",
        ),
        (b"", "empty"),
    ],
)
def test_bad_report_is_refused_with_its_place(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=reason):
        read_report(content, "topic", arrival_ms=0)


def test_report_of_countless_lists_is_refused_before_it_is_parsed() -> None:
    options = ReadOptions(limits=ReadLimits(max_samples=100))
    content = json.dumps(report(other=[[]] * 1400)).encode()
    with pytest.raises(UnreadableFileError, match="at most 1324 objects and lists"):
        read_report(content, "topic", options, arrival_ms=0)


def test_report_beyond_the_sample_limit_is_refused() -> None:
    options = ReadOptions(limits=ReadLimits(max_samples=1))
    with pytest.raises(UnreadableFileError, match="at most 1 samples"):
        read_json(report(), options=options)


# The real files.


def test_real_reports(shared: Path) -> None:
    folder = shared / "samples" / "pm"
    found = rows(read(folder / "oransc-kafka-json_pm_report_filtered.json"))
    gbg = "SubNetwork=CountryNN,MeContext=MEC-Gbg-1,ManagedElement=RNC-Gbg-1,RncFunction=RF-1"
    end = 951_912_900_000  # the fields hold milliseconds: 2000-03-01T12:15:00Z
    kpi = "succImmediateAssignProcs"
    assert found == [
        (f"{gbg},UtranCell=Gbg-997", kpi, end, 900_000, 1113.0, False),
        (f"{gbg},UtranCell=Gbg-998", kpi, end, 900_000, 234.0, False),
        (f"{gbg},UtranCell=Gbg-999", kpi, end, 900_000, 789.0, True),
    ]
    whole = values(read(folder / "oransc-kafka-json_pm_report.json"))
    assert whole[f"{gbg},UtranCell=Gbg-997", "attImmediateAssignProcs"] == 1013.0
    (big,) = folder.glob("oransc-kafka-json_A2000*")
    quiet = ReadOptions(on_warning=lambda _: None)
    assert {row[2:4] for row in rows(read(big, quiet))} == {(962_055_000_000, 900_000)}
