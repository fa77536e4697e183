"""Products in bfloat16 are the same products up to rounding, and nothing else knows of it."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from model.forecaster import Forecaster
from training.accelerate import HalfLinear, accelerate, can_compile
from training.loss import batch_loss
from training.source import SyntheticSource
from training.synthetic import BatchSpec

ROUNDING = 2.0**-8
"""A bfloat16 has eight bits of fraction, the hidden one included."""


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def layer(request):
    torch.manual_seed(0)
    return nn.Linear(48, 24, bias=request.param)


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors differ by the rounding of a product's operands and result only."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype == torch.float32
    return bool((found - expected).norm() <= 1.5 * ROUNDING * expected.norm())


@pytest.mark.parametrize("shape", [(48,), (5, 48), (2, 3, 7, 48)])
def test_a_half_layer_answers_and_learns_as_the_whole_one_up_to_rounding(layer, shape):
    half = HalfLinear.sharing(copy.deepcopy(layer))
    inputs = torch.randn(shape)
    upstream = torch.randn(*shape[:-1], 24)
    gradients = []
    for each in (layer, half):
        x = inputs.clone().requires_grad_()
        answer = each(x)
        answer.backward(upstream)
        bias = [] if each.bias is None else [each.bias.grad]
        gradients.append([answer.detach(), x.grad, each.weight.grad, *bias])
    for whole, rounded in zip(*gradients, strict=True):
        assert close(rounded, whole)
    assert not torch.equal(gradients[0][0], gradients[1][0])


def test_the_gradient_of_a_bias_is_not_rounded():
    half = HalfLinear.sharing(nn.Linear(4, 2))
    upstream = torch.randn(1_000, 2)
    half(torch.randn(1_000, 4)).backward(upstream)
    torch.testing.assert_close(half.bias.grad, upstream.sum(0))


def test_a_half_layer_shares_its_weights(layer):
    half = HalfLinear.sharing(layer)
    assert half.weight is layer.weight
    assert half.bias is layer.bias


def test_names_and_weights_stay_what_they_were(tiny_config):
    forecaster = Forecaster(tiny_config)
    parameters = dict(forecaster.named_parameters())
    before = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    accelerate(forecaster, compiled=False)
    after = forecaster.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert all(dict(forecaster.named_parameters())[name] is parameters[name] for name in before)
    Forecaster(tiny_config).load_state_dict(after)


def test_every_linear_layer_is_replaced_once(tiny_config):
    forecaster = Forecaster(tiny_config)
    linear = [name for name, part in forecaster.named_modules() if isinstance(part, nn.Linear)]
    accelerate(forecaster, compiled=False)
    accelerate(forecaster, compiled=False)
    half = [name for name, part in forecaster.named_modules() if isinstance(part, HalfLinear)]
    assert half == linear
    assert "blocks.1.kpi_attention.qkv" in half


def test_a_whole_step_is_the_same_step_up_to_rounding(tiny_config):
    torch.manual_seed(1)
    forecaster = Forecaster(tiny_config)
    for parameter in forecaster.parameters():
        nn.init.normal_(parameter, std=0.1)
    accelerated = copy.deepcopy(forecaster)
    accelerate(accelerated, compiled=False)
    spec = BatchSpec(series=8, max_context_steps=64, max_history_steps=128, max_horizon=32)
    batch = SyntheticSource(tiny_config, spec).batch(np.random.default_rng(3))
    losses = [batch_loss(each, batch) for each in (forecaster, accelerated)]
    torch.testing.assert_close(losses[0], losses[1], rtol=0.02, atol=0.02)
    gradients = []
    for loss, each in zip(losses, (forecaster, accelerated), strict=True):
        loss.backward()
        gradients.append(torch.cat([_gradient(weight) for weight in each.parameters()]))
    whole, rounded = gradients
    assert nn.functional.cosine_similarity(whole, rounded, dim=0) > 0.99


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch about itself
@pytest.mark.skipif(not can_compile(), reason="there is no C++ compiler")
def test_a_compiled_step_is_the_same_step(tiny_config):
    torch.manual_seed(1)
    plain = Forecaster(replace(tiny_config, layers=1))
    for parameter in plain.parameters():
        nn.init.normal_(parameter, std=0.1)
    compiled, half = copy.deepcopy(plain), copy.deepcopy(plain)
    accelerate(half, compiled=False)
    accelerate(compiled, compiled=True)
    spec = BatchSpec(series=8, max_context_steps=64, max_history_steps=128, max_horizon=32)
    for seed in range(3):
        batch = SyntheticSource(tiny_config, spec).batch(np.random.default_rng(seed))
        losses = [batch_loss(each, batch) for each in (half, compiled)]
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-3, atol=1e-4)
        losses[1].backward()


def _gradient(weight: torch.Tensor) -> torch.Tensor:
    # Of a single KPI, queries and keys across KPIs have none.
    return (torch.zeros_like(weight) if weight.grad is None else weight.grad).flatten()


def test_parts_are_compiled_only_where_asked(tiny_config, monkeypatch):
    compiled = []
    monkeypatch.setattr(nn.Module, "compile", lambda _, **options: compiled.append(options))
    forecaster = Forecaster(tiny_config)
    accelerate(forecaster, compiled=False)
    assert compiled == []
    accelerate(forecaster, compiled=True)
    assert compiled == [{"dynamic": True}] * (tiny_config.layers + 1)


@pytest.mark.parametrize(
    ("found", "can"), [({}, False), ({"clang++": "/usr/bin/clang++"}, True), ({"cc": "/cc"}, False)]
)
def test_a_compiler_for_cpp_is_needed_to_compile(monkeypatch, found, can):
    monkeypatch.setattr("training.accelerate.shutil.which", found.get)
    assert can_compile() is can
