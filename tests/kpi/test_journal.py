"""The journal: nothing acknowledged is lost, the file stays bounded, and bad files are named."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpi.catalogue import Catalogue, Kpi, KpiKind
from kpi.codec import DamagedBatchError, decode, encode
from kpi.errors import JournalError
from kpi.journal import Journal
from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits

REPOSITORY = Path(__file__).parents[2]
STEP_MS = 1000
NOON_MS = 1_793_534_400_000
CATALOGUE = Catalogue(
    version="test",
    kpis={"total": Kpi("total", "B", KpiKind.VOLUME, 0.0, cumulative=True)},
    _canonical={"total": "total"},
)
LIMITS = StoreLimits(history_steps=6)


def batch(rows, suspect=None, arrival_ms=NOON_MS):
    cells, kpis, steps, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    ends = [NOON_MS + step * STEP_MS for step in steps]
    return ObservationBatch.from_lists(
        cells, kpis, ends, STEP_MS, values, suspect, arrival_ms=arrival_ms
    )


def opened(path, limits=LIMITS, **sizes):
    return KpiStore(limits, CATALOGUE, Journal(path, **sizes))


def contents(store):
    found = []
    for summary in store.cells(limit=10**6):
        window = store.window(summary.cell, step_ms=summary.step_ms)
        found.append((summary, window.start_ms, window.values.tobytes()))
    return found


def entries(found):
    return [
        (found.cells[c], found.kpis[k], int(end), float(value), bool(doubt))
        for c, k, end, value, doubt in zip(
            found.cell_index,
            found.kpi_index,
            found.period_end_ms,
            found.values,
            found.suspect,
            strict=True,
        )
    ]


def everything(found):
    return np.ones(len(found), np.bool_)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


rows = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["total", "x", "y"]),
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 9).map(float)),
)


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.lists(rows, min_size=1, max_size=6), min_size=1, max_size=30),
    st.integers(2, 5),
    st.integers(16, 400),
)
def test_a_store_is_the_same_after_a_restart_however_the_journal_was_compacted(
    tmp_path_factory, parts, small_batches, group_samples
):
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    sizes = {"small_batches": small_batches, "group_samples": group_samples}
    store = opened(path, **sizes)
    for part in parts:
        store.merge(batch(part))
    before = contents(store)
    store.close()
    again = opened(path, **sizes)
    assert contents(again) == before
    again._journal.compact(again._needed)
    again.close()
    once_more = opened(path)
    assert contents(once_more) == before
    assert once_more.newest_ms == again.newest_ms == store.newest_ms
    once_more.close()


crowd = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from(["total", *"tuvwxyz"]),
    st.integers(0, 20),
    st.just(1.0),
)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.lists(crowd, min_size=1, max_size=12), min_size=1, max_size=20),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(2, 4),
)
def test_a_replay_admits_what_was_admitted_and_nothing_else(
    tmp_path_factory, parts, slots, names, small_batches
):
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    limits = StoreLimits(history_steps=6, max_cells=3, max_kpis_per_cell=slots, max_kpi_names=names)
    store = opened(path, limits, small_batches=small_batches, group_samples=16)
    for part in parts:
        store.merge(batch(part))
    store.close()
    again = opened(path, limits)
    assert contents(again) == contents(store)
    assert again.stored_bytes == store.stored_bytes
    probe = batch([(cell, "new", 20, 2.0) for cell in "abcd"])
    assert again.merge(probe).accepted == store_without_journal(store).merge(probe).accepted
    again.close()


def store_without_journal(store):
    """The same store, to be merged into after its journal was closed."""
    store._journal = None
    return store


def test_batches_are_replayed_in_order_as_they_came(path):
    with Journal(path) as journal:
        journal.append(batch([("a", "x", 1, None), ("b", "y", 2, 2.0)], [True, False]))
        journal.append(batch([("a", "x", 1, 1.0)], arrival_ms=NOON_MS + 7))
    with Journal(path) as journal:
        first, second = journal.replay()
    assert entries(first)[1] == ("b", "y", NOON_MS + 2000, 2.0, False)
    assert np.isnan(first.values[0])
    assert first.suspect.tolist() == [True, False]
    assert second.arrival_ms == NOON_MS + 7


def test_a_large_batch_is_written_in_parts(path):
    with Journal(path, group_samples=3) as journal:
        whole = batch([("a", "x", step, float(step)) for step in range(8)])
        journal.append(whole)
        parts = list(journal.replay())
        assert (journal.batches, journal.samples) == (3, 8)
    assert [len(part) for part in parts] == [3, 3, 2]
    assert entries(ObservationBatch.concatenate(parts)) == entries(whole)


def test_names_that_no_sample_uses_are_not_written():
    found = batch([(cell, kpi, 0, 1.0) for cell in "abc" for kpi in "xy"])
    found = found.take((found.cell_index != 1) & (found.kpi_index == 1))
    assert decode(encode(found)).cells == ("a", "c")
    assert decode(encode(found)).kpis == ("y",)
    assert entries(decode(encode(found))) == entries(found)


def test_many_small_batches_are_merged_into_few(path):
    store = opened(path, small_batches=8)
    for step in range(200):
        store.merge(batch([("a", "x", step % 5, float(step)), (str(step), "x", 0, 1.0)]))
    assert store._journal.batches < 8 + 10
    before = contents(store)
    store.close()
    assert contents(opened(path)) == before


def test_large_batches_are_left_alone_while_small_ones_are_merged(path):
    with Journal(path, small_batches=4, group_samples=64) as journal:
        large = [(str(number), "x", 0, 1.0) for number in range(10)]
        small = [("small", "x", 0, 1.0)]
        for part in (small, small, large, small, small, large, large):
            journal.append(batch(part))
        journal.maintain(10**6, everything)
        assert [len(part) for part in journal.replay()] == [2, 10, 2, 10, 10]
        for _ in range(4):
            journal.append(batch(small))
        journal.maintain(10**6, everything)
        assert [len(part) for part in journal.replay()] == [2, 10, 2, 10, 10, 4]


def test_merging_begins_when_a_group_of_samples_has_gathered(path):
    with Journal(path, small_batches=1000, group_samples=64) as journal:
        for _ in range(40):
            journal.append(batch([("a", "x", 0, 1.0), ("b", "x", 0, 1.0)]))
            journal.maintain(10**6, everything)
        assert [len(part) for part in journal.replay()] == [64, *[2] * 8]


def test_the_journal_of_a_full_store_stays_bounded(path):
    store = opened(path, small_batches=16)
    cells = [f"cell {number}" for number in range(20)]
    capacity = 20 * LIMITS.history_steps
    sizes = []
    for step in range(150):
        store.merge(batch([(cell, "x", step, float(step)) for cell in cells]))
        sizes.append(store._journal.samples)
    assert max(sizes) <= 4 * capacity + 2 * len(cells)
    assert store._journal.bytes < 1 << 20


def test_samples_sent_again_and_again_do_not_fill_the_journal(path):
    store = opened(path, small_batches=10**6)
    for number in range(100):
        store.merge(batch([("a", "x", step, float(number)) for step in range(6)]))
    assert store._journal.samples <= 4 * LIMITS.history_steps + 12
    assert store._journal.batches < 20
    before = contents(store)
    store.close()
    assert contents(opened(path)) == before


def test_compaction_goes_on_where_it_stopped_and_visits_all(path):
    visited = []

    def needed(found):
        visited.extend(found.cells)
        return np.ones(len(found), np.bool_)

    with Journal(path, group_samples=2) as journal:
        for cell in "abcde":
            journal.append(batch([(cell, "x", 0, 1.0), (cell, "y", 0, 1.0)]))
        for _ in range(4):
            journal.compact(needed, samples=4)
        assert visited == ["a", "b", "c", "d", "e", "a", "b", "c"]
        assert [part.cells[0] for part in journal.replay()] == list("abcde")
        journal.compact(lambda found: np.zeros(len(found), np.bool_))
        assert (journal.batches, journal.samples) == (0, 0)
        journal.compact(needed)


def test_a_failing_compaction_does_not_fail_the_merge(path, caplog):
    store = opened(path, small_batches=2)
    store.merge(batch([("a", "x", 0, 1.0)]))
    database = store._journal._database
    store._journal._database = Refusing(database, "DELETE")
    assert store.merge(batch([("a", "x", 1, 2.0)])).accepted == 1
    store._journal._database = database
    assert "journal_maintenance=failed" in caplog.text
    before = contents(store)
    store.close()
    assert contents(opened(path)) == before


class Refusing:
    """A database on whose disk nothing has room that begins with a word."""

    def __init__(self, database, word):
        self._database = database
        self._word = word

    def __getattr__(self, name):
        return getattr(self._database, name)

    def execute(self, statement, *values):
        if statement.startswith(self._word):
            raise sqlite3.OperationalError("database or disk is full")
        return self._database.execute(statement, *values)


CHILD = """
import sys
from pathlib import Path
from kpi.catalogue import Catalogue
from kpi.journal import Journal
from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits

