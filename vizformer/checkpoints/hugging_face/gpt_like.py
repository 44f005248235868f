"""What decoders in the manner of GPT-2 have in common: what becomes of their tensors."""

from collections.abc import Mapping, Sequence

from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.config import ModelConfig


def head(config: ModelConfig) -> list[Part]:
    """The output layer, where it is not tied, and its bias, where it has one."""
    weight = [] if config.tied_unembedding else linear("lm_head", "unembedding", bias=False)
    return [*weight, *([Part("lm_head.bias", ("logit_bias",))] if config.logit_bias else [])]


def tensors(
    config: ModelConfig,
    template: Mapping[str, Sequence[str]],
    table: str,
    positions: str,
    layer: str = "h.{}",
    final: str = "ln_f",
    *,
    skip: int = 0,
    no_bias: Sequence[str] = (),
    transposed: Sequence[str] = (),
) -> list[Part]:
    """What becomes of every tensor.

    `table`, `positions` and `final` are what tables and the last norm are called, `layer` is with what the names of the
    modules in `template` begin; the others are as in `Part` and `layers`.
    """
    name = "decoder.layers.{}"
    return [
        Part(f"{table}.weight", ("embedding.weight",)),
        Part(f"{positions}.weight", ("position_embedding.weight",), skip=skip),
        *layers(template, layer, name, config.n_decoder_layers, no_bias=no_bias, transposed=transposed),
        *(linear(final, "decoder.final_norm") if config.final_norm else []),
        *head(config),
    ]
