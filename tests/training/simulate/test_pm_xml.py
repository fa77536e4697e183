"""PM XML: the structure that TS 32.435 and TS 28.532 prescribe, and what vendors make of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import pytest
from lxml import etree

from training.simulate.dialects import DIALECTS
from training.simulate.faults import FaultRates

NAMESPACES = {
    "measCollecFile": "http://www.3gpp.org/ftp/specs/archive/32_series/32.435#measCollec",
    "measDataFile": "http://www.3gpp.org/ftp/specs/archive/28_series/28.532#measData",
}
XML_DIALECTS = ["3gpp-28532", "3gpp-32435", "ericsson", "keysight"]

# Children in order as a regular expression over their names, required and optional attributes.
COMMON = {
    "measInfo": (
        r"(job )?granPeriod (repPeriod )?(measTypes |(measType )+)(measValue )*",
        {"measInfoId"},
    ),
    "measValue": (r"(measResults |(r )*)(suspect )?", {"measObjLdn"}),
    "job": ("", {"jobId"}),
    "granPeriod": ("", {"duration", "endTime"}),
    "repPeriod": ("", {"duration"}),
    "measTypes": ("", set()),
    "measType": ("", {"p"}),
    "measResults": ("", set()),
    "r": ("", {"p"}),
    "suspect": ("", set()),
}
SCHEMAS = {
    "measCollecFile": {
        **COMMON,
        "measCollecFile": ("fileHeader (measData )*fileFooter ", set()),
        "fileHeader": (
            "fileSender measCollec ",
            {"fileFormatVersion", "vendorName", "dnPrefix"},
        ),
        "fileSender": ("", {"localDn", "elementType"}),
        "fileFooter": ("measCollec ", set()),
        "measData": ("managedElement (measInfo )*", set()),
        "managedElement": ("", {"localDn", "swVersion"}),
    },
    "measDataFile": {
        **COMMON,
        "measDataFile": ("fileHeader (measData )*fileFooter ", set()),
        "fileHeader": ("fileSender measData ", {"fileFormatVersion", "vendorName", "dnPrefix"}),
        "fileSender": ("", {"senderName", "senderType"}),
        "fileFooter": ("measData ", set()),
        "measEntity": ("", {"localDn", "swVersion"}),
    },
}
# In TS 28.532 measData is a stamp in header and footer, and the data between them.
STAMPS = {"measCollec", "measData"}


def local(element: etree._Element) -> str:
    return etree.QName(element).localname


def check(element: etree._Element, root: str) -> None:
    """Assert that an element and all below it follow the schema of `root`."""
    name = local(element)
    assert etree.QName(element).namespace == NAMESPACES[root]
    children = "".join(f"{local(child)} " for child in element)
    if name in STAMPS and element.attrib:
        assert set(element.attrib) <= {"beginTime", "endTime"}
        assert not len(element)
        return
    if name == "measData" and root == "measDataFile":
        model: str = "measEntity (measInfo )*"
        attributes: set[str] = set()
    else:
        model, attributes = SCHEMAS[root][name]
    assert re.fullmatch(model, children), f"{name}: {children}"
    given = {a for a in element.attrib if not str(a).startswith("{")}
    assert given <= attributes, f"{name}: {given}"
    for child in element:
        check(child, root)


def parsed(content: bytes) -> etree._Element:
    """The root; a stylesheet instruction before the declaration is moved away."""
    head, declaration, rest = content.partition(b"<?xml version")
    assert not head or head.startswith(b"<?xml-stylesheet")
    return etree.fromstring(declaration + rest)


def find(root: etree._Element, path: str) -> etree._Element:
    """The first element of that path, which has to be there."""
    element = root.find(path)
    assert element is not None, path
    return element


def stamp(element: etree._Element, name: str = "endTime") -> datetime:
    return datetime.fromisoformat(str(element.get(name)))


def texts(root: etree._Element, path: str) -> list[str | None]:
    return [element.text for element in root.iterfind(path)]


@pytest.mark.parametrize("dialect", XML_DIALECTS)
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_files_have_the_structure_of_their_specification(make_report, dialect, compact, count):
    faults = FaultRates(missing_counter=0.3, suspect=0.4, wrong_clock=1.0)
    content = DIALECTS[dialect].encode(make_report(count, faults=faults), compact=compact)
    root = parsed(content)
    check(root, local(root))


@pytest.mark.parametrize(
    ("dialect", "root"),
    [
        ("3gpp-28532", "measDataFile"),
        ("3gpp-32435", "measCollecFile"),
        ("ericsson", "measCollecFile"),
        ("keysight", "measDataFile"),
    ],
)
def test_each_dialect_has_its_root(make_report, dialect, root):
    assert local(parsed(DIALECTS[dialect].encode(make_report()))) == root


def test_times_are_local_and_cover_the_file(make_report):
    report = make_report(3, start=datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
    root = parsed(DIALECTS["3gpp-32435"].encode(report))
    assert find(root, "{*}fileHeader/{*}measCollec").get("beginTime") == (
        "2026-10-25T02:30:00+02:00"
    )
    assert find(root, "{*}fileFooter/{*}measCollec").get("endTime") == ("2026-10-25T02:15:00+01:00")
    periods = root.findall("{*}measData/{*}measInfo/{*}granPeriod")
    assert [p.get("endTime") for p in periods] == [
        "2026-10-25T02:45:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T02:15:00+01:00",
    ]
    assert {p.get("duration") for p in periods} == {"PT900S"}
    assert find(root, "{*}measData/{*}measInfo/{*}repPeriod").get("duration") == "PT2700S"


def test_a_wrong_clock_moves_every_stamp_and_not_the_name(make_report):
    right = make_report()
    wrong = make_report(faults=FaultRates(wrong_clock=1.0))
    assert wrong.clock_ms != 0
    assert DIALECTS["3gpp-32435"].file_name(wrong) == DIALECTS["3gpp-32435"].file_name(right)
    root = parsed(DIALECTS["3gpp-32435"].encode(wrong))
    moved = stamp(find(root, ".//{*}granPeriod")) - right.end()
    assert moved.total_seconds() * 1000 == wrong.clock_ms


def test_positional_results_are_the_values_as_decimal_digits(make_report):
    report = make_report()
    root = parsed(DIALECTS["3gpp-28532"].encode(report))
    assert texts(root, ".//{*}measType") == list(report.kpis)
    value = root.findall(".//{*}measValue")[1]
    assert value.get("measObjLdn") == "GNBDUFunction=1,NRCellDU=2"
    numbers = [float(str(r.text)) for r in value.findall("{*}r")]
    assert numbers == report.values[1, :, 0].tolist()


def test_missing_values_are_nil_or_left_out_and_positions_stay(make_report):
    report = make_report(20, faults=FaultRates(missing_counter=0.5))
    root = parsed(DIALECTS["3gpp-28532"].encode(report))
    for i, info in enumerate(root.findall(".//{*}measInfo")):
        for c, value in enumerate(info.findall("{*}measValue")):
            found = {int(str(r.get("p"))): str(r.text) for r in value.findall("{*}r")}
            for k in range(len(report.kpis)):
                if report.omitted[c, k, i]:
                    assert k + 1 not in found
                elif np.isnan(report.values[c, k, i]):
                    assert found[k + 1] == "NIL"
                else:
                    assert float(found[k + 1]) == report.values[c, k, i]


def test_compact_results_are_as_many_as_the_types(make_report):
    report = make_report(faults=FaultRates(missing_counter=0.5))
    root = parsed(DIALECTS["3gpp-32435"].encode(report, compact=True))
    names = str(find(root, ".//{*}measTypes").text).split()
    assert names == list(report.kpis)
    for c, results in enumerate(texts(root, ".//{*}measResults")):
        assert results is not None
        numbers = [float("nan" if t == "NIL" else t) for t in results.split()]
        np.testing.assert_array_equal(numbers, report.values[c, :, 0])


@pytest.mark.parametrize("dialect", XML_DIALECTS)
def test_suspect_results_say_so(make_report, dialect):
    report = make_report(30, faults=FaultRates(suspect=0.5))
    root = parsed(DIALECTS[dialect].encode(report))
    flags = texts(root, ".//{*}suspect")
    assert set(flags) == ({"true", "false"} if dialect == "keysight" else {"true"})
    tables = len(root.findall(".//{*}measInfo")) // 30
    assert flags.count("true") == tables * report.suspect.sum()


def test_keysight_files_are_not_well_formed_and_off_the_grid(make_report):
    content = DIALECTS["keysight"].encode(make_report())
    with pytest.raises(etree.XMLSyntaxError):
        etree.fromstring(content)
    root = parsed(content)
    ends = {p.get("endTime") for p in root.iterfind(".//{*}granPeriod")}
    assert ends == {"2026-11-02T01:15:23+01:00"}
    names = texts(root, ".//{*}measType")
    assert names[:3] == ["RRU.PrbTotDl", "RRU.PrbTotDl.01", "RRU.PrbTotDl.010003e8"]
    assert "RRC.ConnMean.01" not in names
    assert find(root, ".//{*}measInfo").get("measInfoId") == "5.1.1.2.1"
    assert find(root, ".//{*}measEntity").get("swVersion") is None


def test_a_late_stamp_stays_nearer_to_its_own_period_than_to_the_next(make_report):
    report = make_report(period_ms=60_000)
    root = parsed(DIALECTS["keysight"].encode(report))
    end = stamp(find(root, ".//{*}granPeriod"))
    assert 0 < (end - report.end()).total_seconds() < 30


def ericsson_values(root: etree._Element, cell: int) -> dict[str, str | None]:
    found = {}
    for info in root.iterfind(".//{*}measInfo"):
        names = {t.get("p"): t.text for t in info.findall("{*}measType")}
        for r in info.findall("{*}measValue")[cell].findall("{*}r"):
            found[str(names[r.get("p")])] = r.text
    return found


def test_ericsson_counters_give_back_the_measurements(make_report):
    report = make_report()
    root = parsed(DIALECTS["ericsson"].encode(report))
    for cell in (0, 1):
        counters = ericsson_values(root, cell)
        n = {k: float(v) for k, v in counters.items() if v and "," not in v}
        truth = dict(zip(report.kpis, report.values[cell, :, 0], strict=True))
        derived = {
            "RRU.PrbTotDl": 100 * n["pmMacRBSymUsedPdschTypeA"] / n["pmMacRBSymAvailDl"],
            "RRU.PrbTotUl": 100 * n["pmMacRBSymUsedPuschTypeA"] / n["pmMacRBSymAvailUl"],
            "DRB.PdcpSduVolumeDL": n["pmMacVolDl"] / 1e6,
            "DRB.PdcpSduVolumeUL": n["pmMacVolUl"] / 1e6,
            "DRB.UEThpDl": n["pmMacVolDlDrb"] / n["pmMacTimeDlDrb"],
            "DRB.UEThpUl": n["pmMacVolUlResUe"] / n["pmMacTimeUlResUe"],
            "DRB.MeanActiveUeDl": n["pmActiveUeDlSum"] / n["pmActiveUeDlSamp"],
            "DRB.MaxActiveUeDl": n["pmActiveUeDlMax"],
            "DRB.MeanActiveUeUl": n["pmActiveUeUlSum"] / n["pmActiveUeUlSamp"],
            "RRC.ConnMean": n["pmRrcConnLevelSumSa"] / n["pmRrcConnLevelSamp"],
            "RRC.ConnMax": n["pmRrcConnLevelMaxSa"],
            "RRC.ConnEstabAtt": n["pmRrcConnEstabAtt"],
            "RRC.ConnEstabSucc": n["pmRrcConnEstabSucc"],
            "PEE.Energy": n["pmConsumedEnergy"] / 1000,
        }
        assert set(derived) == set(truth) - {"PEE.AvgPower"}
        for name, value in derived.items():
            assert value == pytest.approx(truth[name], rel=1e-6, abs=3e-3), name


def test_ericsson_distributions_are_comma_lists_of_the_total(make_report):
    counters = ericsson_values(parsed(DIALECTS["ericsson"].encode(make_report())), 0)
    parts = str(counters["pmMacRBSymUsedPdschMimoUserDistr"]).split(",")
    assert len(parts) == 8
    assert sum(map(int, parts)) == int(str(counters["pmMacRBSymUsedPdschTypeA"]))


def test_ericsson_objects_are_split_between_units_and_named_with_their_element(make_report):
    root = parsed(DIALECTS["ericsson"].encode(make_report()))
    assert find(root, ".//{*}managedElement").get("localDn") == "GNB-1"
    names = {v.get("measObjLdn") for v in root.iterfind(".//{*}measValue")}
    assert names == {
        f"ManagedElement=GNB-1,{path}"
        for c in (1, 2)
        for path in (
            f"GNBDUFunction=1,NRCellDU={c}",
            f"GNBCUCPFunction=1,NRCellCU={c}",
            f"Equipment=1,FieldReplaceableUnit=RRU-{c},EnergyMeter=1",
        )
    }


def test_ericsson_blanks_are_missing_values(make_report):
    report = make_report(20, faults=FaultRates(missing_counter=0.5))
    root = parsed(DIALECTS["ericsson"].encode(report))
    results = texts(root, ".//{*}r")
    assert " " in results
    assert "NIL" not in results
    assert all(text == " " or text for text in results)


def test_ericsson_leaves_out_groups_without_measurements(make_report):
    root = parsed(DIALECTS["ericsson"].encode(make_report(kpis=("RRC.ConnMax",))))
    assert texts(root, ".//{*}measType") == ["pmRrcConnLevelMaxSa"]
