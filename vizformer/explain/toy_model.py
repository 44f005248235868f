"""The lectures' small example: one encoder layer and one decoder layer, four numbers wide, small enough for paper.

The encoder layer is what `torch.manual_seed(42)`, `x = torch.randn(3, 1, 4)` and
`nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, dropout=0.0)` give; a target of two rows and an
`nn.TransformerDecoderLayer` of the same size follow from the same stream of random numbers.  The tensors are stored,
with what PyTorch computed from them, so that they do not depend on its random number generator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from safetensors.torch import load_file
from torch import Tensor

from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.edit import Edit, require_room
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.masks import causal_mask
from vizformer.model.trace import Trace
from vizformer.model.transformer import Transformer
from vizformer.text import IdTokenizer

CONFIG = ModelConfig(
    vocab_size=1, d_model=4, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0, max_positions=8
)


@dataclass(frozen=True)
class Toy:
    """A model of one layer per stack, the trace of its forward, and PyTorch's own results [n, 4]."""

    checkpoint: Checkpoint
    trace: Trace
    encoder_output: Tensor
    decoder_output: Tensor


def tensors() -> dict[str, Tensor]:
    """The stored tensors by PyTorch's names: "x", "target", "encoder.*" and "decoder.*"."""
    return load_file(asset("toy", "layer.safetensors"))


def toy(edit: Edit | None = None) -> Toy:
    """Runs the model with numbers set by hand: cells of stored tensors (see `tensors`) and of the forward.

    Raises:
        TraceError: a cell that does not exist.
    """
    stored = tensors()
    cells = () if edit is None else edit.cells
    for cell in cells:
        if cell.tensor in stored:
            Edit((cell,)).check({cell.tensor: tuple(stored[cell.tensor].shape)})
            require_room(cell, stored[cell.tensor].dtype)
            stored[cell.tensor][cell.index] = cell.value
    if edit is not None:
        edit = replace(edit, cells=tuple(cell for cell in cells if cell.tensor not in stored))
    model = Transformer(CONFIG)
    assert model.encoder is not None
    assert model.decoder is not None
    for stack in (model.encoder, model.decoder):
        block = stack.layers[0]
        assert isinstance(block, Block)
        load_layer(block, stored, f"{stack.name}.")
    model.eval().requires_grad_(False)
    trace = Trace(edit=edit)
    with torch.inference_mode():
        x, target = stored["x"].transpose(0, 1), stored["target"].transpose(0, 1)  # [n, 1, 4] -> [1, n, 4]
        memory = model.encoder(x, ForwardPass(trace=trace, edit=edit))
        model.decoder(target, ForwardPass(causal_mask(target.shape[1]), memory=memory, trace=trace, edit=edit))
    if edit is not None:
        edit.check(trace.editable())
    return Toy(
        Checkpoint("toy", model, IdTokenizer(CONFIG.vocab_size)),
        trace,
        stored["encoder.output"][:, 0],
        stored["decoder.output"][:, 0],
    )


@torch.no_grad()
def load_layer(block: Block, state: Mapping[str, Tensor], prefix: str = "") -> None:
    """Copies the weights of `nn.TransformerEncoderLayer` or `nn.TransformerDecoderLayer`: names that begin with `prefix`.

    PyTorch packs the three projections into one matrix, in_proj_weight = [W_Q; W_K; W_V] (rows), and numbers the norms in
    the order in which the sublayers come.

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
    for linear, name in ((network.W_in, "linear1"), (network.W_out, "linear2")):
        linear.load_state_dict({part: state[f"{prefix}{name}.{part}"] for part in linear.state_dict()})


def _load_attention(attention: Attention, state: Mapping[str, Tensor], prefix: str) -> None:
    for part in attention.W_Q.state_dict():
        packed = state[f"{prefix}in_proj_{part}"].chunk(3)
        for linear, values in zip((attention.W_Q, attention.W_K, attention.W_V), packed, strict=True):
            getattr(linear, part).copy_(values)
        getattr(attention.W_O, part).copy_(state[f"{prefix}out_proj.{part}"])
