"""StarCoder2: LLaMA's attention with LayerNorm, biases and a feed-forward layer without gate.

Source: Lozhkov et al. 2024, "StarCoder 2 and The Stack v2", section 6, and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, NORMS, OUT, UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

LAYER = {**NORMS, **ATTENTION, **OUT, "mlp.c_fc": ["feedforward.W_in"], "mlp.c_proj": ["feedforward.W_out"]}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, eps="norm_epsilon")
    return {**options, "norm": "layer_norm", "feedforward": "plain", "bias": fields.flag("use_bias")}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return tensors(config, LAYER)


FAMILY = Family(
    name="StarCoder2",
    types=("starcoder2",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
