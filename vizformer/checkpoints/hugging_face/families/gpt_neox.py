"""GPT-NeoX and Pythia: parallel layers, rotary positions for a part of each head, q, k and v in one, head by head.

Source: Black et al. 2022, "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", section 2; Biderman et al.
2023, "Pythia", and the weights published with them.
"""

from vizformer.checkpoints.hugging_face.family import Family, Options, relative, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import (
    LIKE,
    NEOX_FUSED,
    NEOX_LAYER,
    UNUSED,
    composed_texts,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.rotary import rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig
from vizformer.messages import N_


def _own(fields: Fields, found: Options) -> Options:
    d_head = max(1, found["d_model"] // found["n_heads"])
    fields.ignore("is_decoder")  # only a warning depends on it
    fields.only("head_dim", None, d_head)
    return {
        "d_ff": fields.size("intermediate_size"),
        "positions": "rope",
        **rope(fields, "rotary_emb_base"),
        "rope_dims": turned(fields, d_head, "rotary_pct"),
        "norm_eps": fields.number("layer_norm_eps"),
        "activation": fields.choice("hidden_act", ACTIVATIONS),
        "residual": "parallel" if fields.flag("use_parallel_residual") else "sequential",
        "attention_bias": "same" if fields.flag("attention_bias") else "none",
        "logit_bias": False,
    }


def weights(config: ModelConfig) -> list[Part]:
    no_bias = [] if config.qkv_bias else [NEOX_FUSED, "attention.dense"]
    names = ("embed_in", "", "layers.{}", "final_layer_norm")
    return tensors(config, NEOX_LAYER, *names, fused=NEOX_FUSED, no_bias=no_bias)


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "GPT-NeoX",
        "gpt_neox",
        decoder,
        _own,
        prefix="gpt_neox.",
        weights=weights,
        tokenizer=composed_texts,
        ties=tied_to("embed_in.weight"),
        renamed={r"^embed_out\.": "lm_head."},
        unused={
            **UNUSED,
            r"(layers\.\d+\.attention\.)?rotary_emb\.inv_freq": N_(
                "the angles of the rotary positions: they follow from rope_theta"
            ),
        },
    ),
)
