"""Score sheets come back as they were written, and never mix weights."""

from __future__ import annotations

from benchmarks.accuracy.sheet import Sheet, read_sheet, sheet_path, write_sheet

SCORES = {"lte_hourly": {"WQL": 0.3, "cov80": 0.8}}


def test_a_sheet_comes_back_as_read_not_measured(tmp_path):
    sheet = Sheet("someone", "sha256:a", 12).with_part("zero_shot", SCORES)
    assert sheet.fresh == {"zero_shot"}
    write_sheet(sheet, tmp_path)
    again = read_sheet("someone", tmp_path)
    assert again == Sheet("someone", "sha256:a", 12, {"zero_shot": SCORES})


def test_who_has_no_sheet_has_none(tmp_path):
    assert read_sheet("nobody", tmp_path) is None


def test_a_sheet_says_which_machine_measured_and_when(tmp_path):
    write_sheet(Sheet("someone"), tmp_path)
    text = sheet_path("someone", tmp_path).read_text(encoding="utf-8")
    assert '"machine"' in text
    assert '"measured"' in text


def test_parts_of_the_same_weights_are_added_and_new_ones_win():
    earlier = Sheet("s", "sha256:a", 1, {"gaps": SCORES, "zero_shot": {}})
    sheet = Sheet("s", "sha256:a", 1).with_part("zero_shot", SCORES).over(earlier)
    assert sheet.parts == {"gaps": SCORES, "zero_shot": SCORES}
    assert sheet.fresh == {"zero_shot"}


def test_parts_of_other_weights_are_left_aside():
    earlier = Sheet("s", "sha256:b", 1, {"gaps": SCORES})
    assert Sheet("s", "sha256:a", 1).over(earlier).parts == {}
    assert Sheet("s", "sha256:a", 1).over(None).parts == {}


def test_a_score_that_is_not_there_is_none():
    sheet = Sheet("s", parts={"zero_shot": SCORES})
    assert sheet.wql("zero_shot", "lte_hourly") == 0.3
    assert sheet.wql("zero_shot", "tractor_1s") is None
    assert sheet.score("gaps", "lte_hourly", "cov80") is None
