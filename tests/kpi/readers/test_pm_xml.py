"""PM XML: every trap on a small file, then the real files with values worked out by hand."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.errors import UnreadableFileError
from kpi.readers import ReadLimits, ReadOptions, read, samples
from kpi.readers.xml_document import open_document, refuse_dtd
from tests.kpi.readers.pm_files import info, modern, pm_file, read_text, rows, simple, values, write

END = 1_795_965_300_000  # 2026-11-29T15:15:00Z
CELL = "ManagedElement=7,NRCellDU=1"


def test_both_dialects_give_the_same_samples(tmp_path: Path) -> None:
    old = rows(read_text(tmp_path, simple("42.5")))
    new = rows(read_text(tmp_path, modern(simple("42.5"))))
    assert old == new == [(CELL, "RRU.PrbTotDl", END, 900_000, 42.5, False)]


def test_older_28550_namespace_and_none_at_all_are_read(tmp_path: Path) -> None:
    text = modern(simple("1"))
    assert rows(read_text(tmp_path, text.replace("28.532#", "28.550#")))
    bare = text.replace(
        ' xmlns="http://www.3gpp.org/ftp/specs/archive/28_series/28.532#measData"', ""
    )
    assert "xmlns" not in bare
    assert rows(read_text(tmp_path, bare)) == rows(read_text(tmp_path, text))


def test_gzip_is_read_whatever_the_name(tmp_path: Path) -> None:
    packed = gzip.compress(simple("3").encode())
    assert values(read_text(tmp_path, packed, name="plain.xml")) == {(CELL, "RRU.PrbTotDl"): 3.0}


def test_positional_results_are_joined_by_p_and_never_by_order(tmp_path: Path) -> None:
    found = values(
        read_text(
            tmp_path,
            pm_file(
                info(
                    '<measType p="1">a</measType><measType p="2">b</measType>'
                    '<measType p="3">c</measType>'
                    '<measValue measObjLdn="C=1"><r p="3">30</r><r p="1">10</r></measValue>'
                    '<measValue measObjLdn="C=2"><r p="02"> 20 </r></measValue>'
                )
            ),
        )
    )
    assert found == {
        ("ManagedElement=7,C=1", "a"): 10.0,
        ("ManagedElement=7,C=1", "c"): 30.0,
        ("ManagedElement=7,C=2", "b"): 20.0,
    }


def test_result_without_type_is_left_out_with_a_word(tmp_path: Path) -> None:
    said: list[str] = []
    text = simple("1").replace("<r p=", '<r p="9">5</r><r p=')
    found = values(read_text(tmp_path, text, ReadOptions(on_warning=said.append)))
    assert found == {(CELL, "RRU.PrbTotDl"): 1.0}
    assert len(said) == 1
    assert said[0].startswith("event=results_without_type")
    assert said[0].endswith("count=1")


def test_types_and_results_without_p_are_numbered_by_order(tmp_path: Path) -> None:
    text = pm_file(
        info(
            "<measType>a</measType><measType>b</measType>"
            '<measValue measObjLdn="C=1"><r>1</r><r>2</r></measValue>'
        )
    )
    assert list(values(read_text(tmp_path, text)).values()) == [1.0, 2.0]


def test_compact_lists_are_split_on_any_blank(tmp_path: Path) -> None:
    text = pm_file(
        info(
            "<measTypes>a b\n\t  c</measTypes>"
            '<measValue measObjLdn="C=1"><measResults>1\n 2\t3</measResults>'
            "<suspect>true</suspect></measValue>"
        )
    )
    cell = "ManagedElement=7,C=1"
    assert rows(read_text(tmp_path, text)) == [
        (cell, "a", END, 900_000, 1.0, True),
        (cell, "b", END, 900_000, 2.0, True),
        (cell, "c", END, 900_000, 3.0, True),
    ]


def test_compact_object_of_another_length_is_rejected_and_the_others_read(tmp_path: Path) -> None:
    said: list[str] = []
    text = pm_file(
        info(
            "<measTypes>a b</measTypes>"
            '<measValue measObjLdn="C=1"><measResults>1</measResults></measValue>'
            '<measValue measObjLdn="C=2"><measResults>1 2</measResults></measValue>'
            '<measValue measObjLdn="C=3"/>'
        )
    )
    found = values(read_text(tmp_path, text, ReadOptions(on_warning=said.append)))
    assert found == {("ManagedElement=7,C=2", "a"): 1.0, ("ManagedElement=7,C=2", "b"): 2.0}
    assert [line.partition(" ")[0] for line in said] == ["event=results_unequal_length"]
    assert said[0].endswith("objects=1")


TOKENS = st.lists(
    st.tuples(
        st.text("abcXYZ.0", min_size=1, max_size=5),
        st.sampled_from(["0", "1.5", "-3", "NIL", "1e3", "1,2,3", ",", "x"]),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda pair: pair[0].casefold(),
)


@given(pairs=TOKENS, suspect=st.booleans())
def test_compact_and_positional_forms_mean_the_same(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], suspect: bool
) -> None:
    folder = tmp_path_factory.mktemp("forms")
    flag = f"<suspect>{str(suspect).lower()}</suspect>"
    compact = info(
        f"<measTypes>{' '.join(name for name, _ in pairs)}</measTypes>"
        f'<measValue measObjLdn="C=1"><measResults>{" ".join(value for _, value in pairs)}'
        f"</measResults>{flag}</measValue>"
    )
    types = "".join(f'<measType p="{p}">{name}</measType>' for p, (name, _) in enumerate(pairs))
    results = "".join(f'<r p="{p}">{value}</r>' for p, (_, value) in enumerate(pairs))
    positional = info(f'{types}<measValue measObjLdn="C=1">{results}{flag}</measValue>')
    quiet = ReadOptions(on_warning=lambda _: None)
    assert rows(read_text(folder, pm_file(compact), quiet)) == rows(
        read_text(folder, pm_file(positional), quiet)
    )


@pytest.mark.parametrize(
    "value", ["", " ", "\n", "NIL", " nil ", "NaN", "text", "1 2", "0x10", "1_0", "٣"]
)
def test_value_that_is_no_number_is_missing_and_not_zero(tmp_path: Path, value: str) -> None:
    quiet = ReadOptions(on_warning=lambda _: None)
    assert values(read_text(tmp_path, simple(value), quiet)) == {(CELL, "RRU.PrbTotDl"): None}


@pytest.mark.parametrize("value", ["INF", "-Infinity", "1e400"])
def test_infinity_is_missing_with_a_word(tmp_path: Path, value: str) -> None:
    said: list[str] = []
    found = values(read_text(tmp_path, simple(value), ReadOptions(on_warning=said.append)))
    assert found == {(CELL, "RRU.PrbTotDl"): None}
    assert said[0].startswith("event=results_infinite")


def test_infinity_beside_junk_is_counted_apart(tmp_path: Path) -> None:
    said: list[str] = []
    read_text(tmp_path, simple("1e400,x,NIL,-inf,2"), ReadOptions(on_warning=said.append))
    assert [line.rpartition(" ")[2] for line in said] == ["count=1", "count=2"]


def test_warning_goes_to_the_log_where_nobody_takes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_text(tmp_path, simple("text"))
    assert "event=results_not_numeric" in caplog.text


def test_list_counter_becomes_one_kpi_a_position(tmp_path: Path) -> None:
    text = pm_file(
        info(
            '<measType p="1">dist</measType><measType p="2">plain</measType>'
            '<measValue measObjLdn="C=1"><r p="1">5, ,7</r><r p="2">1</r></measValue>'
            '<measValue measObjLdn="C=2"><r p="1"> , , </r><r p="2">2</r></measValue>'
        )
    )
    one, two = "ManagedElement=7,C=1", "ManagedElement=7,C=2"
    assert values(read_text(tmp_path, text)) == {
        (one, "dist[0]"): 5.0,
        (one, "dist[1]"): None,
        (one, "dist[2]"): 7.0,
        (one, "plain"): 1.0,
        (two, "dist[0]"): None,
        (two, "dist[1]"): None,
        (two, "dist[2]"): None,
        (two, "plain"): 2.0,
    }
    assert values(read_text(tmp_path, text, ReadOptions(vectors="skip"))) == {
        (one, "plain"): 1.0,
        (two, "plain"): 2.0,
    }


@given(st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=5), min_size=1, max_size=6))
def test_exploded_lists_keep_every_number(
    tmp_path_factory: pytest.TempPathFactory, lists: list[list[int]]
) -> None:
    body = '<measType p="1">a</measType>' + "".join(
        f'<measValue measObjLdn="C={c}"><r p="1">{",".join(map(str, numbers))}</r></measValue>'
        for c, numbers in enumerate(lists)
    )
    found = values(read_text(tmp_path_factory.mktemp("lists"), pm_file(info(body))))
    expected = {
        (f"ManagedElement=7,C={c}", f"a[{i}]" if len(numbers) > 1 else "a"): float(number)
        for c, numbers in enumerate(lists)
        for i, number in enumerate(numbers)
    }
    assert found == expected


def test_sub_counters_stay_apart_from_their_total(tmp_path: Path) -> None:
    names = ["RRU.PrbUsedDl", "RRU.PrbUsedDl.01", "RRU.PrbUsedDl.010003e8", "RRU.PrbUsedDl.226F04"]
    body = "".join(f'<measType p="{p}">{name}</measType>' for p, name in enumerate(names))
    results = "".join(f'<r p="{p}">{p}.000000</r>' for p in range(4))
    text = pm_file(info(f'{body}<measValue measObjLdn="C=1">{results}</measValue>'))
    assert {kpi: value for (_, kpi), value in values(read_text(tmp_path, text)).items()} == dict(
        zip(names, [0.0, 1.0, 2.0, 3.0], strict=True)
    )


def test_aliases_and_other_case_get_the_catalogue_spelling(tmp_path: Path) -> None:
    found = values(read_text(tmp_path, simple("1", name=" drb.pdcpsduvolumedl ")))
    assert list(found) == [(CELL, "DRB.PdcpSduVolumeDL")]
    assert list(values(read_text(tmp_path, simple("1", name="pmDrbEstabAtt")))) == [
        (CELL, "DRB.EstabAtt")
    ]


def test_sum_and_samples_give_the_mean_beside_them(tmp_path: Path) -> None:
    text = pm_file(
        info(
            "<measTypes>pmActiveUeDlSum pmActiveUeDlSamp</measTypes>"
            '<measValue measObjLdn="C=1"><measResults>90 180</measResults></measValue>'
            '<measValue measObjLdn="C=2"><measResults>90 0</measResults>'
            "<suspect>1</suspect></measValue>"
        )
    )
    one, two = "ManagedElement=7,C=1", "ManagedElement=7,C=2"
    assert values(read_text(tmp_path, text)) == {
        (one, "pmActiveUeDlSum"): 90.0,
        (one, "pmActiveUeDlSamp"): 180.0,
        (two, "pmActiveUeDlSum"): 90.0,
        (two, "pmActiveUeDlSamp"): 0.0,
        (one, "DRB.MeanActiveUeDl"): 0.5,
        (two, "DRB.MeanActiveUeDl"): None,
    }


def test_suspect_keeps_its_value_and_its_flag(tmp_path: Path) -> None:
    for flag, expected in (("true", True), (" 1 ", True), ("false", False), ("", False)):
        for before in (True, False):
            tag = f"<suspect>{flag}</suspect>"
            body = f'{tag}<r p="1">4</r>' if before else f'<r p="1">4</r>{tag}'
            text = simple("4").replace('<r p="1">4</r>', body)
            assert [row[4:] for row in rows(read_text(tmp_path, text))] == [(4.0, expected)]


def test_same_group_twice_and_several_periods_in_one_file_are_all_read(tmp_path: Path) -> None:
    def group(kpi: str, duration: str, end: str) -> str:
        value = '<measValue measObjLdn="C=1"><measResults>1</measResults></measValue>'
        body = f"<measTypes>{kpi}</measTypes>{value}"
        return info(body, duration=duration, end=end)

    text = pm_file(
        group("a", "PT900S", "2026-11-29T15:15:00Z"),
        group("b", "PT15M", "2026-11-29T16:15:00+0100"),
        group("c", "PT1H", "2026-11-29T10:15:23-05:00"),
    )
    assert [row[1:4] for row in rows(read_text(tmp_path, text))] == [
        ("a", END, 900_000),
        ("b", END, 900_000),
        ("c", END + 23_000, 3_600_000),
    ]


def test_several_measured_elements_in_one_file_keep_apart(tmp_path: Path) -> None:
    text = modern(simple("1"))
    begin, end = text.index("<measData><measEntity"), text.index("<fileFooter>")
    block = text[begin:end]
    text = (
        text[:end]
        + block.replace('localDn="ManagedElement=7"', 'localDn="ManagedElement=8"')
        + text[end:]
    )
    assert [row[0] for row in rows(read_text(tmp_path, text))] == [
        CELL,
        "ManagedElement=8,NRCellDU=1",
    ]


def test_empty_object_name_is_the_element_and_missing_element_is_the_sender(tmp_path: Path) -> None:
    assert rows(read_text(tmp_path, simple("1", ldn="")))[0][0] == "ManagedElement=7"
    text = simple("1").replace('<managedElement localDn="ManagedElement=7"/>', "")
    assert rows(read_text(tmp_path, text))[0][0] == CELL
    assert rows(read_text(tmp_path, modern(text)))[0][0] == CELL


def test_dn_prefix_goes_in_front_on_demand(tmp_path: Path) -> None:
    found = read_text(tmp_path, simple("1"), ReadOptions(include_dn_prefix=True))
    assert rows(found)[0][0] == f"SubNetwork=1,{CELL}"


def test_file_without_header_is_read(tmp_path: Path) -> None:
    text = simple("1")
    text = text[: text.index("<fileHeader")] + text[text.index("<measData>") :]
    assert rows(read_text(tmp_path, text, ReadOptions(include_dn_prefix=True)))[0][0] == CELL


def test_stamp_without_offset_follows_the_option(tmp_path: Path) -> None:
    text = simple("1").replace("T15:15:00+00:00", "T16:15:00")
    assert rows(read_text(tmp_path, text, ReadOptions(time_zone="Europe/Madrid")))[0][2] == END


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


def test_utf16_and_cdata_and_comments_are_xml_too(tmp_path: Path) -> None:
    text = simple("1").replace(
        '<r p="1">1</r>', '<r p="1"><!-- a --><![CDATA[1]]>2<!-- b -->3<?x?></r>'
    )
    assert values(read_text(tmp_path, text)) == {(CELL, "RRU.PrbTotDl"): 123.0}
    utf16 = text.replace("UTF-8", "UTF-16").encode("utf-16")
    assert values(read_text(tmp_path, utf16)) == {(CELL, "RRU.PrbTotDl"): 123.0}


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


def test_file_without_measurements_is_read_with_a_word(tmp_path: Path) -> None:
    said: list[str] = []
    assert read_text(tmp_path, pm_file(), ReadOptions(on_warning=said.append)) == []
    assert said[0].startswith("event=no_measurements")


def test_a_million_counters_in_one_object_are_refused_by_the_stated_limit(tmp_path: Path) -> None:
    text = simple(",".join("1" * 2000))
    limits = ReadLimits(max_samples=1999)
    with pytest.raises(UnreadableFileError, match="at most 1999 samples"):
        read_text(tmp_path, text, ReadOptions(limits=limits))
    assert (
        len(rows(read_text(tmp_path, text, ReadOptions(limits=ReadLimits(max_samples=2000)))))
        == 2000
    )


@pytest.mark.slow
def test_a_million_counters_in_one_object_are_read(tmp_path: Path) -> None:
    count = 1_000_000
    types = "".join(f'<measType p="{p}">k{p}</measType>' for p in range(count))
    results = "".join(f'<r p="{p}">1</r>' for p in range(count))
    path = write(
        tmp_path, pm_file(info(f'{types}<measValue measObjLdn="C=1">{results}</measValue>'))
    )
    assert sum(len(batch) for batch in read(path)) == count


def test_batches_are_bounded_and_carry_only_their_own_names(tmp_path: Path) -> None:
    body = "<measTypes>a b c</measTypes>" + "".join(
        f'<measValue measObjLdn="C={c}"><measResults>1 2 3</measResults></measValue>'
        for c in range(5)
    )
    options = ReadOptions(limits=ReadLimits(batch_samples=6))
    batches = read_text(tmp_path, pm_file(info(body)), options)
    assert [len(batch) for batch in batches] == [6, 6, 3]
    assert batches[2].cells == ("ManagedElement=7,C=4",)
    assert len(rows(batches)) == len(set(rows(batches))) == 15


def test_file_of_many_results_is_worked_out_in_parts_with_the_same_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "<measTypes>a b</measTypes>" + "".join(
        f'<measValue measObjLdn="C={c}"><measResults>{c} 1,{c}</measResults></measValue>'
        for c in range(9)
    )
    text = pm_file(info(body))
    whole = rows(read_text(tmp_path, text))
    monkeypatch.setattr(samples, "_PENDING_RESULTS", 4)
    assert rows(read_text(tmp_path, text)) == whole
    assert len(whole) == 27


def test_arrival_is_the_file_time_or_what_the_caller_says(tmp_path: Path) -> None:
    path = write(tmp_path, simple("1"))
    assert next(read(path)).arrival_ms == path.stat().st_mtime_ns // 1_000_000
    assert next(read(path, arrival_ms=5)).arrival_ms == 5


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


# The real files. Values below were read off the files by eye.


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
