"""ERNIE 4.5 and Helium: LLaMA's layers, with neighbouring numbers of each head turned by position.

Source: Baidu 2025, "ERNIE 4.5 Technical Report"; Kyutai 2025, "Helium 1"; and the weights published with them.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, neighbours, tensors, ties
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    if "use_bias" in fields.defaults:
        return {**options, "bias": fields.flag("use_bias")}, has_head
    width = options["d_model"]
    if options["head_dim"] is not None:
        fields.refuse("head_dim", N_("supported are heads as wide as their share of hidden_size={n}", n=width))
    biases = "qkv" if fields.flag("attention_bias") else "none"
    return {**options, "bias": fields.flag("mlp_bias"), "attention_bias": biases}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return neighbours(config, tensors(config))


FAMILY = Family(
    name="ERNIE 4.5",
    types=("ernie4_5", "helium"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
