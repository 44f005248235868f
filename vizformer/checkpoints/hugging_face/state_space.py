"""What families with layers of Mamba-2 have in common: the names of their tensors, and the limits of the step.

Source: Dao & Gu 2024, "Transformers are SSMs"; `transformers`, Mamba2Mixer and BambaMixer.
"""

import math
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig

_INFINITE = {"__float__": "Infinity"}  # as `transformers` writes it
MOST_STEP = 1e30  # of a limit that is one


def step_limits(fields: Fields) -> Options:
    """Between what the step is held; [0, Infinity] says that it is not."""
    limits = fields.value("time_step_limit")
    pair = [math.inf if one == _INFINITE else one for one in limits] if isinstance(limits, (list, tuple)) else []
    numbers = len(pair) == 2 and all(type(one) in (int, float) and (one < MOST_STEP or one == math.inf) for one in pair)
    if not numbers or not 0 <= pair[0] < pair[1]:
        fields.refuse(
            "time_step_limit",
            "it must be two numbers from 0 on and below 1e30, the second one above the first or Infinity",
        )
        return {}
    return {
        "state_step_least": float(pair[0]) or None,
        "state_step_most": None if pair[1] == math.inf else float(pair[1]),
    }


def mixer(config: ModelConfig, theirs: str, ours: str) -> list[Part]:
    """The tensors of one layer's state space."""
    (groups, heads), (d_key, d_value) = config.state_heads, config.state_dims
    order = partial(_channels, heads * d_value, groups * d_key)
    matrices = (f"{ours}.W_{letter}" for letter in ("gate", "V", "K", "Q", "a"))
    names = {"A_log": "rate", "dt_bias": "bias", "D": "skip", "norm.weight": "norm.weight"}
    return [
        *linear(f"{theirs}.in_proj", *matrices, bias=config.state_bias),
        *linear(f"{theirs}.out_proj", f"{ours}.W_O", bias=config.state_bias),
        Part(f"{theirs}.conv1d.weight", (f"{ours}.filters",), order=order),
        Part(f"{theirs}.conv1d.bias", (f"{ours}.filter_bias",), order=order),
        *(Part(f"{theirs}.{name}", (f"{ours}.{own}",)) for name, own in names.items()),
    ]


def _channels(values: int, keys: int) -> Tensor:
    """The rows of the file, [x B C], in our order, [C B x]."""
    rows = torch.arange(values + 2 * keys)
    return torch.cat([rows[values + keys :], rows[values : values + keys], rows[:values]])
