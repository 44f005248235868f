"""The calculator: published sizes, PyTorch's own count of FLOPs, and formulas of the literature."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests import tiny
from vizformer.analysis.costs.generation_cost import cache_bytes, forward_pass, rolling_cache_bytes
from vizformer.analysis.costs.model_costs import activations, model_cost, overtakes, parameters
from vizformer.analysis.costs.paper_results import PUBLISHED, Published
from vizformer.config import ModelConfig
from vizformer.model import Cache, Transformer, count_parameters

BY_PRESET = {one.preset: one for one in PUBLISHED}


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda one: one.preset)
@pytest.mark.sample(5)
def test_the_presets_are_as_large_as_their_authors_say(published: Published) -> None:
    """Within 3 %: authors round, and what they count in differs (37,000 tokens are "about", BERT's pooler)."""
    assert count_parameters(published.config) == pytest.approx(published.parameters, rel=0.03)


@pytest.mark.parametrize(
    ("preset", "exact"),
    [
        ("bert-base", 109_514_298),  # BertForMaskedLM of transformers
        ("gpt2-small", 124_439_808),  # the others are counted on the published files
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("t5-base", 222_903_552),
        ("llama-7b", 6_738_415_616),
        ("llama2-70b", 68_976_648_192),
        ("mistral-7b", 7_241_732_096),
    ],
)
@pytest.mark.sample(3)
def test_the_presets_have_as_many_parameters_as_the_published_files(preset: str, exact: int) -> None:
    assert count_parameters(ModelConfig.preset(preset)) == exact


@pytest.mark.sample(2)
@pytest.mark.parametrize("preset", BY_PRESET)
def test_two_layers_tell_the_parameters_of_all(preset: str) -> None:
    config = ModelConfig.preset(preset)
    assert sum(parameters(config).values()) == count_parameters(config)


def test_stacks_of_different_depth_are_counted() -> None:
    config = tiny.config(n_encoder_layers=3, n_decoder_layers=1)
    assert sum(parameters(config).values()) == count_parameters(config)


@pytest.mark.parametrize(
    ("options", "kept", "rolling"),
    [
        (tiny.SHARED_KEYS, 7 * 2 * (2 * 2 * 6), 0),
        ({**tiny.SHARED_KEYS, "attention_bias": "all", "norm": "layer_norm"}, 7 * 2 * (2 * 2 * 6), 0),
        ({**tiny.SHARED_KEYS, "qk_norm_layers": (0, 2)}, 7 * 2 * (2 * 2 * 6), 0),
        (
            tiny.GEMMA4,
            7 * 2 * (2 * 2 * 6 + 2 * 10),
            4 * 2 * (2 * 2 * 6),
        ),  # the windows of two layers forget 4 of 7 tokens
        ({**tiny.GEMMA4, "kv_layers": (0, 1, 0, 1)}, 7 * (2 * 2 * 6 + 2 * 10), 4 * (2 * 2 * 6)),
        (tiny.GEMMA4_SMALL, 7 * (2 * 2 * 6 + 2 * 10), 4 * (2 * 2 * 6)),
        (tiny.GEMMA3N, 7 * 2 * (2 * 2 * 6), 4 * (2 * 2 * 6)),
        ({**tiny.SHARED_KEYS, "shared_kv_d_ff": 9}, 7 * 2 * (2 * 2 * 6), 0),
    ],
)
def test_layers_that_differ_in_heads_and_keys_are_counted(options: dict[str, object], kept: int, rolling: int) -> None:
    """Their parameters on the model, their multiplications by PyTorch, their cache on one."""
    config = tiny.config("decoder-only", **options)
    model, cache, ids = tiny.randomise(Transformer(config)).eval(), Cache(), tiny.ids(7)
    assert sum(parameters(config).values()) == count_parameters(config) == sum(x.numel() for x in model.parameters())
    backend = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with FlopCounterMode(display=False) as counter, torch.inference_mode(), backend:
        model(ids)
    assert counter.get_total_flops() == 2 * forward_pass(config, 7).total
    with torch.inference_mode():
        model.decode(ids, cache=cache)
    assert cache.nbytes == cache_bytes(config, 7) == 4 * kept
    assert rolling_cache_bytes(config, 7) == 4 * (kept - rolling)


def test_layers_without_a_norm_of_queries_and_keys_are_counted() -> None:
    config = tiny.config("decoder-only", **{**tiny.LLAMA4, "n_decoder_layers": 3})
    assert sum(parameters(config).values()) == count_parameters(config)


@pytest.mark.parametrize(
    "options",
    [
        dict(n_encoder_layers=2, n_decoder_layers=3),
        dict(n_encoder_layers=0, n_decoder_layers=2, n_kv_heads=2, feedforward="gated", activation="silu"),
        dict(n_encoder_layers=2, n_decoder_layers=0),
        {**tiny.DEBERTA, "n_encoder_layers": 2, "n_decoder_layers": 0},
        {**tiny.DEBERTA_V3, "n_encoder_layers": 2, "n_decoder_layers": 0, "disentangled": "p2c"},
    ],
)
def test_a_forward_multiplies_as_often_as_pytorch_counts(options: dict[str, object]) -> None:
    config = tiny.config(**options)
    model, n = Transformer(config).eval().requires_grad_(False), 9
    ids = torch.arange(n)[None] % 5 + 4
    both = config.architecture == "encoder-decoder"
    with (
        FlopCounterMode(display=False) as counter,
        torch.no_grad(),
        torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    ):
        model(ids, ids) if both else model(ids)
    assert counter.get_total_flops() // 2 == forward_pass(config, n).total


@pytest.mark.parametrize("layers", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("options", [tiny.HYBRID, tiny.MAMBA2, tiny.SHORT], ids=["delta", "space", "convolution"])
def test_layers_that_keep_a_state_are_counted_as_they_are(layers: tuple[int, ...], options: dict) -> None:
    config, n = tiny.config("decoder-only", **{**options, "state_layers": layers, "n_decoder_layers": 3}), 9
    model = Transformer(config).eval().requires_grad_(False)
    cost, cache = model_cost(config, n), Cache()
    assert cost.total == count_parameters(config)
    matrices = [
        weight.numel()
        for name, weight in model.named_parameters()
        if ".self_attention." in name and weight.dim() > 1 and (options is not tiny.SHORT or "filters" not in name)
    ]
    assert cost.forward.projections == n * sum(matrices)
    # Through the states of all heads four times, or three, where nothing is read before it is written.
    state = 4 * 6 * 5 * 7 if options is tiny.HYBRID else 3 * config.n_heads * 5 * config.d_head
    state = (3 + 2) * config.d_model if options is tiny.SHORT else state  # the filter and two gates
    attention = 2 * n * config.n_heads * config.d_head
    assert cost.forward.attention == n * (len(layers) * state + (3 - len(layers)) * attention)
    with torch.inference_mode():
        model.decode(torch.arange(n)[None] % 5 + 4, cache=cache)
    assert 4 * cost.kv_numbers == cache.nbytes
    grows = 2 * config.kv_heads * config.d_head
    assert cost.kv_numbers_per_token == (3 - len(layers)) * grows
    assert cost.activations.maps == (3 - len(layers)) * config.n_heads * n * n


def test_the_training_of_gpt3_costs_what_its_authors_print() -> None:
    gpt3 = BY_PRESET["gpt3-175b"]
    found = model_cost(gpt3.config, 2048)
    assert gpt3.tokens is not None
    assert found.rule_of_thumb(gpt3.tokens) == pytest.approx(3.14e23, rel=0.01)  # Brown et al. 2020, Table D.1
    assert found.training_flops(gpt3.tokens) == pytest.approx(3.14e23, rel=0.05)


def test_activations_of_gpt_are_those_of_korthikanti() -> None:
    config = ModelConfig.preset("gpt3-175b")
    s, h, a, layers = 2048, config.d_model, config.n_heads, config.n_decoder_layers
    found = activations(config, s)
    # equation 1: s h (34 + 5 a s / h) bytes a layer; less 2 s h and 3 a s^2 for the masks and the output of dropout
    assert 2 * found.rows == layers * s * h * 32
    assert 2 * found.maps == layers * 2 * a * s * s


def test_no_attention_overtakes_nothing() -> None:
    assert overtakes(tiny.config("decoder-only", **tiny.MAMBA2)) is None
    assert overtakes(tiny.config("decoder-only", **tiny.HYBRID)) is not None  # its second layer has attention


def test_attention_overtakes_where_both_cost_the_same() -> None:
    base = ModelConfig.preset("transformer-base")
    assert overtakes(base).products == 4 * 512  # d_ff = 4 d
    assert overtakes(base).whole == 2 * 512
    for config in (base, ModelConfig.preset("llama2-70b"), ModelConfig.preset("bert-base")):
        n = round(overtakes(config).whole)
        cost = forward_pass(config, n)
        if config.architecture != "encoder-decoder":  # (which has two attentions in half of its layers)
            assert cost.attention + cost.projections == pytest.approx(cost.feedforward, rel=1e-3)


def test_the_cache_of_llama2_is_an_eighth_of_what_it_would_be() -> None:
    config = ModelConfig.preset("llama2-70b")
    own = ModelConfig.preset("llama2-70b", n_kv_heads=None)
    assert model_cost(own, 4096).kv_numbers == 8 * model_cost(config, 4096).kv_numbers
    assert model_cost(config, 4096).kv_numbers_per_token == 2 * 80 * 8 * 128
    assert model_cost(ModelConfig.preset("bert-base"), 512).kv_numbers == 0
