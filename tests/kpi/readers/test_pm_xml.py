"""PM XML: every trap on a small file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.errors import UnreadableFileError
from kpi.readers import ReadLimits, ReadOptions, read, samples
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


def test_utf16_and_cdata_and_comments_are_xml_too(tmp_path: Path) -> None:
    text = simple("1").replace(
        '<r p="1">1</r>', '<r p="1"><!-- a --><![CDATA[1]]>2<!-- b -->3<?x?></r>'
    )
    assert values(read_text(tmp_path, text)) == {(CELL, "RRU.PrbTotDl"): 123.0}
    utf16 = text.replace("UTF-8", "UTF-16").encode("utf-16")
    assert values(read_text(tmp_path, utf16)) == {(CELL, "RRU.PrbTotDl"): 123.0}


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
    types = " ".join(f"k{p}" for p in range(count))
    results = "1 " * (count - 1) + "7"
    batches = read_text(
        tmp_path,
        pm_file(
            info(
                f'<measTypes>{types}</measTypes><measValue measObjLdn="C=1">'
                f"<measResults>{results}</measResults></measValue>"
            )
        ),
    )
    assert sum(len(batch) for batch in batches) == count
    assert len({kpi for batch in batches for kpi in batch.kpis}) == count
    assert batches[-1].kpis[batches[-1].kpi_index[-1]] == f"k{count - 1}"
    assert batches[-1].values[-1] == 7.0


@pytest.mark.slow
def test_object_of_elements_beyond_a_piece_of_the_document_is_read(tmp_path: Path) -> None:
    count = 200_000
    types = "".join(f'<measType p="{p}">k{p}</measType>' for p in range(count))
    results = "".join(f'<r p="{p}">{p}</r>' for p in range(count))
    text = pm_file(info(f'{types}<measValue measObjLdn="C=1">{results}</measValue>'))
    assert len(text) > 8 * 2**20, "parsed in pieces"
    batches = read_text(tmp_path, text)
    assert sum(len(batch) for batch in batches) == count
    for batch in batches:
        names = [batch.kpis[index] for index in batch.kpi_index]
        assert names == [f"k{value:.0f}" for value in batch.values]


def test_file_of_lists_only_gives_nothing_where_lists_are_skipped(tmp_path: Path) -> None:
    assert rows(read_text(tmp_path, simple("1,2"), ReadOptions(vectors="skip"))) == []


def test_lists_left_out_leave_the_other_objects_their_own_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "<measTypes>a b</measTypes>"
        '<measValue measObjLdn="C=1"><measResults>1,2 3,4</measResults></measValue>'
        '<measValue measObjLdn="C=2"><measResults>5,6 7</measResults><suspect>1</suspect>'
        "</measValue>"
        '<measValue measObjLdn="C=3"><measResults>8 9</measResults></measValue>'
    )
    expected = [
        ("ManagedElement=7,C=2", "b", END, 900_000, 7.0, True),
        ("ManagedElement=7,C=3", "a", END, 900_000, 8.0, False),
        ("ManagedElement=7,C=3", "b", END, 900_000, 9.0, False),
    ]
    text, options = pm_file(info(body)), ReadOptions(vectors="skip")
    assert rows(read_text(tmp_path, text, options)) == expected
    monkeypatch.setattr(samples, "_PENDING_RESULTS", 2)
    assert rows(read_text(tmp_path, text, options)) == expected


def test_two_spellings_of_a_kpi_share_its_name_and_its_lists(tmp_path: Path) -> None:
    text = pm_file(
        info(
            "<measTypes>drb.pdcpsduvolumedl</measTypes>"
            '<measValue measObjLdn="C=1"><measResults>1</measResults></measValue>'
        ),
        info(
            "<measTypes>DRB.PdcpSduVolumeDL</measTypes>"
            '<measValue measObjLdn="C=2"><measResults>2,3</measResults></measValue>'
        ),
    )
    (batch,) = read_text(tmp_path, text)
    name = "DRB.PdcpSduVolumeDL"
    assert batch.kpis == (name, f"{name}[0]", f"{name}[1]")
    assert batch.kpi_index.tolist() == [0, 1, 2]


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
