"""XGLM: OPT's layers with fixed waves as positions, which begin two rows down, and scaled embeddings.

Source: Lin et al. 2021, "Few-shot Learning with Multilingual Language Models", and the weights published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, decoder, head
from vizformer.checkpoints.hugging_face.missing_parameters import WAVES, Made, fairseq_waves
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

LONGEST = 32_768  # rows of the table of waves
OFFSET = 2  # rows of it before that of position 0
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


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, "d_model", "attention_heads", "num_layers")
    fields.assume(WAVES)
    return {
        **options,
        "max_positions": min(options["max_positions"], LONGEST),
        "d_ff": fields.size("ffn_dim"),
        "positions": "learned",
        "scaled_embedding": fields.flag("scale_embedding"),
        "norm_eps": 1e-5,
        "activation": fields.choice("activation_function", ACTIVATIONS),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return [
        Part("embed_tokens.weight", ("embedding.weight",)),
        *layers(LAYER, "layers.{}", "decoder.layers.{}", config.n_decoder_layers),
        *linear("layer_norm", "decoder.final_norm"),
        *head(config),
    ]


def made(config: ModelConfig) -> Made:
    """The waves."""
    return {
        "position_embedding.weight": partial(fairseq_waves, config.max_positions, config.d_model, config.pad_id, OFFSET)
    }


def stored_waves(config: ModelConfig) -> Made:
    """Old files hold them, from row 0 on."""
    waves = partial(fairseq_waves, config.max_positions + OFFSET, config.d_model, config.pad_id, 0)
    return {"embed_positions.weights": waves}


FAMILY = Family(
    name="XGLM",
    types=("xglm",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=lambda config: {"lm_head.weight": "embed_tokens.weight"} if config.tied_unembedding else {},
    computed=stored_waves,
    made=made,
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
