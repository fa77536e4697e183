import resource
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from kpi.catalogue import load_catalogue
from model.compiled import CompiledNetwork, Precision
from model.compiled.graph import Program, Shape, tensors_of, traced
from model.compiled.runner import RUNNER
from model.compiled.trial import trial_windows
from model.copies import Copies
from model.errors import ArtifactError
from model.scaling import ScaleStats
from model.tokens import Tokens, token_width
from model.transformer import TransformerPredictor

SIZES = [(1, 1, 2, 1), (1, 1, 11, 3), (3, 1, 9, 2), (1, 2, 2, 1), (2, 4, 11, 3), (64, 3, 5, 1)]


def draw_tokens(config, windows, kpis, patches, future):
    torch.manual_seed(windows + kpis + patches)
    ahead = future * config.patch
    values = torch.randn(windows, kpis, ahead, len(config.copies))
    whole = torch.zeros(windows, kpis, 1)
    return Tokens(
        inputs=torch.randn(windows, kpis, patches, token_width(config)),
        visible=torch.rand(windows, kpis, patches) > 0.2,
        kinds=torch.randint(4, (windows, kpis)),
        future_patches=future,
        stats=ScaleStats(whole, whole),
        copies=Copies(values, torch.rand(values.shape) > 0.2),
    )


@pytest.mark.parametrize("size", SIZES)
def test_compiled_code_answers_as_the_forecaster_whatever_the_sizes(artifact, compiled_tiny, size):
    tokens = draw_tokens(compiled_tiny.checkpoint.config, *size)
    with torch.inference_mode():
        wanted = compiled_tiny.checkpoint.build()(tokens)
        found = CompiledNetwork(artifact)(tokens)
    torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-4)


def test_inputs_of_any_strides_are_taken(artifact, compiled_tiny):
    tokens = draw_tokens(compiled_tiny.checkpoint.config, 2, 3, 7, 2)
    turned = replace(tokens, inputs=tokens.inputs.transpose(1, 2).contiguous().transpose(1, 2))
    network = CompiledNetwork(artifact)
    assert torch.equal(network(turned), network(tokens))


def test_forecasts_are_those_of_the_checkpoint(artifact, compiled_tiny):
    checkpoint, catalogue = compiled_tiny.checkpoint, load_catalogue()
    windows = trial_windows(checkpoint.config)
    plain = TransformerPredictor(checkpoint, catalogue)
    compiled = TransformerPredictor(checkpoint, catalogue, network=CompiledNetwork(artifact))
    for wanted, found in zip(
        plain.predict(windows, 40, (0.1, 0.5, 0.9)),
        compiled.predict(windows, 40, (0.1, 0.5, 0.9)),
        strict=True,
    ):
        np.testing.assert_allclose(found.values, wanted.values, rtol=1e-3, atol=1e-3)
        assert found.model == wanted.model


def test_two_threads_may_ask_at_once(artifact, compiled_tiny):
    network = CompiledNetwork(artifact)
    drawn = [draw_tokens(compiled_tiny.checkpoint.config, 2, 2, n, 1) for n in range(2, 10)]
    alone = [network(tokens) for tokens in drawn]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(network, drawn * 4))
    for index, found in enumerate(together):
        assert torch.equal(found, alone[index % len(alone)])


def test_other_threads_go_on_while_a_program_runs(artifact, compiled_tiny):
    program = CompiledNetwork(artifact)._programs[Shape.SEVERAL]
    tensors = tensors_of(draw_tokens(compiled_tiny.checkpoint.config, 64, 3, 11, 3))
    count, stop = [0], threading.Event()

    def go_on():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)  # lets the interpreter go, once a turn

    other = threading.Thread(target=go_on)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1_000)  # only who lets the interpreter go is interrupted
    try:
        other.start()
        gone_on = False
        for _ in range(500):
            before = count[0]
            program(tensors)
            gone_on = gone_on or count[0] > before
            if gone_on:
                break
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()
    assert gone_on


def test_answers_and_inputs_are_given_back(artifact, compiled_tiny):
    network = CompiledNetwork(artifact)
    tokens = draw_tokens(compiled_tiny.checkpoint.config, 64, 3, 11, 3)
    answer_kib = network(tokens).nbytes / 1024

    def peak_kib():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(20):
        network(tokens)
    before = peak_kib()
    for _ in range(300):
        network(tokens)
    assert peak_kib() - before < 100 * answer_kib


@pytest.mark.parametrize("name", [*(f"{shape}.pt2" for shape in Shape), RUNNER])
def test_a_file_that_cannot_be_loaded_is_refused_by_name(artifact, tmp_path, name):
    folder = tmp_path / "copy"
    shutil.copytree(artifact.folder, folder)
    (folder / name).write_bytes(b"no code")
    with pytest.raises(ArtifactError, match=f"{name} cannot be loaded"):
        CompiledNetwork(replace(artifact, folder=folder))


def test_a_program_that_fails_says_so(artifact, compiled_tiny):
    tokens = draw_tokens(compiled_tiny.checkpoint.config, 2, 2, 7, 2)
    few = replace(tokens, copies=None)
    with pytest.raises(ArtifactError, match="compiled code failed"):
        CompiledNetwork(artifact)(few)


@pytest.mark.parametrize("shape", Shape)
def test_the_graph_of_narrow_products_answers_in_float32_and_nearly_the_same(compiled_tiny, shape):
    checkpoint = compiled_tiny.checkpoint
    program = traced(checkpoint.build(), Precision.BFLOAT16, shape).module()
    tokens = draw_tokens(checkpoint.config, 4, 1 if shape is Shape.SINGLE else 2, 6, 2)
    with torch.inference_mode():
        found = program(*tensors_of(tokens))
        wanted = Program(checkpoint.build(), Precision.FLOAT32)(*tensors_of(tokens))
    assert found.dtype is torch.float32
    assert not torch.equal(found, wanted)
    torch.testing.assert_close(found, wanted, atol=0.1, rtol=0.05)


def test_a_forecaster_without_copies_has_a_graph_too(tiny_checkpoint):
    program = traced(tiny_checkpoint.build(), Precision.FLOAT32, Shape.SEVERAL).module()
    tokens = replace(draw_tokens(tiny_checkpoint.config, 3, 2, 6, 2), copies=None)
    with torch.inference_mode():
        found = program(*tensors_of(tokens))
        torch.testing.assert_close(found, tiny_checkpoint.build()(tokens))
