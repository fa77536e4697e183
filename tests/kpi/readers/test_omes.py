"""Nokia OMeS."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpi.errors import UnreadableFileError
from kpi.readers import read
from tests.kpi.readers.pm_files import read_text, rows

START = 1_795_964_400_000  # 2026-11-29T15:00:00Z


def omes(
    mo: str = "<MO><DN>PLMN-PLMN/MRBTS-1/LNBTS-1</DN></MO>",
    start: str = "2026-11-29T16:00:00.000+01:00:00",
    interval: str = "15",
) -> str:
    return (
        '<?xml version="1.0"?><OMeS xmlns="pm/x.xsd">'
        f'<PMSetup startTime="{start}" interval="{interval}"><PMMOResult>{mo}'
        '<PMTarget measurementType="LTE_Cell"><M8001C0>5</M8001C0><M8001C1> </M8001C1></PMTarget>'
        '<NE-WBTS_1.0 measurementType="x"><M1C0>1.5</M1C0></NE-WBTS_1.0>'
        "</PMMOResult></PMSetup></OMeS>"
    )


def test_counters_are_element_names_and_the_interval_is_minutes_from_its_begin(
    tmp_path: Path,
) -> None:
    cell = "PLMN-PLMN/MRBTS-1/LNBTS-1"
    end = START + 900_000
    assert rows(read_text(tmp_path, omes())) == [
        (cell, "M8001C0", end, 900_000, 5.0, False),
        (cell, "M8001C1", end, 900_000, None, False),
        (cell, "M1C0", end, 900_000, 1.5, False),
    ]


@pytest.mark.parametrize(
    ("mo", "name"),
    [
        ("<MO><baseId>NE-1</baseId><localMoid>DN:WCEL-2</localMoid></MO>", "NE-1/WCEL-2"),
        ("<MO><baseId>NE-1</baseId></MO>", "NE-1"),
        ("<MO><DN>A-1</DN></MO><MO><DN>B-2</DN></MO>", "A-1,B-2"),
    ],
)
def test_object_is_its_dn_or_base_and_path(tmp_path: Path, mo: str, name: str) -> None:
    assert {row[0] for row in rows(read_text(tmp_path, omes(mo)))} == {name}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (omes(mo="<MO/>"), "MO with DN or baseId"),
        (omes(mo=""), "MO with DN or baseId"),
        (omes(start="soon"), "startTime 'soon'"),
        (omes(interval=""), "interval ''"),
        (omes(interval="0"), "interval '0'"),
    ],
)
def test_bad_file_is_refused_with_its_reason(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=reason):
        read_text(tmp_path, content)


def test_real_file(shared: Path) -> None:
    end = 1_868_324_400_000  # 2029-03-15T22:00:00-05:00
    found = rows(read(shared / "samples" / "pm" / "nokia-OMeS_pm.xml"))
    name = "NE-MRBTS-1111/NE-LNBTS-1111"
    assert found[0] == (name, "M00001", end, 3_600_000, 1111.0, False)
    assert [row[4] for row in found] == [1111.0, 0.0, 0.0, 0.0, 0.0]
