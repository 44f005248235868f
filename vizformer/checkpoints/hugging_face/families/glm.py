"""GLM-4: LLaMA's layers, neighbouring numbers of a half of each head turned, the gate in one tensor with its input.

"glm" are the first models of 2024; "glm4" those of 2025, which also normalise what a sublayer has found.

Source: Team GLM 2024, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools", and the weights
published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    NORMS,
    OUT,
    UNUSED,
    decoder,
    neighbours,
    tensors,
    ties,
)
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

LAYER = {
    **NORMS,
    **ATTENTION,
    **OUT,
    "mlp.gate_up_proj": ["feedforward.W_gate", "feedforward.W_in"],
    "mlp.down_proj": ["feedforward.W_out"],
}
OUTPUT_NORMS = {
    "post_self_attn_layernorm": ["self_output_norm"],
    "post_mlp_layernorm": ["feedforward_output_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, part=True)
    return {
        **options,
        "bias": False,
        "attention_bias": "qkv" if fields.flag("attention_bias") else "none",
        "norm_order": "sandwich" if fields.kind == "glm4" else "pre",
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    twice = config.norm_order == "sandwich"
    return neighbours(config, tensors(config, {**LAYER, **OUTPUT_NORMS} if twice else LAYER))


FAMILY = Family(
    name="GLM",
    types=("glm", "glm4"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
