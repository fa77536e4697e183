"""Running: history, live, continuing, stopping."""

from __future__ import annotations

import json
import math
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from training.simulate import DirectoryError, FaultRates, Stop, simulate
from training.simulate.state import STATE_NAME

FAULTS = FaultRates(
    late=0.3, duplicate=0.2, missing_file=0.1, missing_counter=0.1, suspect=0.1, corrected=0.2
)


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != STATE_NAME
    }


def names(directory: Path) -> list[str]:
    return list(contents(directory))


def test_history_is_one_file_a_gnb_and_local_day_and_live_one_a_period(make_options):
    options = make_options(days=1.0, time_zone="Europe/Madrid", dialects=("3gpp-28532",))
    summary = simulate(options)
    assert names(options.out) == [
        *[
            f"history/C2026110{span}_GNB-{gnb}.xml"
            for span in ("2.0100+0100-20261103.0000+0100", "3.0000+0100-20261103.0100+0100")
            for gnb in (1, 2)
        ],
        *[
            f"live/A20261103.{span}_GNB-{gnb}.xml"
            for span in ("0100+0100-0115+0100", "0115+0100-0130+0100", "0130+0100-0145+0100")
            for gnb in (1, 2)
        ],
    ]
    assert summary.history_periods == 96
    assert summary.live_periods == 3
    assert summary.files == 10
    assert summary.bytes == sum(map(len, contents(options.out).values()))
    assert summary.samples == 99 * 4 * 13
    assert (summary.gnbs, summary.cells) == (2, 4)
    assert summary.end_ms - summary.first_ms == 99 * 900_000
    assert not summary.is_stopped
    assert not list(options.out.rglob("*.partial"))


def test_gnbs_take_turns_with_the_dialects(make_options):
    options = make_options(days=0, periods=1, dialects=("3gpp-32435", "nokia"), compress=True)
    simulate(options)
    one, two = names(options.out)
    assert one.endswith("_GNB-1.xml.gz")
    assert two.endswith("_ManagedElement=GNB-2.xml.gz")


def test_the_history_ends_now_unless_its_start_is_given(make_options):
    noon = datetime(2026, 11, 29, 12, 7, 31, tzinfo=UTC).timestamp()
    summary = simulate(make_options(start=None, periods=0), now_seconds=lambda: noon)
    assert summary.end_ms == int(datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp() * 1000)
    assert summary.end_ms - summary.first_ms == 6 * 3_600_000


def test_two_runs_of_the_same_options_write_the_same_files(make_options, tmp_path):
    first = make_options(out=tmp_path / "a", faults=FAULTS)
    again = make_options(out=tmp_path / "b", faults=FAULTS)
    simulate(first)
    simulate(again)
    assert contents(first.out) == contents(again.out)


@pytest.mark.parametrize("layout", ["day", "period"])
def test_a_continued_run_equals_one_that_was_not_interrupted(make_options, tmp_path, layout):
    changes = {"faults": FAULTS, "history_layout": layout}
    whole = make_options(out=tmp_path / "whole", periods=12, **changes)
    parts = make_options(out=tmp_path / "parts", periods=4, **changes)
    simulate(whole)
    for _ in range(3):
        summary = simulate(parts)
    assert summary.history_periods == 0
    assert contents(parts.out) == contents(whole.out)


def test_a_history_that_was_interrupted_is_completed(make_options, tmp_path):
    whole = make_options(out=tmp_path / "whole", days=2.5, periods=2)
    simulate(whole)
    parts = make_options(out=tmp_path / "parts", days=2.5, periods=2)
    stop = Stop()
    broken = simulate(parts, lambda _: stop.set(), stop=stop)
    assert broken.is_stopped
    assert (broken.history_periods, broken.live_periods) == (96, 0)
    summary = simulate(parts)
    assert summary.history_periods == 144
    assert contents(parts.out) == contents(whole.out)


def test_a_run_that_was_killed_within_a_day_writes_that_day_again(make_options, tmp_path):
    whole = make_options(out=tmp_path / "whole", periods=0)
    simulate(whole)
    killed = make_options(out=tmp_path / "killed", periods=0)
    simulate(killed)
    state = json.loads((killed.out / STATE_NAME).read_text())
    state["next"] = state["first"]
    (killed.out / STATE_NAME).write_text(json.dumps(state))
    names_before = names(killed.out)
    (killed.out / names_before[0]).unlink()
    (killed.out / (names_before[0] + ".partial")).write_bytes(b"<cut")
    simulate(killed)
    assert contents(killed.out) == contents(whole.out)


def test_stopping_before_the_history_writes_no_measurements(make_options):
    stop = Stop()
    stop.set()
    options = make_options()
    summary = simulate(options, stop=stop)
    assert summary.is_stopped
    assert summary.files == 0
    assert names(options.out) == []


