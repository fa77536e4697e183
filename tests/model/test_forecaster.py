"""The network itself: positions, visibility, gradients, first answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from model.config import COPY_CANDIDATES as CANDIDATES
from model.config import PRESETS, ForecasterConfig
from model.copies import Copies
from model.errors import CheckpointError, ModelError
from model.forecaster import Forecaster, SelfAttention, alibi_slopes
from model.rotary import rotary_table
from model.tokens import Tokens, token_width


@pytest.fixture
def forecaster(tiny_checkpoint):
    return tiny_checkpoint.build()


@pytest.fixture
def tokens(tiny_config):
    generator = torch.Generator().manual_seed(1)
    shape = (2, 3, 7, token_width(tiny_config))
    return Tokens(
        inputs=torch.randn(shape, generator=generator),
        visible=torch.ones(shape[:3], dtype=torch.bool),
        kinds=torch.zeros(2, 3, dtype=torch.int64),
        future_patches=2,
        stats=None,  # type: ignore[arg-type]
    )


def test_it_answers_every_future_sample_at_every_level(forecaster, tokens):
    assert forecaster(tokens).shape == (2, 3, 32, 11)


def test_an_invisible_token_has_no_influence(forecaster, tokens):
    visible = tokens.visible.clone()
    visible[:, :, 1] = False
    garbage = tokens.inputs.clone()
    garbage[:, :, 1] = 1e4
    clean = forecaster(replace(tokens, visible=visible))
    spoilt = forecaster(replace(tokens, visible=visible, inputs=garbage))
    torch.testing.assert_close(clean, spoilt, rtol=0, atol=1e-6)


def test_an_absent_kpi_has_no_influence_on_the_others(forecaster, tokens):
    visible = tokens.visible.clone()
    visible[:, 2] = False
    with_absent = forecaster(replace(tokens, visible=visible))[:, :2]
    without = forecaster(
        Tokens(tokens.inputs[:, :2], tokens.visible[:, :2], tokens.kinds[:, :2], 2, tokens.stats)
    )
    torch.testing.assert_close(with_absent, without, rtol=0, atol=1e-5)


def test_the_order_of_the_context_matters(forecaster, tokens):
    turned = tokens.inputs.clone()
    turned[:, :, [0, 4]] = turned[:, :, [4, 0]]
    assert not torch.allclose(forecaster(tokens), forecaster(replace(tokens, inputs=turned)))


def test_without_positions_the_order_of_the_context_says_nothing(tiny_config, tokens):
    torch.manual_seed(5)
    forecaster = Forecaster(replace(tiny_config, position="none"))
    torch.nn.init.normal_(forecaster.head.out.weight)
    turned = tokens.inputs.clone()
    turned[:, :, [0, 4]] = turned[:, :, [4, 0]]
    one, other = forecaster(tokens), forecaster(replace(tokens, inputs=turned))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_linear_biases_make_near_patches_count_more_than_far_ones(tiny_config):
    torch.manual_seed(6)
    attention = SelfAttention(tiny_config)
    slopes = torch.full((tiny_config.heads,), 4.0)
    x = torch.randn(1, 9, tiny_config.width)
    near, far = x.clone(), x.clone()
    near[:, 7] += 1
    far[:, 0] += 1
    visible = torch.ones(1, 9, dtype=torch.bool)
    base, after_near, after_far = (
        attention(tokens, visible, alibi_slopes=slopes)[:, 8] for tokens in (x, near, far)
    )
    assert (after_near - base).norm() > 100 * (after_far - base).norm()


@pytest.mark.parametrize("heads", [1, 2, 5, 8])
def test_slopes_fall_by_equal_ratios_from_a_half(heads):
    slopes = alibi_slopes(heads)
    assert slopes.shape == (heads,)
    assert slopes[0] == 0.5
    assert heads == 1 or slopes[-1] == 1 / 256
    ratios = slopes[1:] / slopes[:-1]
    torch.testing.assert_close(ratios, ratios[:1].expand_as(ratios))


@pytest.mark.parametrize("position", ["alibi", "none"])
def test_linear_biases_and_no_positions_have_the_same_weights_as_rotary_ones(tiny_config, position):
    other = Forecaster(replace(tiny_config, position=position))
    assert other.state_dict().keys() == Forecaster(tiny_config).state_dict().keys()


@pytest.fixture
def copies():
    """Candidates of two future patches, some of them unknown."""
    generator = torch.Generator().manual_seed(7)
    shape = (2, 3, 32, len(CANDIDATES))
    known = torch.rand(shape, generator=generator) > 0.4
    known[..., -1] = True
    return Copies(torch.randn(shape, generator=generator) * known, known)


def test_an_untrained_head_starts_from_the_mean_of_what_is_known(tiny_config, tokens, copies):
    forecaster = Forecaster(replace(tiny_config, copies=CANDIDATES))
    answer = forecaster(replace(tokens, copies=copies))
    mean = copies.values.sum(-1) / copies.known.sum(-1)
    torch.testing.assert_close(answer[..., 5], mean)
    assert (answer.diff(dim=-1) > 0).all()


def choosy(config: ForecasterConfig) -> Forecaster:
    """A forecaster whose mixture differs from sample to sample."""
    forecaster = Forecaster(replace(config, copies=CANDIDATES))
    assert forecaster.head.mixture is not None
    torch.nn.init.normal_(forecaster.head.mixture.weight)
    return forecaster


def test_what_is_not_known_is_not_copied(tiny_config, tokens, copies):
    torch.manual_seed(8)
    forecaster = choosy(tiny_config)
    spoilt = Copies(torch.where(copies.known, copies.values, 1e6), copies.known)
    clean, other = (forecaster(replace(tokens, copies=found)) for found in (copies, spoilt))
    torch.testing.assert_close(clean, other, rtol=0, atol=0)


def test_a_mixture_lies_between_its_candidates(tiny_config, tokens, copies):
    torch.manual_seed(9)
    forecaster = choosy(tiny_config)
    offsets = forecaster(tokens)
    start = (forecaster(replace(tokens, copies=copies)) - offsets)[..., 0]
    low = copies.values.masked_fill(~copies.known, torch.inf).amin(-1)
    high = copies.values.masked_fill(~copies.known, -torch.inf).amax(-1)
    assert (start >= low - 1e-5).all()
    assert (start <= high + 1e-5).all()


def test_attention_sees_only_the_distance_between_patches(tiny_config, tiny_checkpoint):
    attention = tiny_checkpoint.build().blocks[0].time_attention
    x = torch.randn(1, 9, tiny_config.width, generator=torch.Generator().manual_seed(2))
    visible = torch.ones(1, 9, dtype=torch.bool)
    width = tiny_config.head_width
    here = attention(x, visible, rotary_table(torch.arange(9), width))
    there = attention(x, visible, rotary_table(torch.arange(9) + 5_000, width))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-5)


def test_gradients_agree_with_finite_differences(tiny_config):
    torch.manual_seed(3)
    forecaster = Forecaster(replace(tiny_config, inputs=("recent",))).double()
    names = ["blocks.1.time_attention.qkv.weight", "blocks.1.kpi_attention.key_norm"]
    names += ["blocks.0.mix.out.weight", "embedding.kind.weight", "head.norm.weight"]
    with torch.no_grad():
        for weight in forecaster.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    visible = torch.ones(1, 2, 3, dtype=torch.bool)
    visible[0, 1, 0] = False
    width = token_width(forecaster.config)
    tokens = Tokens(
        inputs=torch.randn(1, 2, 3, width, dtype=torch.float64, requires_grad=True),
        visible=visible,
        kinds=torch.tensor([[0, 1]]),
        future_patches=1,
        stats=None,  # type: ignore[arg-type]
    )

    def answer(inputs, *weights):
        parameters = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(forecaster, parameters, replace(tokens, inputs=inputs))

    weights = [forecaster.get_parameter(name).detach().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(answer, (tokens.inputs, *weights), fast_mode=True)


def test_an_untrained_forecaster_answers_with_a_normal_spread(tiny_config, tokens):
    answer = Forecaster(tiny_config)(tokens)
    torch.testing.assert_close(answer[..., 5], torch.zeros_like(answer[..., 5]))
    torch.testing.assert_close(answer[0, 0, 0, -1].item(), 1.6449, atol=1e-3, rtol=0)


def test_presets_stay_within_their_size():
    sizes = {name: Forecaster(config).parameter_count() for name, config in PRESETS.items()}
    assert sizes["nano"] < 400_000
    assert 1_000_000 < sizes["small"] < 2_000_000
    assert sizes["small"] < sizes["base"] < 4_500_000


@pytest.mark.parametrize(
    "fields",
    [
        {"width": 30, "heads": 4},
        {"heads": 0},
        {"patch": -16},
        {"width": 128.0},
        {"rope_base": 0.0},
        {"levels": (0.5,)},
        {"levels": (0.5, 0.1)},
        {"levels": (0.0, 0.5)},
        {"inputs": ("calendar", "value")},
        {"inputs": ("moon",)},
        {"position": "moon"},
    ],
)
def test_an_impossible_configuration_is_refused(fields):
    with pytest.raises(ModelError, match="expected"):
        ForecasterConfig(**fields)


def test_a_configuration_survives_its_dictionary(tiny_config):
    assert ForecasterConfig.from_dict(tiny_config.to_dict()) == tiny_config


def test_a_configuration_written_before_copies_and_positions_means_what_it_meant(tiny_config):
    fields = tiny_config.to_dict()
    del fields["position"], fields["copies"]
    fields["inputs"] = [name for name in fields["inputs"] if name != "planned"]
    old = ForecasterConfig.from_dict(fields)
    assert (old.position, old.copies) == ("rope", ())
    assert "planned" not in old.inputs
    assert Forecaster(old).head.mixture is None


def test_an_unknown_field_in_a_configuration_is_refused(tiny_config):
    with pytest.raises(CheckpointError, match="moon"):
        ForecasterConfig.from_dict({**tiny_config.to_dict(), "moon": 1})


def test_a_configuration_with_fewer_inputs_builds_narrower_tokens(tiny_config):
    fewer = replace(tiny_config, inputs=("value", "calendar"))
    assert token_width(fewer) < token_width(tiny_config)
    assert Forecaster(fewer).embedding.hidden.in_features == token_width(fewer)
