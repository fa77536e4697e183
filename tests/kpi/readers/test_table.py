"""CSV and Parquet, long and wide, and local time through both clock changes."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.errors import UnreadableFileError
from kpi.readers import ColumnMapping, ReadLimits, ReadOptions, read
from kpi.readers.columns import infer_periods
from kpi.readers.local_time import to_utc
from tests.kpi.readers.pm_files import read_text, rows, write

START = 1_795_964_400_000  # 2026-11-29T15:00:00Z
STEP = 900_000
MADRID = ReadOptions(time_zone="Europe/Madrid")


def csv(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def ends(folder: Path, stamps: Sequence[str], options: ReadOptions) -> list[int]:
    text = csv("cell,timestamp,x", *(f"c,{stamp},1" for stamp in stamps))
    return [row[2] for row in rows(read_text(folder, text, options, "t.csv"))]


def utc(*texts: str) -> list[int]:
    return [round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000) for text in texts]


WIDE = csv(
    "timestamp,cell_id,split,RRU.PrbTotDl,drb.ueTHPdl",
    "2026-11-29T15:00:00Z,c1,train,10,1.5",
    "2026-11-29T15:15:00Z,c1,train,,NIL",
)


def test_wide_table_has_one_kpi_a_numeric_column_and_stamps_are_starts(tmp_path: Path) -> None:
    assert rows(read_text(tmp_path, WIDE)) == [
        ("c1", "RRU.PrbTotDl", START + STEP, STEP, 10.0, False),
        ("c1", "DRB.UEThpDl", START + STEP, STEP, 1.5, False),
        ("c1", "RRU.PrbTotDl", START + 2 * STEP, STEP, None, False),
        ("c1", "DRB.UEThpDl", START + 2 * STEP, STEP, None, False),
    ]


def test_gzip_bom_and_other_delimiters_make_no_difference(tmp_path: Path) -> None:
    expected = rows(read_text(tmp_path, WIDE))
    assert rows(read_text(tmp_path, gzip.compress(WIDE.encode()))) == expected
    assert rows(read_text(tmp_path, "\ufeff" + WIDE)) == expected
    for delimiter in ";\t|":
        assert rows(read_text(tmp_path, WIDE.replace(",", delimiter))) == expected


def test_blanks_around_the_names_of_columns_make_no_difference(tmp_path: Path) -> None:
    expected = rows(read_text(tmp_path, WIDE))
    header, rest = WIDE.split("\n", 1)
    assert rows(read_text(tmp_path, f" {header.replace(',', ' , ')} \n{rest}")) == expected


def test_an_index_without_a_name_is_no_kpi(tmp_path: Path) -> None:
    lines = WIDE.replace(",", "\t").splitlines()
    text = csv(f"\t{lines[0]}", *(f"{row}\t{line}" for row, line in enumerate(lines[1:])))
    assert rows(read_text(tmp_path, text)) == rows(read_text(tmp_path, WIDE))


def test_names_far_into_a_long_header_are_checked_too(tmp_path: Path) -> None:
    header = ",".join(["timestamp,cell", *(f"counter_{i:060d}" for i in range(2000)), "x,x"])
    with pytest.raises(UnreadableFileError, match="distinct column names"):
        read_text(tmp_path, csv(header, "2026-11-29T15:00:00Z,c" + ",1" * 2002))


def test_booleans_and_dates_of_csv_are_no_kpis(tmp_path: Path) -> None:
    text = csv(
        "timestamp,cell,x,barred,since",
        "2026-11-29T15:00:00Z,c,1,true,2026-01-01",
        "2026-11-29T15:15:00Z,c,2,false,2026-01-01",
    )
    assert {row[1] for row in rows(read_text(tmp_path, text))} == {"x"}


def test_comma_is_the_decimal_point_of_a_table_with_semicolons(tmp_path: Path) -> None:
    text = csv(
        "timestamp;cell;x;grouped",
        "2026-11-29T15:00:00Z;c;1,5;1,000.5",
        "2026-11-29T15:15:00Z;c;-2;2,000.5",
        "2026-11-29T15:30:00Z;c;,5e1;3,000",
    )
    found = [(row[1], row[4]) for row in rows(read_text(tmp_path, text))]
    assert found == [("x", 1.5), ("x", -2.0), ("x", 5.0)]


def test_long_table_is_found_by_its_usual_names(tmp_path: Path) -> None:
    text = csv(
        "time,cell,kpi,value,suspect",
        "2026-11-29T15:00:00Z,007,RRU.PrbTotDl,1,true",
        "2026-11-29T15:00:00Z,007,rru.prbtotul,x,0",
        "2026-11-29T15:15:00Z,007,RRU.PrbTotDl,3,",
    )
    said: list[str] = []
    assert rows(read_text(tmp_path, text, ReadOptions(on_warning=said.append))) == [
        ("007", "RRU.PrbTotDl", START + STEP, STEP, 1.0, True),
        ("007", "RRU.PrbTotUl", START + STEP, STEP, None, False),
        ("007", "RRU.PrbTotDl", START + 2 * STEP, STEP, 3.0, False),
    ]
    assert said[0].startswith("event=values_not_numeric")


def test_mapping_names_columns_period_and_stamp(tmp_path: Path) -> None:
    mapping = ColumnMapping(
        timestamp="when",
        cell="who",
        suspect="doubt",
        ignore=("id",),
        stamp="end",
        period_seconds=60,
    )
    text = csv("when,who,id,load,doubt", "2026-11-29 15:00:00+00:00,a,5,7,1")
    assert rows(read_text(tmp_path, text, ReadOptions(columns=mapping))) == [
        ("a", "load", START, 60_000, 7.0, True)
    ]
    long = ColumnMapping(timestamp="when", cell="who", kpi="load", value="id", period_seconds=60)
    assert rows(read_text(tmp_path, text, ReadOptions(columns=long))) == [
        ("a", "7", START + 60_000, 60_000, 5.0, False)
    ]


def test_column_of_period_ends_is_taken_as_ends(tmp_path: Path) -> None:
    text = WIDE.replace("timestamp", "period_end")
    assert rows(read_text(tmp_path, text))[0][2] == START


def test_derived_kpi_stands_beside_its_parts_in_tables(tmp_path: Path) -> None:
    text = csv(
        "timestamp,cell,pmActiveUeDlSum,pmActiveUeDlSamp",
        "2026-11-29T15:00:00Z,a,9,3",
        "2026-11-29T15:15:00Z,a,9,0",
    )
    found = [row[4] for row in rows(read_text(tmp_path, text)) if row[1] == "DRB.MeanActiveUeDl"]
    assert found == [3.0, None]


def test_small_batches_keep_rows_together_and_lose_nothing(tmp_path: Path) -> None:
    options = ReadOptions(limits=ReadLimits(batch_samples=3))
    batches = read_text(tmp_path, WIDE, options)
    assert [len(batch) for batch in batches] == [2, 2]
    assert rows(batches) == rows(read_text(tmp_path, WIDE))


def test_mostly_numeric_column_keeps_its_numbers_and_text_is_no_kpi(tmp_path: Path) -> None:
    said: list[str] = []
    text = csv(
        "timestamp,cell,load,note,empty",
        "2026-11-29T15:00:00Z,a,1,5 x,",
        "2026-11-29T15:15:00Z,a,oops,6,",
        "2026-11-29T15:30:00Z,a,1e400,b,",
        "2026-11-29T15:45:00Z,a,2,c,",
    )
    found = rows(read_text(tmp_path, text, ReadOptions(on_warning=said.append)))
    assert [row[4] for row in found if row[1] == "load"] == [1.0, None, None, 2.0]
    assert {row[1] for row in found} == {"load", "empty"}
    assert "column=load count=1" in said[0]


def test_rows_without_cell_or_time_are_left_out_with_a_word(tmp_path: Path) -> None:
    said: list[str] = []
    text = WIDE + "2026-11-29T15:30:00Z,,x,1,1\n,c1,x,1,1\n"
    found = rows(read_text(tmp_path, text, ReadOptions(on_warning=said.append)))
    assert found == rows(read_text(tmp_path, WIDE))
    assert said[0].endswith("count=2")


@pytest.mark.parametrize("unit", ["1e-3", "1", "1000", "1000000"])
def test_epoch_numbers_of_any_unit_are_times(tmp_path: Path, unit: str) -> None:
    scale = float(unit)
    stamps = [str(round((START + step * STEP) * scale)) for step in (0, 1)]
    assert ends(tmp_path, stamps, ReadOptions()) == [START + STEP, START + 2 * STEP]


def test_parquet_types_of_time_all_work(tmp_path: Path) -> None:
    stamps = [datetime(2026, 11, 29, 15, tzinfo=UTC), datetime(2026, 11, 29, 15, 15, tzinfo=UTC)]
    ms = [START, START + STEP]
    columns = [
        pa.array(stamps, pa.timestamp("us", "Europe/Madrid")),
        pa.array([stamp.replace(tzinfo=None) for stamp in stamps], pa.timestamp("ns")),
        pa.array(ms, pa.int64()),
        pa.array([m / 1000 for m in ms], pa.float64()),
        pa.array([stamp.isoformat() for stamp in stamps]),
    ]
    for column in columns:
        table = pa.table({"cell": ["a", "a"], "time": column, "x": [1, 2], "n": ["7", "8"]})
        path = tmp_path / "t.parquet"
        pyarrow.parquet.write_table(table, path)
        assert rows(read(path)) == [
            ("a", "x", START + STEP, STEP, 1.0, False),
            ("a", "x", START + 2 * STEP, STEP, 2.0, False),
        ]


def test_parquet_texts_of_any_layout_are_names_and_no_kpis(tmp_path: Path) -> None:
    layouts = (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    )
    for layout in layouts:
        table = pa.table(
            {
                "time": pa.array([f"2026-11-29T{hour}:00:00Z" for hour in (15, 16)]).cast(layout),
                "cell": pa.array([" c", "c "]).cast(layout),
                "band": pa.array(["1800", "2100"]).cast(layout),
                "x": [1, 2],
            }
        )
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
        found = rows(read(tmp_path / "t.parquet"))
        assert [(row[0], row[1], row[4]) for row in found] == [("c", "x", 1.0), ("c", "x", 2.0)]


def test_categories_that_no_row_has_do_not_count(tmp_path: Path) -> None:
    stamps = ["never", "2026-11-29T15:00:00Z", "2026-11-29T15:15:00Z"]
    times = pa.DictionaryArray.from_arrays(pa.array([1, 2]), stamps)
    table = pa.table({"time": times, "cell": ["c", "c"], "x": [1, 2]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert [row[2] for row in rows(read(tmp_path / "t.parquet"))] == [
        START + STEP,
        START + 2 * STEP,
    ]


def test_parquet_column_of_lists_is_no_kpi_and_no_cell(tmp_path: Path) -> None:
    table = pa.table({"time": [START, START + STEP], "cell": ["c", "c"], "x": [1, 2]})
    lists = pa.array([["c"], ["c"]])
    pyarrow.parquet.write_table(table.append_column("y", lists), tmp_path / "t.parquet")
    assert {row[1] for row in rows(read(tmp_path / "t.parquet"))} == {"x"}
    pyarrow.parquet.write_table(table.set_column(1, "cell", lists), tmp_path / "t.parquet")
    with pytest.raises(UnreadableFileError, match="in column 'cell', got list"):
        read(tmp_path / "t.parquet")


PEAK_OF_ARROW = """
import pathlib, sys, pyarrow
from kpi.readers import read
print(sum(map(len, read(pathlib.Path(sys.argv[1])))), pyarrow.default_memory_pool().max_memory())
"""


def test_parquet_of_one_long_text_in_every_row_stays_small_in_memory(tmp_path: Path) -> None:
    size = 100
    text = pa.DictionaryArray.from_arrays(pa.array([0] * size, pa.int8()), ["x" * 2**20])
    times = [START + STEP * i for i in range(size)]
    table = pa.table({"time": times, "cell": text, "note": text, "x": [1] * size})
    path = tmp_path / "bomb.parquet"
    pyarrow.parquet.write_table(table, path, store_schema=False)
    # A process of its own, as the peak of this one's memory is that of all tests.
    answer = subprocess.check_output([sys.executable, "-c", PEAK_OF_ARROW, path], text=True)
    samples, peak = map(int, answer.split())
    assert samples == size
    assert peak < 20 * 2**20


def test_parquet_that_decompresses_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    table = pa.table({"cell": ["c"] * 2, "time": [START, START + STEP], "x": [1, 2]})
    table = table.append_column("note", pa.array(["y" * 10_000] * 2))
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table, path, compression="zstd")
    size = path.stat().st_size
    assert size < 5000
    with pytest.raises(UnreadableFileError, match="5000 bytes after decompression"):
        read(path, ReadOptions(limits=ReadLimits(max_bytes=5000)))


def test_parquet_booleans_are_flags_and_no_kpis(tmp_path: Path) -> None:
    table = pa.table(
        {
            "cell": ["a", "a"],
            "time": [START, START + STEP],
            "suspect": [True, None],
            "odd": [True, False],
            "x": pa.array([1.5, float("inf")]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert [row[4:] for row in rows(read(tmp_path / "t.parquet"))] == [(1.5, True), (None, False)]


def test_both_clock_changes_of_a_local_table(tmp_path: Path) -> None:
    autumn = [f"2026-10-25 0{hour}:00" for hour in (1, 2, 2, 3)]
    assert ends(tmp_path, autumn, MADRID) == utc(
        "2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00", "2026-10-25T03:00"
    )
    spring = [f"2026-03-29 0{hour}:00:00" for hour in (1, 3, 4)]
    assert ends(tmp_path, spring, MADRID) == utc(
        "2026-03-29T01:00", "2026-03-29T02:00", "2026-03-29T03:00"
    )
    skipped = ends(tmp_path, ["2026-03-29 01:30", "2026-03-29 02:30"], MADRID)
    assert skipped[1] - skipped[0] == 3_600_000


def test_second_pass_is_told_by_stamps_that_go_back_although_some_are_missing() -> None:
    wall = utc("2026-10-25T02:00", "2026-10-25T02:45", "2026-10-25T02:30", "2026-10-25T02:45")
    zone = ZoneInfo("Europe/Madrid")
    expected = utc("2026-10-25T00:00", "2026-10-25T00:45", "2026-10-25T01:30", "2026-10-25T01:45")
    one = np.zeros(4, dtype=np.int64)
    assert to_utc(np.array(wall), one, zone).tolist() == expected
    assert to_utc(np.array(wall[::-1]), one, zone).tolist() == expected[::-1]


@pytest.mark.parametrize("direction", [1, -1])
def test_passes_side_by_side_in_a_table_sorted_by_local_time_are_told_apart(direction: int) -> None:
    minutes = [105, 120, 120, 135, 135, 150, 165, 165, 180][::direction]
    wall = np.array(utc("2026-10-25T00:00")[0]) + 60_000 * np.array(minutes)
    series = np.zeros(len(wall), dtype=np.int64)
    times = to_utc(wall, series, ZoneInfo("Europe/Madrid"))
    later = (np.sort(times) - times.min()) // 60_000
    assert later.tolist() == [0, 15, 30, 45, 60, 75, 90, 120, 135]


def test_series_and_years_do_not_disturb_each_other() -> None:
    zone = ZoneInfo("Europe/Madrid")
    wall = utc("2025-10-26T02:30", "2025-10-26T02:30", "2026-10-25T02:30", "2026-10-25T02:30")
    expected = utc("2025-10-26T00:30", "2025-10-26T01:30", "2026-10-25T00:30", "2026-10-25T01:30")
    twice = np.repeat(np.array(wall), 2)
    series = np.tile(np.array([3, 8]), 4)
    assert to_utc(twice, series, zone).tolist() == np.repeat(expected, 2).tolist()


@given(
    name=st.sampled_from(["Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "UTC"]),
    day=st.integers(0, 364),
    days=st.integers(1, 3),
    minutes=st.sampled_from([5, 15, 30]),
    downwards=st.booleans(),
)
def test_local_series_returns_to_utc_through_any_night(
    name: str, day: int, days: int, minutes: int, downwards: bool
) -> None:
    zone = ZoneInfo(name)
    # No clock of these zones changes at 12:00 UTC, so that both passes lie inside.
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=day)
    steps = range(0, days * 24 * 60, minutes)
    stamps = [noon + timedelta(minutes=step) for step in steps]
    if downwards:
        stamps.reverse()
    wall = [
        round(stamp.astimezone(zone).replace(tzinfo=UTC).timestamp() * 1000) for stamp in stamps
    ]
    found = to_utc(np.array(wall), np.zeros(len(wall), dtype=np.int64), zone)
    assert found.tolist() == [round(stamp.timestamp() * 1000) for stamp in stamps]


def test_period_is_the_median_spacing_of_each_cell() -> None:
    times = np.array([0, 60, 120, 600, 0, 900, 1800, 5])
    cells = np.array([0, 0, 0, 0, 2, 2, 2, 1])
    assert infer_periods(times, cells).tolist() == [60, 60, 900]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a,b\n1,2\n", "time stamps such as 'timestamp'"),
        ("timestamp,b\n1,2\n", "cells such as 'cell'"),
        ("timestamp,cell,x,x\n1,2,3,4\n", "distinct column names"),
        ("timestamp,cell,note\n2026-01-01T00:00Z,a,b\n2026-01-01T00:15Z,a,c\n", "numeric column"),
        ("timestamp,cell,x\nyesterday,a,1\n", "row 1: expected a time"),
        ("timestamp,cell,x\n2026-01-01T00:00Z,a,1\n", "period_seconds"),
        ("timestamp,cell,x\n", "found none"),
        ("timestamp,cell,x\n2026-01-01T00:00Z,a\n", "columns"),
        ("timestamp,x,cell\rid\n2026-01-01T00:00Z,1,a\n", "new-line"),
        ('timestamp,x,"cell\nid"\n2026-01-01T00:00Z,1,a\n', "in one line"),
        ("timestamp,cell,kpi,value\n2026-01-01T00:00Z,a,k,v\n2026-01-01T01:00Z,a,k,w\n", "text"),
        (b"timestamp,cell,x\n2026-01-01T00:00Z,\xff\xfe,1\n", "table"),
        (b"\x00\x01\x02\x03", "binary"),
        ("\ufeffa\tb".encode("utf-16"), "UTF-16"),
    ],
)
def test_bad_table_is_refused_with_its_reason(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    with pytest.raises(UnreadableFileError, match=reason):
        read_text(tmp_path, content)


def test_mapped_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    options = ReadOptions(columns=ColumnMapping(cell="nowhere"))
    with pytest.raises(UnreadableFileError, match="nowhere"):
        read_text(tmp_path, WIDE, options)


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        ([5, START], "row 1: expected seconds"),
        ([START, START * 1000], "one unit"),
        ([None, None], "found none"),
    ],
)
def test_epoch_numbers_without_one_sense_are_refused(
    tmp_path: Path, stamps: list[int | None], reason: str
) -> None:
    table = pa.table({"cell": ["a", "a"], "time": pa.array(stamps, pa.int64()), "x": [1, 2]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(UnreadableFileError, match=reason):
        list(read(tmp_path / "t.parquet"))


def test_damaged_parquet_and_bombs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="table"):
        read(write(tmp_path, b"PAR1 nothing of the kind PAR1"))
    table = pa.table({"cell": ["a"] * 5000, "time": [START] * 5000, "x": [0] * 5000})
    pyarrow.parquet.write_table(table, tmp_path / "bomb.parquet")
    for limits, reason in (
        (ReadLimits(max_samples=100), "at most 400 values"),
        (ReadLimits(max_bytes=100), "at most 100 bytes"),
    ):
        with pytest.raises(UnreadableFileError, match=reason):
            read(tmp_path / "bomb.parquet", ReadOptions(limits=limits))
    with pytest.raises(UnreadableFileError, match="at most 1 samples"):
        read_text(tmp_path, WIDE, ReadOptions(limits=ReadLimits(max_samples=1)))
    with pytest.raises(UnreadableFileError, match="inside gzip"):
        read(write(tmp_path, gzip.compress((tmp_path / "bomb.parquet").read_bytes())))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"kpi": "a"}, "both kpi and value"),
        ({"stamp": "middle"}, "stamp"),
        ({"period_seconds": 0}, "period_seconds"),
        ({"period_seconds": float("nan")}, "period_seconds"),
    ],
)
def test_mapping_without_sense_is_refused(arguments: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ColumnMapping(**arguments)


# The real files.


def test_real_traces(shared: Path) -> None:
    data = shared / "data"
    hourly = list(read(data / "lte8_hourly.parquet"))
    assert sum(map(len, hourly)) == 70_080
    first = hourly[0]
    assert first.cells[first.cell_index[0]] == "Cell_000112"
    assert first.period_end_ms[0] == 1_508_720_400_000  # 2017-10-23T01:00Z: the stamp is a start
    assert first.values[0] == pytest.approx(59.1529, abs=1e-4)
    assert {int(p) for batch in hourly for p in np.unique(batch.period_ms)} == {3_600_000}
    city = list(read(data / "barcelona_lte_2min.parquet"))
    assert sum(map(len, city)) == 33_765 * 7
    assert "split" not in city[0].kpis
    assert {int(p) for batch in city for p in np.unique(batch.period_ms)} == {120_000}
