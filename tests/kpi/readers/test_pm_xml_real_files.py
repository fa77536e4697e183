"""PM XML files of real networks, with values that were read off the files by eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpi.errors import UnreadableFileError
from kpi.readers import ReadOptions, read
from tests.kpi.readers.pm_files import read_text, rows, values

END = 1_795_965_300_000  # 2026-11-29T15:15:00Z


def sample(shared: Path, start: str) -> Path:
    (found,) = (shared / "samples" / "pm").glob(f"{start}*")
    return found


def test_real_ericsson_file(shared: Path) -> None:
    found = rows(read(sample(shared, "ericsson_A2022")))
    end = 1_650_309_300_000  # 2022-04-18T19:15:00Z
    assert {row[2:4] for row in found} == {(end, 900_000)}
    plain = [row for row in found if not row[1].endswith("]")]
    derived = [row for row in found if row[1] in DERIVED]
    # 2667 results, of which 409 are lists; 11 995 numbers in all.
    assert len(found) - len(derived) == 11_995
    assert len(plain) - len(derived) == 2667 - 409
    assert sum(row[4] is None for row in plain if row not in derived) == 27
    assert all(row[0].startswith("ManagedElement=seliitdus00487") for row in found)
    assert len({row[0] for row in found if row[5]}) == 2
    by_name = {(row[0], row[1]): row[4] for row in found}
    node = "ManagedElement=seliitdus00487"
    assert by_name[f"{node},GNBDUFunction=1,NRCellDU=32", "pmRadioPdschEmptySlots"] == 1_440_001.0
    assert by_name[f"{node},GNBCUCPFunction=1", "pmRrcConnLevelSamp"] == 180.0
    assert by_name[f"{node},GNBCUCPFunction=1", "RRC.ConnMean.EnDc"] == 0.0
    assert by_name[f"{node},ENodeBFunction=1", "RRC.ConnMean.BrEnb"] is None, "0 / 0 samples"
    used = by_name[f"{node},GNBDUFunction=1,NRCellDU=32", "RRU.PrbTotUl"]
    assert used == pytest.approx(100 * 2_520 / 816_482_268)


DERIVED = {
    "DRB.MeanActiveUeDl",
    "DRB.MeanActiveUeUl",
    "RRC.ConnMean.EnDc",
    "RRC.ConnMean.Sa",
    "RRC.ConnMean.NrDc",
    "DRB.Mean.EnDc",
    "DRB.Mean.Sa",
    "RRC.ConnMean.BrEnb",
    "RRU.PrbLicensedUsedDl",
    "RRU.PrbLicensedUsedUl",
    "RRU.PrbTotDl",
    "RRU.PrbTotUl",
}


def test_real_keysight_file(shared: Path) -> None:
    found = rows(read(sample(shared, "keysight-28532")))
    assert len(found) == 284
    first, second = 1_733_909_663_000, 1_733_909_723_000  # 09:34:23 and 09:35:23, off the grid
    assert {row[2:4] for row in found} == {(first, 60_000), (second, 60_000)}
    by_key = {(row[1], row[2], row[0]): row[4] for row in found}
    cell = "ManagedElement=GNB-1,GNBDUFunction=1,NRCellDU=1"
    assert by_key["RRU.PrbUsedUl.226F04", second, cell] == 0.0
    assert any(row[0] == "ManagedElement=GNB-1" and row[1] == "PEE.AvgPower" for row in found)
    assert not any("ManagedElement=GNB-1,ManagedElement" in row[0] for row in found)


RNC = "SubNetwork=CountryNN,MeContext=MEC-Gbg-1,ManagedElement=RNC-Gbg-1"
GBG = f"{RNC},RncFunction=RF-1,UtranCell=Gbg-"


def test_real_compact_file_with_a_newline_equals_its_positional_twin(shared: Path) -> None:
    compact = rows(read(sample(shared, "boda-32435_A1")))
    assert compact == rows(read(sample(shared, "boda-32435_A2")))
    end = 951_912_870_000  # 2000-03-01T12:14:30Z
    assert compact[3] == (f"{GBG}997", "succImmediateAssignProcs", end, 900_000, 789.0, False)
    assert compact[8] == (f"{GBG}999", "attTCHSeizures", end, 900_000, 456.0, True)


def test_real_file_with_missing_results(shared: Path) -> None:
    assert values(read(sample(shared, "boda-32435_A4"))) == {
        (f"{GBG}997", "attTCHSeizures"): 234.0,
        (f"{GBG}997", "succTCHSeizures"): 345.0,
        (f"{GBG}997", "succImmediateAssignProcs"): 789.0,
        (f"{GBG}998", "attTCHSeizures"): 890.0,
        (f"{GBG}998", "succTCHSeizures"): 901.0,
        (f"{GBG}998", "attImmediateAssignProcs"): 123.0,
        (f"{GBG}999", "succTCHSeizures"): 567.0,
        (f"{GBG}999", "attImmediateAssignProcs"): 678.0,
        (f"{GBG}999", "succImmediateAssignProcs"): 789.0,
    }


def test_real_file_with_two_periods_and_two_offsets(shared: Path) -> None:
    found = rows(read(sample(shared, "boda-32435_A3")))
    end = 1_118_344_500_000  # 2005-06-09T13:15:00-06:00
    assert found[0] == (
        "ManagedElement=PS_Core,SgsnFunction=1",
        "MM.AttGprsAttach",
        end,
        900_000,
        10.0,
        False,
    )
    assert found[-1] == (
        "ManagedElement=PS_Core,SgsnFunction=3",
        "MM.SuccPsPagingProcIu",
        end,
        1_800_000,
        25.0,
        False,
    )


def test_real_file_without_zone_and_with_junk(shared: Path) -> None:
    options = ReadOptions(time_zone="Europe/Madrid", on_warning=lambda _: None)
    found = rows(read(sample(shared, "boda-32435_cloud"), options))
    end = 951_919_200_000  # 2000-03-01T15:00:00+01:00
    assert [row[1:5] for row in found] == [
        ("Provisioned_Server_Capacity", end, 60_000, 6.0),
        ("Provisioned_Bearer_Capacity", end, 60_000, 360.0),
        ("Signaling_Link_Capacity", end, 60_000, 1.0),
        ("Maximum_Service_Capacity", end, 60_000, 360.0),
        ("...", end, 60_000, None),
    ]
    assert {row[0] for row in found} == {"NodeName"}


def test_real_type_c_file(shared: Path) -> None:
    found = rows(read(sample(shared, "onap-28532-typeC")))
    assert [(row[0], row[2], row[3], row[4]) for row in found[::4]] == [
        ("Dublin1,objLdn", 1_002_024_900_000, 100_000, 1.0),
        ("Dublin2,objLdn", 1_033_560_900_000, 200_000, 2.0),
        ("Dublin3,objLdn", 1_065_096_900_000, 300_000, 3.0),
    ]
    assert len(found) == 12


def test_real_onap_files(shared: Path) -> None:
    assert values(read(sample(shared, "onap-32435_measTypes"))) == {
        ("Dublin,objLdn", "a"): 76.0,
        ("Dublin,objLdn", "b"): 27.0,
        ("Dublin,objLdn", "c"): 98.0,
        ("Dublin,some other objLdn", "a"): 1.0,
        ("Dublin,some other objLdn", "b"): 2.0,
        ("Dublin,some other objLdn", "c"): 9.0,
    }
    packed = rows(read(sample(shared, "onap_A20181002")))
    assert packed == rows(read(sample(shared, "onap_PM2020")))
    enb = f"{RNC},ENodeBFunction=1"
    listed = [row[4] for row in packed if row[0] == enb and row[1].startswith("succTCHSeizures2[")]
    assert listed == [86.0, 87.0, 2.0, 6.0, 77.0, 96.0, 75.0, 33.0, 24.0]


def test_real_file_with_an_offset_without_colon(shared: Path) -> None:
    found = rows(read(sample(shared, "oransc-ranpm_A2023")))
    assert {row[2] for row in found} == {1_684_131_300_000}  # 2023-05-15T07:15:00+0100
    assert len(found) == 11_995


def test_real_gzip_file_holds_as_many_results_as_its_plain_twin(shared: Path) -> None:
    assert len(rows(read(sample(shared, "oransc-ranpm_ne-files")))) == 11_995


def test_real_template_is_refused_until_it_is_filled_in(shared: Path, tmp_path: Path) -> None:
    template = sample(shared, "oransc-ranpm_pm-template")
    with pytest.raises(UnreadableFileError, match="endTime 'ENDTIME'"):
        list(read(template))
    filled = (
        template.read_text()
        .replace("BEGINTIME", "2026-11-29T15:00:00+0000")
        .replace("ENDTIME", "2026-11-29T15:15:00+0000")
        .replace("NODE_NAME", "node7")
        .replace("CTR_VALUE", "17")
    )
    found = rows(read_text(tmp_path, filled))
    assert found
    assert {row[2] for row in found} == {END}
    assert sum(row[4] == 17.0 for row in found) > 1000
