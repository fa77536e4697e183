"""The model is loaded as a service would load it, with the context that is asked for."""

from __future__ import annotations

import pytest
import torch

from model.inference_path import PathKind
from model.predictor import Rung
from service.errors import StartupError
from service.plan.subject import context_grid, load_subject
from service.plan.workload import WorkloadError
from service.settings import Settings


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def settings(file, **others) -> Settings:
    return Settings(model_path=file, compiled="off", **others)


def test_rungs_have_the_context_of_the_checkpoint(tiny_file):
    ladder, path = load_subject(settings(tiny_file)).rungs()
    assert [(step.rung, step.most_steps) for step in ladder.steps] == [
        (Rung.FULL, 64),
        (Rung.SHORT, 16),
        (Rung.BASELINE, None),
    ]
    assert path.kind is PathKind.EAGER


def test_a_shorter_context_is_kept_in_whole_patches(tiny_file):
    subject = load_subject(settings(tiny_file), 40)
    assert subject.rungs()[0].steps[0].most_steps == 32
    assert subject.rungs(16)[0].steps[0].most_steps == 16
    assert context_grid(subject) == (16, 32)


def test_contexts_ascend_to_all_that_the_checkpoint_takes(tiny_file):
    assert context_grid(load_subject(settings(tiny_file))) == (16, 32, 48, 64)


@pytest.mark.parametrize("steps", [0, 15, 65])
def test_a_context_beyond_the_checkpoints_is_refused(tiny_file, steps):
    with pytest.raises(WorkloadError, match=f"expected a context of 16 to 64 samples .* {steps}"):
        load_subject(settings(tiny_file), steps)


def test_a_checkpoint_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"no checkpoint")
    with pytest.raises(StartupError, match="the model cannot be loaded"):
        load_subject(settings(tmp_path / "bad.safetensors"))


def test_torch_computes_with_the_threads_of_the_settings(tiny_file):
    load_subject(settings(tiny_file, threads=2))
    assert torch.get_num_threads() == 2
