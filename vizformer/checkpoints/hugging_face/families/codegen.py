"""CodeGen: GPT-J with queries, keys and values in one tensor, as four machines once shared them.

Source: Nijkamp et al. 2022, "CodeGen: An Open Large Language Model for Code", and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, UNUSED, byte_level_texts, side_by_side, tensors
from vizformer.checkpoints.tensors.tensor_map import Part, neighbours_apart
from vizformer.config import ModelConfig
from vizformer.messages import N_

MACHINES = 4
FUSED = "attn.qkv_proj"
LAYER = {
    "ln_1": ["self_norm", "feedforward_norm"],
    FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.out_proj": ["self_attention.W_O"],
    "mlp.fc_in": ["feedforward.W_in"],
    "mlp.fc_out": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.value("n_ctx")  # an old second name of n_positions, which no forward reads
    options, has_head = side_by_side(fields, names)
    if options["n_heads"] % MACHINES:
        fields.refuse("n_head", "it must be a multiple of {n}", n=MACHINES)
    return options, has_head


def rows(heads: int, d_head: int, turned: int) -> Tensor:
    """The rows of the file as W_Q, W_K and W_V have them.

    Each machine's share is [queries, values, keys] of a quarter of the heads.
    """
    share = heads * d_head // MACHINES
    where = torch.arange(3 * heads * d_head).reshape(MACHINES, 3, share)  # [machine, q v k, row]
    queries, values, keys = (where[:, kind].flatten() for kind in range(3))  # [heads * d_head] each
    order = neighbours_apart(heads, d_head, turned)
    return torch.cat([queries[order], keys[order], values])


def weights(config: ModelConfig) -> list[Part]:
    no_bias = [FUSED, "attn.out_proj"]
    order = partial(rows, config.n_heads, config.d_head, config.turned_dims)
    return [
        replace(part, order=order) if FUSED in part.source else part for part in tensors(config, LAYER, no_bias=no_bias)
    ]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "CodeGen",
        "codegen",
        config,
        weights=weights,
        tokenizer=byte_level_texts,
        unused={**UNUSED, r"h\.\d+\.attn\.causal_mask": N_("the causal mask: it follows from the positions")},
    ),
)
