"""CTRL: the waves of the first paper in a decoder with norms in front, and a bias for every token's logit.

Source: Keskar et al. 2019, "CTRL: A Conditional Transformer Language Model for Controllable Generation", and the
weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, decoder, head
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

LAYER = {
    "layernorm1": ["self_norm"],
    "multi_head_attention.Wq": ["self_attention.W_Q"],
    "multi_head_attention.Wk": ["self_attention.W_K"],
    "multi_head_attention.Wv": ["self_attention.W_V"],
    "multi_head_attention.dense": ["self_attention.W_O"],
    "layernorm2": ["feedforward_norm"],
    "ffn.0": ["feedforward.W_in"],
    "ffn.2": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, "n_embd", "n_head", "n_layer", "n_positions")
    fields.only("layer_norm_epsilon", 1e-6)  # that of the norms inside the layers, whatever is said
    fields.ignore("n_ctx")  # an old second name of n_positions, which no forward reads
    fields.ignore("from_tf")
    return {
        **options,
        "d_ff": fields.size("dff"),
        "positions": "sinusoidal",
        "sinusoids": "halves",
        "scaled_embedding": True,
        "norm_eps": 1e-6,
        "activation": "relu",
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return [
        Part("w.weight", ("embedding.weight",)),
        *layers(LAYER, "h.{}", "decoder.layers.{}", config.n_decoder_layers),
        *linear("layernorm", "decoder.final_norm"),
        *head(config),
    ]


FAMILY = Family(
    name="CTRL",
    types=("ctrl",),
    prefix="transformer.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=lambda config: {"lm_head.weight": "w.weight"} if config.tied_unembedding else {},
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
