"""XML documents: what is repaired, what is refused, and that reading in pieces changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpi.errors import UnreadableFileError
from kpi.readers.xml_document import open_document, refuse_dtd
from tests.kpi.readers.pm_files import info, pm_file, read_text, rows, simple


@pytest.mark.parametrize(
    "before",
    ['<?xml-stylesheet href="a.xsl"?>\n', "<!-- <?xml no ?> -->", "\n  ", "\ufeff<?a b?><?c d?>"],
)
def test_misplaced_declaration_is_moved_to_the_front(tmp_path: Path, before: str) -> None:
    assert rows(read_text(tmp_path, before + simple("1"))) == rows(read_text(tmp_path, simple("1")))


def test_declaration_after_the_root_began_is_not_repaired(tmp_path: Path) -> None:
    text = simple("1").replace("<measData>", '<?xml version="1.0"?><measData>')
    with pytest.raises(UnreadableFileError, match="well-formed"):
        read_text(tmp_path, text)


def test_large_document_in_pieces_equals_the_small_one() -> None:
    groups = [
        info(
            f'<measType p="1">k{g}</measType>'
            + "".join(
                f'<measValue measObjLdn="C={c}"><r p="1">{g * c}</r></measValue>' for c in range(50)
            )
        )
        for g in range(40)
    ]
    data = pm_file(*groups, declaration='<?xml version="1.0"?><?pi?><!-- c -->').encode()

    def names(whole_bytes: int) -> list[tuple[str | None, int, str | None]]:
        document = open_document(data, "x", ("measInfo",), whole_bytes)
        found = []
        for element in document.elements:
            parent = element.getparent()
            assert parent is not None
            assert parent[0].get("localDn") == "ManagedElement=7"
            found.append((element[3].text, len(element), element[-1][0].text))
        return found

    assert names(0) == names(len(data)) != []


@pytest.mark.parametrize("cut", [10, 200, 500, -1, -30])
@pytest.mark.parametrize("whole_bytes", [0, 1 << 20])
def test_truncated_document_is_refused_whole_or_in_pieces(cut: int, whole_bytes: int) -> None:
    data = pm_file(info("<measTypes>a</measTypes>")).encode()[:cut]
    with pytest.raises(UnreadableFileError, match="well-formed"):
        list(open_document(data, "x", ("measInfo",), whole_bytes).elements)


BILLION = (
    '<?xml version="1.0"?><!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    )
    + "]><measCollecFile><measData>&j;</measData></measCollecFile>"
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (BILLION, "DTD"),
        ('<!DOCTYPE measCollecFile SYSTEM "file:///etc/passwd"><measCollecFile/>', "DTD"),
        ("<!DOCTYPE measCollecFile><measCollecFile/>", "DTD"),
        ("<measCollecFile>&undefined;</measCollecFile>", "well-formed"),
        ("<html><body>log in</body></html>", "root measCollecFile.*<html>"),
        ("<measCollecFile><measData>", "well-formed"),
        ("<measCollecFile></measDataFile>", "well-formed"),
        ("<measCollecFile/><measCollecFile/>", "well-formed"),
        ("<" + "a>" * 1, "well-formed"),
        ("<a>" * 300 + "</a>" * 300, "well-formed"),
        ('<!DOCTYPE mdc SYSTEM "MeasDataCollection.dtd"><mdc><mfh/></mdc>', "mdc.*convert"),
        (simple("1").replace("2026-11-29T15:15:00+00:00", "ENDTIME"), "endTime 'ENDTIME'"),
        (simple("1").replace("PT900S", "P1M"), "duration 'P1M'"),
        (simple("1").replace("granPeriod", "other"), "granPeriod in measInfo 'group'"),
        (
            simple("1").replace("granPeriod", "other").replace(' measInfoId="group"', ""),
            "granPeriod in measInfo in line 1",
        ),
    ],
)
def test_bad_document_is_refused_with_its_reason(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=reason) as caught:
        read_text(tmp_path, content)
    assert caught.value.path.endswith("file.xml")


def test_external_dtd_is_never_loaded(tmp_path: Path) -> None:
    (tmp_path / "evil.dtd").write_text("this is no DTD, so that loading it would be an error")
    text = simple("1").replace(
        "<measCollecFile", f'<!DOCTYPE measCollecFile SYSTEM "{tmp_path}/evil.dtd"><measCollecFile'
    )
    with pytest.raises(UnreadableFileError, match="got <!DOCTYPE> before"):
        read_text(tmp_path, text)
    document = open_document(text.encode(), "x", ("measInfo",), 0)
    with pytest.raises(UnreadableFileError, match="got <!DOCTYPE> before"):
        refuse_dtd(document.root, "x")
