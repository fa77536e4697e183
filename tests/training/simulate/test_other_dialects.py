"""OMeS, PM reports and tables."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from lxml import etree

from training.simulate.dialects import DIALECTS, expressible
from training.simulate.faults import FaultRates
from training.simulate.measurements import MEASUREMENTS


def omes(report) -> etree._Element:
    return etree.fromstring(DIALECTS["nokia"].encode(report))


def test_omes_has_one_setup_a_period_with_minutes_and_an_offset_with_seconds(make_report):
    root = omes(make_report(3))
    assert root.tag == "OMeS"
    assert [s.get("startTime") for s in root] == [
        "2026-11-02T01:00:00.000+01:00:00",
        "2026-11-02T01:15:00.000+01:00:00",
        "2026-11-02T01:30:00.000+01:00:00",
    ]
    assert {s.get("interval") for s in root} == {"15"}
    west = omes(make_report(time_zone="America/New_York"))
    assert west[0].get("startTime") == "2026-11-01T19:00:00.000-05:00:00"


def test_omes_counters_give_back_the_measurements(make_report):
    report = make_report()
    root = omes(report)
    for cell in (0, 1):
        dn = f"PLMN-PLMN/MRBTS-1/NRBTS-1/NRCELL-{cell + 1}"
        counters = {
            counter.tag: float(str(counter.text))
            for result in root.iterfind("PMSetup/PMMOResult")
            if result.findtext("MO/DN") == dn
            for counter in result.iterfind("PMTarget/*")
        }
        truth = dict(zip(report.kpis, report.values[cell, :, 0], strict=True))
        assert 100 * counters["M55308C10001"] / counters["M55308C10003"] == pytest.approx(
            truth["RRU.PrbTotDl"], abs=1e-5
        )
        assert 100 * counters["M55308C10002"] / counters["M55308C10004"] == pytest.approx(
            truth["RRU.PrbTotUl"], abs=1e-5
        )
        assert counters["M55308C02001"] == truth["DRB.MaxActiveUeDl"]
        assert counters["M55309C01001"] * 8e-6 == pytest.approx(truth["DRB.PdcpSduVolumeDL"])
        assert counters["M55309C02001"] * 8e-6 == pytest.approx(truth["DRB.PdcpSduVolumeUL"])


def test_omes_elements_are_in_the_order_of_the_format(make_report):
    for result in omes(make_report(2)).iterfind("PMSetup/PMMOResult"):
        assert [child.tag for child in result] == ["MO", "PMTarget"]
        assert result[1].get("measurementType") in {"NCELA", "NMSDU"}


def test_omes_leaves_out_what_is_missing_or_suspect(make_report):
    faults = FaultRates(missing_counter=0.4, suspect=0.3)
    report = make_report(40, faults=faults)
    rows = [report.kpis.index(name) for name in sorted(expressible("nokia"))]
    kept = ~np.isnan(report.values[:, rows]) & ~report.suspect[:, None]
    pairs = np.array([2 if "Prb" in report.kpis[k] else 1 for k in rows])
    counters = omes(report).findall("PMSetup/PMMOResult/PMTarget/*")
    assert len(counters) == (kept.sum(axis=(0, 2)) * pairs).sum()


def test_pm_reports_have_the_fields_of_the_chain(make_report):
    report = make_report()
    event = json.loads(DIALECTS["pm-report"].encode(report))["event"]
    header = event["commonEventHeader"]
    begin_us = int(datetime(2026, 11, 2, tzinfo=UTC).timestamp() * 1e6)
    assert header["sourceName"] == "GNB-1"
    assert header["startEpochMicrosec"] == begin_us
    assert header["lastEpochMicrosec"] == begin_us + 900_000_000
    assert header["timeZoneOffset"] == "UTC+0100"
    data = event["perf3gppFields"]["measDataCollection"]
    assert data["granularityPeriod"] == 900
    assert data["measuredEntityDn"] == "ManagedElement=GNB-1"
    info = data["measInfoList"][0]
    assert info["measTypes"]["sMeasTypesList"] == list(report.kpis)
    for c, value in enumerate(info["measValuesList"]):
        assert value["measObjInstId"] == f"GNBDUFunction=1,NRCellDU={c + 1}"
        assert value["suspectFlag"] == "false"
        assert [r["p"] for r in value["measResults"]] == list(range(1, len(report.kpis) + 1))
        assert [float(r["sValue"]) for r in value["measResults"]] == (
            report.values[c, :, 0].tolist()
        )


def test_pm_reports_carry_suspect_flags_and_gaps_as_text(make_report):
    faults = FaultRates(suspect=1.0, missing_counter=0.5)
    report = make_report(faults=faults)
    text = DIALECTS["pm-report"].encode(report).decode()
    data = json.loads(text)["event"]["perf3gppFields"]["measDataCollection"]
    values = data["measInfoList"][0]["measValuesList"]
    assert {v["suspectFlag"] for v in values} == {"true"}
    kept = sum(len(v["measResults"]) for v in values)
    assert kept == (~report.omitted).sum()
    assert '"sValue":"NIL"' in text


def read_table(form: str, content: bytes) -> pa.Table:
    source = io.BytesIO(content)
    return pa.parquet.read_table(source) if form == "parquet" else pa.csv.read_csv(source)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_have_a_row_for_each_cell_and_period(make_report, form):
    faults = FaultRates(missing_counter=0.2, suspect=0.3, missing_file=0.2)
    report = make_report(12, faults=faults)
    assert len(report.periods) < 12
    found = read_table(form, DIALECTS[form].encode(report))
    assert found.column_names == ["timestamp", "cell", *report.kpis, "suspect"]
    assert found.num_rows == 2 * len(report.periods)
    for k, name in enumerate(report.kpis):
        column = found[name].to_numpy(zero_copy_only=False).astype(float)
        np.testing.assert_array_equal(column, report.values[:, k].T.ravel())
    assert found["suspect"].to_pylist() == report.suspect.T.ravel().tolist()
    assert found["cell"][:2].to_pylist() == [
        "ManagedElement=GNB-1,GNBDUFunction=1,NRCellDU=1",
        "ManagedElement=GNB-1,GNBDUFunction=1,NRCellDU=2",
    ]
    begins = [stamp.timestamp() * 1000 for stamp in found["timestamp"][::2].to_pylist()]
    assert begins == (report.periods * 900_000).tolist()


def test_csv_stamps_state_their_offset_and_counts_have_no_point(make_report):
    text = DIALECTS["csv"].encode(make_report()).decode()
    row = next(csv.DictReader(io.StringIO(text)))
    assert row["timestamp"] == "2026-11-02T01:00:00+01:00"
    assert row["RRC.ConnMax"].isdigit()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_equal_reports_give_equal_files(make_report, dialect):
    faults = FaultRates(missing_counter=0.2, suspect=0.3, wrong_clock=0.5)
    first, again = make_report(faults=faults), make_report(faults=faults)
    assert DIALECTS[dialect].encode(first) == DIALECTS[dialect].encode(again)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_tell_something(dialect):
    assert expressible(dialect) <= set(MEASUREMENTS)
    assert expressible(dialect)
