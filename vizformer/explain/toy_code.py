"""The lectures' toy layer as one program in plain PyTorch that ends with a comparison with PyTorch's own layer."""

import re

import numpy as np
from torch import Tensor

from vizformer.explain.arrays import float64
from vizformer.explain.layer import layer_steps
from vizformer.explain.toy_model import toy

_COMPARISON = """layer = torch.nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, dropout=0.0)
own = {
    "self_attn.in_proj_weight": W.T, "self_attn.in_proj_bias": b,
    "self_attn.out_proj.weight": W_O.T, "self_attn.out_proj.bias": b_O,
    "linear1.weight": W_in.T, "linear1.bias": b_in, "linear2.weight": W_out.T, "linear2.bias": b_out,
    "norm1.weight": gamma_1, "norm1.bias": beta_1, "norm2.weight": gamma_2, "norm2.bias": beta_2,
}
layer.load_state_dict(own)
expected = layer(source[:, None])[:, 0]  # [3, 1, 4]: a batch of one
same = torch.allclose(x, expected, atol=1e-5)"""


def toy_program(lines: int) -> tuple[str, dict[str, Tensor]]:
    """The code of the first `lines` steps of the encoder layer, and the numbers that it reads, by their names in it.

    With all of them the program goes on: it builds `torch.nn.TransformerEncoderLayer` from the same weights, and `same`
    is whether the two agree.
    """
    run = toy()
    steps = layer_steps(run.checkpoint, run.trace, "encoder.0")
    code, given = ["x = residual = source  # a row per token"], {"source": steps[0].inputs["residual"]}
    for step in steps[1:lines]:
        number = "2" if step.key.startswith("feedforward.") else "1"  # a layer has two norms, and two sums
        if step.key == "feedforward.hidden":
            code.append("residual = x  # the second sum begins with what the first norm left")
        code.append(re.sub(r"\b(gamma|beta)\b", rf"\1_{number}", step.code))
        for name, tensor in step.inputs.items():
            if name != "residual":
                given[f"{name}_{number}" if name in ("gamma", "beta") else name] = tensor
    if lines >= len(steps):
        code += ["", _COMPARISON]
    return "\n".join(code), given


def toy_difference() -> float:
    """How far the layer worked out step by step is from what PyTorch's own layer computed."""
    run = toy()
    last = layer_steps(run.checkpoint, run.trace, "encoder.0")[-1].result
    return float(np.abs(last - float64(run.encoder_output)).max())