journal = Journal(Path(sys.argv[1]), small_batches=8)
store = KpiStore(StoreLimits(history_steps=10_000), Catalogue("test", {}), journal)
step = 0
while True:
    step += 1
    store.merge(ObservationBatch.from_lists(
        [str(cell) for cell in range(50)], ["x"] * 50, [step * 1000] * 50, 1000,
        [float(step)] * 50, arrival_ms=step * 1000))
    print(step, flush=True)
"""


def test_everything_acknowledged_is_there_after_a_kill(path):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child.stdout as acknowledged:
        for _ in range(60):
            last = int(acknowledged.readline())
        os.kill(child.pid, signal.SIGKILL)
        last = max([last, *map(int, acknowledged.read().split(b"\n")[:-1])])
    child.wait()
    store = KpiStore(StoreLimits(history_steps=10_000), CATALOGUE, Journal(path))
    assert len(store) == 50
    for summary in store.cells():
        values = store.window(summary.cell).values[0]
        assert values[:last].tolist() == [float(step) for step in range(1, last + 1)]
        assert len(values) in (last, last + 1)  # the one that was not acknowledged in time
    store.close()


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from kpi.catalogue import Catalogue
from kpi.errors import JournalError
from kpi.journal import Journal
from kpi.observation import ObservationBatch
from kpi.store import KpiStore, StoreLimits

store = KpiStore(StoreLimits(), Catalogue("test", {}), Journal(Path(sys.argv[1])))

def merge(cell):
    names = [f"{cell} {number} {'x' * 500}" for number in range(500)]
    store.merge(ObservationBatch.from_lists(
        names, ["x"] * 500, range(0, 500_000, 1000), 1000, range(500), arrival_ms=500_000))

merge("before")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
refused = 0
for number in range(20):
    try:
        merge(f"during {number}")
    except JournalError as error:
        refused += 1
        message = str(error)
held = len(store)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
merge("after")
print(refused, held, len(store), message, sep="|")
"""


