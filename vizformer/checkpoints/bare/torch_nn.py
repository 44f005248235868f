"""Weights of `torch.nn.TransformerEncoderLayer` and `TransformerDecoderLayer` in our block.

PyTorch packs the three projections into one matrix, in_proj_weight = [W_Q; W_K; W_V] (rows), and numbers the norms in
the order in which the sublayers come.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.feedforward import FeedForward


@torch.no_grad()
def load_layer(block: Block, state: Mapping[str, Tensor], prefix: str = "") -> None:
    """Copies one layer's weights; `state` is (part of) a state dict, its names beginning with `prefix`.

    Raises:
        KeyError: a tensor is missing.
        RuntimeError: a tensor has another shape.
    """
    _load_attention(block.self_attention, state, f"{prefix}self_attn.")
    if block.cross_attention is not None:
        _load_attention(block.cross_attention, state, f"{prefix}multihead_attn.")
    norms = [block.self_norm, block.cross_norm, block.feedforward_norm]
    for number, norm in enumerate((norm for norm in norms if norm is not None), start=1):
        norm.load_state_dict({name: state[f"{prefix}norm{number}.{name}"] for name in norm.state_dict()})
    network = block.feedforward
    if not isinstance(network, FeedForward):
        raise TypeError("the layers of torch.nn have no experts")
    for linear, name in ((network.W_in, "linear1"), (network.W_out, "linear2")):
        linear.load_state_dict({part: state[f"{prefix}{name}.{part}"] for part in linear.state_dict()})


def _load_attention(attention: Attention, state: Mapping[str, Tensor], prefix: str) -> None:
    for part in attention.W_Q.state_dict():
        packed = state[f"{prefix}in_proj_{part}"].chunk(3)
        for linear, values in zip((attention.W_Q, attention.W_K, attention.W_V), packed, strict=True):
            getattr(linear, part).copy_(values)
        getattr(attention.W_O, part).copy_(state[f"{prefix}out_proj.{part}"])