def test_live_goes_on_until_it_is_stopped(make_options):
    stop = Stop()
    seen = []

    def watch(progress):
        seen.append(progress)
        if progress.phase == "live" and progress.done == 5:
            stop.set()

    summary = simulate(make_options(periods=None), watch, stop=stop)
    assert summary.live_periods == 5
    assert summary.is_stopped
    assert [p.phase for p in seen] == ["history"] + ["live"] * 5
    assert (seen[0].done, seen[0].total) == (24, 24)
    assert {p.total for p in seen[1:]} == {None}
    assert seen[-1].period_end_ms == summary.end_ms
    assert seen[-1].files == summary.files


def test_live_waits_for_the_pace_between_periods(make_options, monkeypatch):
    waits = []
    clock = iter([100.0, 100.0, 100.2, 101.1])
    monkeypatch.setattr("training.simulate.run.time.monotonic", lambda: next(clock))

    class Patient(Stop):
        def wait(self, timeout_seconds):
            waits.append(timeout_seconds)
            return False

    simulate(make_options(days=0, periods=3, speed=2.0), stop=Patient())
    assert waits == pytest.approx([0.0, 0.3, 0.0])


def test_old_live_files_are_removed_where_that_is_wanted(make_options):
    options = make_options(days=0, periods=6, keep_days=2 / 96, dialects=("csv",))
    simulate(options)
    assert names(options.out) == [
        f"live/A20261102.{span}+0000_GNB-{gnb}.csv"
        for span in ("0100+0000-0115", "0115+0000-0130")
        for gnb in (1, 2)
    ]


def test_late_files_come_later_and_lost_ones_never(make_options):
    options = make_options(days=0, periods=40, faults=FaultRates(late=0.5, missing_file=0.2))
    arrived: dict[int, set[str]] = {}
    known: set[str] = set()

    def watch(progress):
        now = set(names(options.out))
        arrived[progress.done] = now - known
        known.update(now)

    summary = simulate(options, watch)
    counts = [len(new) for new in arrived.values()]
    assert min(counts) < 2 < max(counts)
    assert 40 * 2 * 0.6 < summary.files < 40 * 2 * 0.9


def test_repeated_files_have_a_repeat_count_and_the_same_content(make_options):
    options = make_options(days=0, periods=6, faults=FaultRates(duplicate=1.0))
    simulate(options)
    found = contents(options.out)
    repeats = [name for name in found if "_-_2" in name]
    assert len(repeats) == 10
    for name in repeats:
        assert found[name] == found[name.replace("_-_2", "")]


def test_corrected_files_hold_zeros_first(make_options):
    faults = FaultRates(corrected=1.0, late_periods=1)
    options = make_options(
        days=0, periods=3, faults=faults, kpis=("RRU.PrbTotDl",), dialects=("3gpp-32435",)
    )
    simulate(options)
    found = contents(options.out)
    for name, content in found.items():
        assert (b'<r p="1">0.00</r>' in content) == ("_-_2" not in name)


def test_pm_reports_of_the_history_hold_one_period_each(make_options):
    options = make_options(dialects=("pm-report",), periods=0)
    simulate(options)
    assert len(names(options.out)) == 2 * 24


def test_a_day_on_which_everything_is_lost_has_no_file(make_options):
    options = make_options(faults=FaultRates(missing_file=1.0))
    assert simulate(options).files == 0


def test_the_directory_of_a_simulation_takes_no_other_options(make_options):
    simulate(make_options())
    with pytest.raises(DirectoryError, match=r"seed was 1, is 2.*another directory"):
        simulate(make_options(seed=2))
    simulate(make_options(speed=math.inf, days=9, start=None, periods=1))


def test_a_directory_with_other_files_is_refused_and_left_alone(make_options):
    options = make_options()
    options.out.mkdir()
    (options.out / "precious.xml").write_text("<a/>")
    with pytest.raises(DirectoryError, match="empty directory"):
        simulate(options)
    assert names(options.out) == ["precious.xml"]


def test_a_file_in_place_of_the_directory_is_refused(make_options):
    options = make_options()
    options.out.write_text("")
    with pytest.raises(DirectoryError, match="empty directory"):
        simulate(options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 9}',
        '{"format": 1, "first": 5, "live": 4, "next": 5, "identity": {}}',
        '{"format": 1, "first": 5, "live": 6, "next": 4, "identity": {}}',
        '{"format": 1, "first": "a", "live": 6, "next": 4, "identity": {}}',
    ],
)
def test_a_broken_state_is_refused(make_options, text):
    options = make_options()
    options.out.mkdir()
    (options.out / STATE_NAME).write_text(text)
    with pytest.raises(DirectoryError, match="state of a simulation"):
        simulate(options)


def test_a_history_before_1970_is_refused(make_options):
    with pytest.raises(DirectoryError, match="before 1970"):
        simulate(make_options(start=None, days=3000), now_seconds=lambda: 86_400.0)


def test_signal_handlers_are_put_back(make_options):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    simulate(make_options())
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_thread_may_simulate_and_leaves_signals_alone(make_options):
    found = []

    def watch(_):
        found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=simulate, args=(make_options(), watch))
    thread.start()
    thread.join()
    assert found
    assert set(found) == {before}
