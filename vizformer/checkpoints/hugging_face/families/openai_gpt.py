"""GPT (the first): a decoder with norms after the sublayers and none at the end; stored like GPT-2.

Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", and the weights published
with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, decoder, head
from vizformer.checkpoints.tensors.tensor_map import Part, layers
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}  # a list of its own
LAYER = {
    "attn.c_attn": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.c_proj": ["self_attention.W_O"],
    "ln_1": ["self_norm"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
    "ln_2": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, "n_embd", "n_head", "n_layer", "n_positions")
    return {
        **options,
        "d_ff": 4 * options["d_model"],
        "positions": "learned",
        "norm_order": "post",
        "final_norm": False,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("afn", ACTIVATIONS),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    transposed = [name for name in LAYER if not name.startswith("ln")]
    return [
        Part("tokens_embed.weight", ("embedding.weight",)),
        Part("positions_embed.weight", ("position_embedding.weight",)),
        *layers(LAYER, "h.{}", "decoder.layers.{}", config.n_decoder_layers, transposed=transposed),
        *head(config),
    ]


FAMILY = Family(
    name="GPT",
    types=("openai-gpt",),
    prefix="transformer.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=lambda config: {"lm_head.weight": "tokens_embed.weight"} if config.tied_unembedding else {},
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