def test_a_full_disk_refuses_batches_and_ingestion_goes_on_when_there_is_room(path):
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    refused, held, after, message = child.stdout.strip().split("|")
    assert int(refused) > 0
    assert int(held) == 500 * (21 - int(refused))
    assert int(after) == int(held) + 500
    assert "cannot be written" in message
    store = KpiStore(StoreLimits(), CATALOGUE, Journal(path))
    assert len(store) == int(after)
    store.close()


def test_a_full_database_leaves_the_store_as_it_was(path):
    store = opened(path)
    store.merge(batch([("a", "x", 0, 1.0)]))
    before = contents(store)
    store._journal._database.execute("PRAGMA max_page_count=2")
    huge = batch([(f"cell {number} {'x' * 500}", "x", 0, 1.0) for number in range(2000)])
    with pytest.raises(JournalError, match="free some space"):
        store.merge(huge)
    assert contents(store) == before
    store._journal._database.execute("PRAGMA max_page_count=100000")
    assert store.merge(huge).accepted == 2000
    store.close()
    assert len(opened(path)) == 2001


def test_a_second_user_of_a_journal_is_refused(path):
    child = (
        "import sys\nfrom pathlib import Path\nfrom kpi.journal import Journal\n"
        "Journal(Path(sys.argv[1]))"
    )
    with Journal(path) as journal:
        journal.append(batch([("a", "x", 0, 1.0)]))
        with pytest.raises(JournalError, match="another process is using it"):
            Journal(path)
        result = subprocess.run(
            [sys.executable, "-c", child, str(path)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert "another process is using it" in result.stderr
    Journal(path).close()


def test_a_place_without_a_write_ahead_log_is_refused():
    with pytest.raises(JournalError, match="its mode is 'memory'"):
        Journal(Path(":memory:"))


def test_a_file_of_another_kind_is_refused_and_left_alone(path):
    path.write_bytes(b"period,cell,value\n" * 100)
    with pytest.raises(JournalError, match="it is no journal"):
        Journal(path)
    assert path.read_bytes() == b"period,cell,value\n" * 100


def test_a_database_of_another_application_is_refused(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE contacts (name)")
    database.close()
    with pytest.raises(JournalError, match="of another application"):
        Journal(path)


def test_a_journal_of_a_newer_format_is_refused(path):
    Journal(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=2")
    database.close()
    with pytest.raises(JournalError, match="journal format 2, this version reads up to 1"):
        Journal(path)


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(JournalError, match="check that the folder exists"):
        Journal(tmp_path / "missing" / "journal.db")


@pytest.mark.parametrize("recompute", [False, True])
def test_a_damaged_batch_is_named(path, recompute):
    with Journal(path) as journal:
        journal.append(batch([("a", "x", 0, 1.0)]))
        journal.append(batch([("a", "x", 1, 1.0)]))
    payload = b"\xff" * 64
    checksum = zlib.crc32(payload) if recompute else 1
    database = sqlite3.connect(path)
    database.execute("UPDATE batch SET payload = ?, checksum = ? WHERE id = 2", (payload, checksum))
    database.commit()
    database.close()
    with Journal(path) as journal:
        batches = journal.replay()
        assert len(next(batches)) == 1
        with pytest.raises(JournalError, match=r"batch 2 of .* is damaged"):
            next(batches)


def test_damaged_pages_are_named(path):
    with Journal(path) as journal:
        for step in range(5):
            journal.append(batch([(f"{step} {os.urandom(9000).hex()}", "x", step, 1.0)]))
    raw = bytearray(path.read_bytes())
    raw[16_384:] = b"\xa5" * (len(raw) - 16_384)
    path.write_bytes(raw)
    with pytest.raises(JournalError, match="restore it from a copy"):
        opened(path)


@pytest.mark.parametrize("metadata", [None, {"arrival_ms": "noon"}])
def test_a_stream_without_an_arrival_is_damaged(metadata):
    found = batch([("a", "x", 0, 1.0)])
    with pa.ipc.open_stream(encode(found)) as reader:
        table = reader.read_next_batch().replace_schema_metadata(metadata)
    with pytest.raises(DamagedBatchError, match="no Arrow stream of observations"):
        decode(stream(table))


def test_a_stream_of_something_else_is_damaged():
    with pytest.raises(DamagedBatchError, match="expected the columns cell: dictionary"):
        decode(stream(pa.record_batch({"cell": [1, 2]})))


def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    return sink.getvalue().to_pybytes()


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("aé𝄞", min_size=1), st.booleans()), min_size=1, max_size=20))
def test_decoding_is_the_inverse_of_encoding(named):
    found = batch(
        [(cell, cell[::-1], i, float(i)) for i, (cell, _) in enumerate(named)],
        suspect=[doubt for _, doubt in named],
    )
    again = decode(encode(found))
    assert entries(again) == entries(found)
    assert again.arrival_ms == found.arrival_ms
    assert again.period_ms.tolist() == found.period_ms.tolist()


def test_an_unreadable_store_says_so_when_it_is_closed(path):
    journal = Journal(path)
    journal.append(batch([("a", "x", 0, 1.0)]))
    journal.close()
    for use in (
        lambda: journal.append(batch([("a", "x", 0, 1.0)])),
        lambda: list(journal.replay()),
        lambda: journal.compact(everything),
    ):
        with pytest.raises(JournalError, match="closed"):
            use()


def test_a_restart_with_lower_limits_says_what_it_refuses(path, caplog):
    store = opened(path)
    store.merge(batch([(cell, "x", 0, 1.0) for cell in "abc"]))
    store.close()
    smaller = KpiStore(StoreLimits(max_cells=1), CATALOGUE, Journal(path))
    assert len(smaller) == 1
    assert "journal_replayed=1 refused=2 cells=1" in caplog.text
    smaller.close()


def test_a_store_that_cannot_replay_leaves_the_journal_free(path):
    with Journal(path) as journal:
        journal.append(batch([("a", "x", 0, 1.0)]))
    database = sqlite3.connect(path)
    database.execute("UPDATE batch SET checksum = 1")
    database.commit()
    database.close()
    with pytest.raises(JournalError, match="checksum does not match"):
        opened(path)
    Journal(path).close()


def test_kept_doubtful_values_survive_compaction_and_restart(path):
    limits = StoreLimits(history_steps=6, keep_suspect=True)
    journal = Journal(path, small_batches=2)
    store = KpiStore(limits, CATALOGUE, journal)
    for step in range(4):
        store.merge(batch([("a", "x", step, float(step))], suspect=[True]))
    assert journal.batches == 1
    store.close()
    again = KpiStore(limits, CATALOGUE, Journal(path))
    assert again.window("a").values.tolist() == [[0.0, 1.0, 2.0, 3.0]]
    again.close()


def test_refused_samples_are_not_written(path):
    store = opened(path)
    store.merge(batch([("a", "x", 50, 1.0)]))
    store.merge(batch([("a", "x", 1, 1.0), ("a", "total", 1, -1.0), ("b", "x", 2, 1.0)]))
    assert store._journal.samples == 2
    store.merge(batch([("a", "x", 1, 1.0)]))
    assert store._journal.batches == 2
    store.close()
