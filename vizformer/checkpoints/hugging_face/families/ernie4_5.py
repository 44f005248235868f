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

ERNIE = {
    "vocab_size": 103_424,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 18,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 500_000.0,
    "use_bias": False,
}
HELIUM = {
    "vocab_size": 48_000,
    "hidden_size": 2560,
    "intermediate_size": 7040,
    "num_hidden_layers": 24,
    "num_attention_heads": 20,
    "num_key_value_heads": 20,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-8,
    "tie_word_embeddings": False,
    "pad_token_id": 3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 100_000.0,
    "attention_bias": False,
    "mlp_bias": False,
}


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
    defaults={"ernie4_5": ERNIE, "helium": HELIUM},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
