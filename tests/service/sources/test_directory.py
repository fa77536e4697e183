import logging
import os
import threading

import pytest
from prometheus_client import CollectorRegistry

from kpi.errors import JournalError
from kpi.store import KpiStore, StoreLimits
from service.ingestion import Ingestion
from service.metrics import Metrics
from service.sources import directory
from service.sources.directory import DirectorySource, PollResult
from service.sources.ledger import Ledger
from service.sources.selection import KpiSelection
from tests.service.fakes import NOON_MS, FakeClock, small_catalogue

TABLE = """timestamp,cell,RRU.PrbTotDl
2026-11-01T10:00:00Z,{cell},10
2026-11-01T10:15:00Z,{cell},20
"""


class Watch:
    """A source over a directory, looked at by hand."""

    def __init__(self, path, ledger=None, *, unknown=True, **limits):
        self.path = path
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        catalogue = small_catalogue()
        metrics = Metrics(self.registry, self.clock, "near-rt")
        self.store = KpiStore(StoreLimits(**limits), catalogue)
        self.ingestion = Ingestion(self.store, catalogue, metrics, queue_limit=8)
        self.source = DirectorySource(
            path,
            ingestion=self.ingestion,
            ledger=Ledger(None) if ledger is None else ledger,
            catalogue=catalogue,
            metrics=metrics,
            clock=self.clock,
            poll_seconds=0.001,
            time_zone="UTC",
            selection=KpiSelection(catalogue, unknown=unknown),
        )

    def write(self, name, text=None, *, age_s=60.0):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TABLE.format(cell=file.stem) if text is None else text)
        changed_s = self.clock.now_ms() / 1000 - age_s
        os.utime(file, (changed_s, changed_s))
        return file

    def cells(self):
        return [summary.cell for summary in self.store.cells()]

    def files(self, result):
        return self.registry.get_sample_value("rancast_ingested_files_total", {"result": result})


@pytest.fixture
def watch(tmp_path):
    return Watch(tmp_path)


def test_files_are_read_into_the_store_and_left_where_they_are(watch):
    file = watch.write("b.csv")
    watch.write("deeper/a.csv")
    result = watch.source.poll()
    assert result == PollResult(files=2, failed=0, samples=4, unsettled=0)
    assert watch.cells() == ["a", "b"]
    assert file.exists()
    assert watch.files("ok") == 2


def test_kpis_that_are_not_selected_are_left_out(tmp_path):
    watch = Watch(tmp_path, unknown=False)
    watch.write("a.csv", TABLE.format(cell="a").replace("RRU.PrbTotDl", "vendor.Odd"))
    watch.write("b.csv")
    assert watch.source.poll() == PollResult(files=2, samples=2)
    assert watch.cells() == ["b"]


def test_kpis_of_the_catalogue_find_room_after_files_full_of_counters(tmp_path):
    watch = Watch(tmp_path, max_kpis_per_cell=4, max_kpi_names=6)
    for name, cell, kpis in (
        ("1.csv", "one", [f"one.{number}" for number in range(6)]),
        ("2.csv", "two", [f"two.{number}" for number in range(6)]),
        ("3.csv", "one", ["pmPrbUsedDl", "DRB.MeanActiveUeDl"]),
    ):
        table = TABLE.format(cell=cell).replace("RRU.PrbTotDl", ",".join(kpis))
        for value in ("10", "20"):
            table = table.replace(f",{value}\n", f",{value}" * len(kpis) + "\n")
        watch.write(name, table)
    assert watch.source.poll().files == 3
    one, two = watch.store.cells()
    assert one.kpis == ("DRB.MeanActiveUeDl", "RRU.PrbTotDl", "one.0", "one.1")
    assert two.kpis == ("two.0", "two.1")


def test_a_file_is_read_once_until_it_changes(watch):
    watch.write("a.csv")
    assert watch.source.poll().files == 1
    assert watch.source.poll().files == 0
    watch.write("a.csv", age_s=30)
    assert watch.source.poll().files == 1


def test_hidden_and_unfinished_files_are_passed_over(watch):
    for name in (".a.csv", "a.csv.tmp", "b.csv.partial", "B.CSV.TMP", ".hidden/c.csv"):
        watch.write(name)
    assert watch.source.poll() == PollResult()


def test_a_young_file_is_read_once_it_keeps_its_size(watch):
    watch.write("a.csv", "timestamp,cell,RRU", age_s=0)
    assert watch.source.poll() == PollResult(unsettled=1)
    watch.write("a.csv", age_s=0)
    assert watch.source.poll() == PollResult(unsettled=1)
    assert watch.source.poll().files == 1
    assert watch.cells() == ["a"]


def test_a_young_file_is_read_once_it_is_old(watch):
    watch.write("a.csv", age_s=0)
    assert watch.source.poll().unsettled == 1
    watch.clock.advance(3)
    assert watch.source.poll().files == 1


def test_files_are_read_in_the_order_of_their_names(watch):
    for day, value in (("2", 5), ("1", 4), ("3", 6)):
        watch.write(
            f"A2026110{day}.csv",
            f"timestamp,cell,K\n2026-11-01T10:00:00Z,c,{value}\n2026-11-01T10:15:00Z,c,{value}\n",
        )
    watch.source.poll()
    assert watch.store.window("c").values.tolist() == [[6, 6]]


