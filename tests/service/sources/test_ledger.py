import sqlite3

import pytest

from service.sources.ledger import FileStamp, Ledger

OLD, NEW = FileStamp(10, 1), FileStamp(10, 2)


def test_a_file_is_known_in_the_state_in_which_it_was_read():
    ledger = Ledger(None)
    assert not ledger.holds("a", OLD)
    ledger.record("a", OLD)
    assert ledger.holds("a", OLD)
    assert not ledger.holds("a", NEW)
    ledger.record("a", NEW)
    assert ledger.holds("a", NEW)
    assert len(ledger) == 1


def test_files_are_remembered_beside_the_journal_over_a_restart(tmp_path):
    journal = tmp_path / "journal.sqlite"
    ledger = Ledger.beside(journal, fresh=True)
    ledger.record("a", OLD)
    ledger.record("b", OLD, "broken")
    ledger.keep_only({"b"})
    ledger.close()
    again = Ledger.beside(journal, fresh=False)
    assert not again.holds("a", OLD)
    assert again.holds("b", OLD)
    again.close()
    assert (tmp_path / "journal.files.sqlite").exists()


def test_a_new_journal_begins_a_new_ledger(tmp_path):
    journal = tmp_path / "journal.sqlite"
    ledger = Ledger.beside(journal, fresh=True)
    ledger.record("a", OLD)
    ledger.close()
    again = Ledger.beside(journal, fresh=True)
    assert len(again) == 0
    again.close()


def test_without_a_journal_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.beside(None, fresh=False)
    ledger.record("a", OLD)
    ledger.keep_only(set())
    ledger.close()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_ledger_is_replaced(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    ledger = Ledger(path)
    ledger.record("a", OLD)
    ledger.close()
    again = Ledger(path)
    assert again.holds("a", OLD)
    again.close()


def test_a_ledger_that_cannot_be_made_says_so(tmp_path):
    with pytest.raises(sqlite3.Error):
        Ledger(tmp_path / "missing" / "ledger.sqlite")
