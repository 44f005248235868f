"""What models cost: published sizes, PyTorch's own count of FLOPs, and formulas of the literature."""

from dataclasses import dataclass

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests import tiny
from vizformer.analysis.costs.generation_cost import forward_pass
from vizformer.analysis.costs.parameter_count import model_cost, parameters
from vizformer.config import ModelConfig
from vizformer.model import Transformer, count_parameters


@dataclass(frozen=True)
class Published:
    preset: str  # a key of `vizformer.presets.PRESETS`
    name: str
    parameters: float  # what its authors print, rounded as they do
    where: str  # the table, section or page on which they do
    # on how many tokens it was trained, where that is published; of an encoder-decoder those of one stack
    tokens: float | None = None

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.preset(self.preset)


_VASWANI = "Vaswani et al. 2017, arXiv:1706.03762v7, Table 3"
_DEVLIN = "Devlin et al. 2018, arXiv:1810.04805v2, section 3"
_GPT2 = "github.com/openai/gpt-2"  # (Table 2 of the paper prints 117M, 345M, 762M and 1542M)

PUBLISHED: tuple[Published, ...] = (
    # 100,000 steps of about 25,000 source and 25,000 target tokens (sections 5.1 and 5.2); the big one 300,000
    Published("transformer-base", "Transformer base", 65e6, _VASWANI, 2.5e9),
    Published("transformer-big", "Transformer big", 213e6, _VASWANI, 7.5e9),
    # 1,000,000 steps of 128,000 tokens (appendix A.2)
    Published("bert-base", "BERT base", 110e6, _DEVLIN, 128e9),
    Published("bert-large", "BERT large", 340e6, _DEVLIN, 128e9),
    Published("gpt2-small", "GPT-2 small", 124e6, _GPT2),
    Published("gpt2-medium", "GPT-2 medium", 355e6, _GPT2),
    Published("gpt2-large", "GPT-2 large", 774e6, _GPT2),
    Published("gpt2-xl", "GPT-2 XL", 1558e6, _GPT2),
    Published("gpt3-175b", "GPT-3", 175.0e9, "Brown et al. 2020, arXiv:2005.14165v4, Table 2.1", 300e9),
    Published("t5-base", "T5 base", 220e6, "Raffel et al. 2019, arXiv:1910.10683v4, section 3.1.1", 2.0**35),
    Published("bart-large", "BART large", 400e6, "github.com/facebookresearch/fairseq, examples/bart"),
    Published("llama-7b", "LLaMA 7B", 6.7e9, "Touvron et al. 2023, arXiv:2302.13971v1, Table 2", 1.0e12),
    Published("llama2-70b", "Llama 2 70B", 70e9, "Touvron et al. 2023, arXiv:2307.09288v2, Table 1", 2.0e12),
    Published("mistral-7b", "Mistral 7B", 7.3e9, "mistral.ai, announcement of 27 September 2023"),
)

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
    "options",
    [
        dict(n_encoder_layers=2, n_decoder_layers=3),
        dict(n_encoder_layers=0, n_decoder_layers=2, n_kv_heads=2, feedforward="gated", activation="silu"),
        dict(n_encoder_layers=2, n_decoder_layers=0),
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


def test_the_training_of_gpt3_costs_what_its_authors_print() -> None:
    gpt3 = BY_PRESET["gpt3-175b"]
    found = model_cost(gpt3.config, 2048)
    assert gpt3.tokens is not None
    assert found.training_flops(gpt3.tokens) == pytest.approx(3.14e23, rel=0.05)  # Brown et al. 2020, Table D.1


def test_the_cache_of_llama2_is_an_eighth_of_what_it_would_be() -> None:
    config = ModelConfig.preset("llama2-70b")
    own = ModelConfig.preset("llama2-70b", n_kv_heads=None)
    assert model_cost(own, 4096).kv_numbers == 8 * model_cost(config, 4096).kv_numbers
    assert model_cost(config, 4096).kv_numbers_per_token == 2 * 80 * 8 * 128
    assert model_cost(ModelConfig.preset("bert-base"), 512).kv_numbers == 0
