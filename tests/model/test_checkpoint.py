"""A checkpoint carries its story, and a damaged or foreign one is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load, load_file, save_file

from model.checkpoint import FORMAT, file_digest, load_checkpoint, save_checkpoint
from model.errors import CheckpointError
from model.forecaster import Forecaster


@pytest.fixture
def path(tmp_path, tiny_checkpoint):
    file = tmp_path / "tiny.safetensors"
    save_checkpoint(
        replace(tiny_checkpoint, training={"seed": 7}, evaluation={"task": {"WQL": 0.5}}), file
    )
    return file


def rewrite(path, *, weights=None, **metadata):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        kept = dict(file.metadata())
    kept.update(metadata)
    save_file(weights or load_file(path), path, metadata=kept)


def test_what_was_saved_comes_back(path, tiny_checkpoint):
    found = load_checkpoint(path)
    assert found.config == tiny_checkpoint.config
    assert found.training == {"seed": 7}
    assert found.evaluation == {"task": {"WQL": 0.5}}
    assert found.calibration is None
    assert found.identity.name == "tiny"
    for name, tensor in tiny_checkpoint.weights.items():
        torch.testing.assert_close(found.weights[name], tensor)


def test_a_file_older_than_planned_inputs_copies_and_positions_is_read(path, tiny_config):
    inputs = tuple(name for name in tiny_config.inputs if name != "planned")
    old = replace(tiny_config, inputs=inputs)
    fields = {k: v for k, v in old.to_dict().items() if k not in ("position", "copies")}
    weights = dict(Forecaster(old).state_dict())
    rewrite(path, weights=weights, config=json.dumps(fields))
    found = load_checkpoint(path)
    assert found.config == old
    assert found.build().parameter_count() == sum(tensor.numel() for tensor in weights.values())


def test_the_digest_is_that_of_the_file(path):
    assert load_checkpoint(path).digest == file_digest(path)
    assert file_digest(path).startswith("sha256:")


def test_the_digest_is_that_of_the_weights_even_if_the_file_is_replaced(path, monkeypatch):
    digest = file_digest(path)

    def replace_behind(content):
        path.write_bytes(b"something else")
        return load(content)

    monkeypatch.setattr("model.checkpoint.load", replace_behind)
    assert load_checkpoint(path).digest == digest


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="whole safetensors file"):
        load_checkpoint(tmp_path)


def test_the_same_content_has_the_same_digest(path):
    content = load_checkpoint(path)
    copies = [path.with_name(f"copy{number}.safetensors") for number in range(4)]
    assert len({save_checkpoint(content, copy) for copy in copies}) == 1
    assert load_file(copies[0]).keys() == content.weights.keys()


def test_no_half_written_file_is_left(path):
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"none\.safetensors"):
        load_checkpoint(tmp_path / "none.safetensors")


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_truncated_file_is_refused(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="whole safetensors file"):
        load_checkpoint(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"\x80\x04 this is a pickle")
    with pytest.raises(CheckpointError):
        load_checkpoint(path)


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    save_file({"w": torch.zeros(2)}, path)
    with pytest.raises(CheckpointError, match="another kind"):
        load_checkpoint(path)


def test_a_later_format_is_refused(path):
    rewrite(path, format="rancast-checkpoint/99")
    with pytest.raises(CheckpointError, match=FORMAT):
        load_checkpoint(path)


def test_a_configuration_of_another_version_is_refused(path, tiny_config):
    rewrite(path, config=json.dumps({**tiny_config.to_dict(), "moon": 1}))
    with pytest.raises(CheckpointError, match="moon"):
        load_checkpoint(path)


def test_garbled_metadata_is_refused(path):
    rewrite(path, training="{not json")
    with pytest.raises(CheckpointError, match="metadata"):
        load_checkpoint(path)


def test_weights_that_do_not_fit_are_refused(path):
    weights = load_file(path)
    weights.pop("head.out.bias")
    rewrite(path, weights=weights)
    with pytest.raises(CheckpointError, match="do not fit"):
        load_checkpoint(path)


def test_weights_that_are_not_finite_are_refused(path):
    weights = load_file(path)
    weights["head.out.bias"][3] = torch.nan
    rewrite(path, weights=weights)
    with pytest.raises(CheckpointError, match=r"head\.out\.bias"):
        load_checkpoint(path)


def test_others_may_read_it_as_the_umask_allows(path):
    plain = path.with_name("plain")
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