def test_a_bad_file_is_named_counted_and_not_tried_again_until_it_changes(watch, caplog):
    watch.write("bad.xml", "<measCollecFile><unclosed>")
    watch.write("good.csv")
    with caplog.at_level(logging.ERROR):
        assert watch.source.poll() == PollResult(files=1, failed=1, samples=2)
    (record,) = [r for r in caplog.records if r.message == "file_failed"]
    assert record.rancast_fields["file"] == "bad.xml"
    assert record.rancast_fields["reason"]
    assert watch.files("failed") == 1
    assert watch.source.poll() == PollResult()
    watch.write("bad.xml", TABLE.format(cell="mended"), age_s=30)
    assert watch.source.poll().files == 1


def test_a_reader_that_breaks_down_does_not_end_the_watch(watch, monkeypatch):
    def read(path, *_):
        raise RuntimeError(path.name)

    watch.write("a.csv")
    with monkeypatch.context() as patch:
        patch.setattr(directory, "read", read)
        assert watch.source.poll().failed == 1
    watch.write("b.csv")
    assert watch.source.poll().files == 1


def test_a_full_disk_keeps_the_file_for_the_next_look(watch, monkeypatch):
    def merge(_):
        raise JournalError("disk full")

    watch.write("a.csv")
    watch.write("b.csv")
    with monkeypatch.context() as patch:
        patch.setattr(watch.store, "merge", merge)
        assert watch.source.poll() == PollResult()
    assert watch.source.poll().files == 2


def test_a_cell_over_the_limit_is_said_loudly(tmp_path, caplog):
    watch = Watch(tmp_path, max_cells=1)
    watch.write("a.csv")
    watch.write("b.csv")
    with caplog.at_level(logging.WARNING):
        watch.source.poll()
    (record,) = [r for r in caplog.records if r.message == "observations_rejected"]
    assert record.rancast_fields["file"] == "b.csv"
    assert record.rancast_fields["samples"] == 2
    assert watch.cells() == ["a"]


def test_a_directory_that_is_missing_is_said_once_and_awaited(tmp_path, caplog):
    watch = Watch(tmp_path / "later")
    with caplog.at_level(logging.ERROR):
        watch.source.poll()
        watch.source.poll()
        assert [r.message for r in caplog.records] == ["directory_missing"]
    watch.write("a.csv")
    assert watch.source.poll().files == 1


def test_a_directory_below_that_cannot_be_listed_is_named_once_and_the_others_are_read(
    watch, caplog, monkeypatch
):
    watch.write("a/a.csv")
    watch.write("b/b.csv")
    watch.write("c.csv")
    listed = os.scandir

    def scandir(path):
        if os.path.basename(path) == "a":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with caplog.at_level(logging.ERROR):
        watch.source.poll()
        watch.source.poll()
    assert watch.cells() == ["b", "c"]
    (record,) = caplog.records
    assert record.rancast_fields["directory"] == watch.path / "a"
    monkeypatch.undo()
    watch.source.poll()
    assert watch.cells() == ["a", "b", "c"]


def test_what_was_read_is_not_read_again_after_a_restart(tmp_path):
    journal = tmp_path / "journal.sqlite"
    ledger = Ledger.beside(journal, fresh=True)
    watch = Watch(tmp_path / "in", ledger)
    watch.write("a.csv")
    watch.source.poll()
    ledger.close()
    ledger = Ledger.beside(journal, fresh=False)
    assert Watch(tmp_path / "in", ledger).source.poll() == PollResult()
    ledger.close()


def test_a_file_that_is_gone_is_forgotten(tmp_path):
    ledger = Ledger(None)
    watch = Watch(tmp_path, ledger)
    file = watch.write("a.csv")
    watch.source.poll()
    file.unlink()
    watch.source.poll()
    assert len(ledger) == 0


def test_progress_is_told_while_a_backlog_is_read(watch, caplog, monkeypatch):
    from kpi.readers import read

    def slow(*arguments):
        watch.clock.advance(6)
        return read(*arguments)

    monkeypatch.setattr(directory, "read", slow)
    for name in "abc":
        watch.write(f"{name}.csv")
    with caplog.at_level(logging.INFO):
        watch.source.poll()
    told = [r.rancast_fields["backlog"] for r in caplog.records if r.message == "ingested"]
    assert told == [2, 1, 0, 0]


@pytest.mark.anyio
async def test_the_watch_goes_on_after_a_look_that_failed_and_stops_when_told(tmp_path):
    watch = Watch(tmp_path)
    looks = threading.Semaphore(0)

    def poll():
        looks.release()
        raise RuntimeError("a bad look")

    watch.source.poll = poll  # type: ignore[method-assign]
    watch.source.start()
    import asyncio

    for _ in range(2):
        assert await asyncio.to_thread(looks.acquire, timeout=30)
    await watch.source.stop()


@pytest.mark.anyio
async def test_stopping_does_not_wait_for_the_backlog(tmp_path, monkeypatch):
    watch = Watch(tmp_path)
    reading, go_on = threading.Event(), threading.Event()

    def read(*_):
        reading.set()
        assert go_on.wait(30)
        return iter(())

    monkeypatch.setattr(directory, "read", read)
    for name in "abc":
        watch.write(f"{name}.csv")
    watch.source.start()
    import asyncio

    assert await asyncio.to_thread(reading.wait, 30)
    stopping = asyncio.create_task(watch.source.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stopping
    assert watch.files("ok") == 1


def test_the_clock_of_the_files_is_the_services(watch):
    assert watch.clock.now_ms() == NOON_MS


def test_a_file_from_before_the_clock_was_set_back_is_read_at_the_second_look(watch):
    watch.write("a.csv")
    watch.clock.step_wall(-6 * 3600)
    assert watch.source.poll() == PollResult(unsettled=1)
    assert watch.source.poll().files == 1
    assert watch.source.poll() == PollResult()
