"""BioGPT: OPT's layers with scaled embeddings; its position table begins two rows down.

Source: Luo et al. 2022, "BioGPT: Generative Pre-trained Transformer for Biomedical Text Generation and Mining", and the
weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, decoder, head
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

OFFSET = 2  # rows of the position table before that of position 0
LAYER = {
    "self_attn_layer_norm": ["self_norm"],
    "self_attn.q_proj": ["self_attention.W_Q"],
    "self_attn.k_proj": ["self_attention.W_K"],
    "self_attn.v_proj": ["self_attention.W_V"],
    "self_attn.out_proj": ["self_attention.W_O"],
    "final_layer_norm": ["feedforward_norm"],
    "fc1": ["feedforward.W_in"],
    "fc2": ["feedforward.W_out"],
}
HEAD = "output_projection"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, head=HEAD)
    fields.ignore("layer_norm_eps")  # no norm reads it
    return {
        **options,
        "d_ff": fields.size("intermediate_size"),
        "positions": "learned",
        "scaled_embedding": fields.flag("scale_embedding"),
        "norm_eps": 1e-5,
        "activation": fields.choice("hidden_act", ACTIVATIONS),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor; the first rows of the position table belong to no position."""
    return [
        Part("embed_tokens.weight", ("embedding.weight",)),
        Part("embed_positions.weight", ("position_embedding.weight",), skip=OFFSET),
        *layers(LAYER, "layers.{}", "decoder.layers.{}", config.n_decoder_layers),
        *linear("layer_norm", "decoder.final_norm"),
        *head(config, HEAD),
    ]


FAMILY = Family(
    name="BioGPT",
    types=("biogpt",),
    prefix="biogpt.",
    head=f"{HEAD}.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=lambda config: {f"{HEAD}.weight": "embed_tokens.weight"} if config.tied_unembedding else {},
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
