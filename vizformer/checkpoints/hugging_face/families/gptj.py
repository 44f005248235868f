"""GPT-J: attention and feed-forward side by side, neighbouring numbers of each head turned by position.

Source: Wang & Komatsuzaki 2021, "GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model", and the weights
published with it.
"""

from collections.abc import Collection
from dataclasses import replace

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, head, side_by_side
from vizformer.checkpoints.hugging_face.rotary import turning_neighbours
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import byte_level
from vizformer.config import ModelConfig

NORM = "ln_1"
ATTENTION = {
    "attn.q_proj": ["self_attention.W_Q"],
    "attn.k_proj": ["self_attention.W_K"],
    "attn.v_proj": ["self_attention.W_V"],
    "attn.out_proj": ["self_attention.W_O"],
}
LAYER = {
    NORM: ["self_norm", "feedforward_norm"],
    **ATTENTION,
    "mlp.fc_in": ["feedforward.W_in"],
    "mlp.fc_out": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    fields.ignore("rotary")  # written by old versions, always true
    return side_by_side(fields, names)


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    of_layers = layers(LAYER, "h.{}", "decoder.layers.{}", config.n_decoder_layers, no_bias=list(ATTENTION))
    heads = {"q_proj": config.n_heads, "k_proj": config.n_heads}
    return [
        Part("wte.weight", ("embedding.weight",)),
        *(replace(part, shared=NORM in part.source) for part in turning_neighbours(of_layers, config, heads)),
        *linear("ln_f", "decoder.final_norm"),
        *head(config),
    ]


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt."""
    end = "<|endoftext|>"
    return byte_level(folder, {"bos_token": end, "eos_token": end, "unk_token": end})


FAMILY = Family(
    name="GPT-J",
    types=("gptj",),
    prefix="transformer.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=lambda config: {"lm_head.weight": "wte.weight"} if config.tied_unembedding else {},
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
