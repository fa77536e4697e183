"""Which file a user means by the name of a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.pretrained import default_checkpoint_path, find_checkpoint, shipped_names


def test_no_name_means_the_default():
    assert find_checkpoint(None) == default_checkpoint_path()


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_checkpoint_is_found_by_its_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = find_checkpoint(Path(name))
    assert found.is_file()
    assert found.stem == name


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Path("rancast-small")
    own.write_bytes(b"mine")
    assert find_checkpoint(own) == own


@pytest.mark.parametrize("path", ["other", "dir/rancast-small", "rancast-small.safetensors"])
def test_any_other_path_is_taken_as_it_is(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint(Path(path)) == Path(path)
