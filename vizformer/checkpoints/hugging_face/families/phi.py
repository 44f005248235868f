"""Phi (1, 1.5 and 2): parallel layers behind one norm, rotary positions for a part of each head, biases everywhere.

Source: Gunasekar et al. 2023, "Textbooks Are All You Need", section 2.3, and the weights published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM, byte_level_texts, tensors
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, LIKE, decoder

LAYER = {
    "input_layernorm": ["self_norm", "feedforward_norm"],
    **ATTENTION,
    "self_attn.dense": ["self_attention.W_O"],
    "mlp.fc1": ["feedforward.W_in"],
    "mlp.fc2": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, eps="layer_norm_eps", part=True)
    fields.only("qk_layernorm", False)
    fields.only("head_dim", None, options["d_model"] // options["n_heads"])
    fields.assume(ONE_NORM)
    own = {"norm": "layer_norm", "feedforward": "plain", "residual": "parallel", "logit_bias": "lm_head.bias" in names}
    return {**options, **own}, has_head


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "Phi",
        "phi",
        config,
        weights=partial(tensors, template=LAYER, table="embed_tokens", layer="layers.{}", final="final_layernorm"),
        tokenizer=byte_level_texts,
    ),
)
