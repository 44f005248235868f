"""Errors that are copied from one tutorial to the next: nine short programs with one wrong line each, and what it does.

Every program runs as it stands (`program`), with the wrong line or with the right one in its place.  What is shown of
them is what these lines themselves compute: `run` executes them (they are constants of this module, never a text from
outside) with the numbers of a trace (`error_operands`), and `error_contrasts` holds both results against what the model
recorded.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Exercise:
    """A program, the index of its wrong line, what belongs there, and the name that holds the result."""

    lines: tuple[str, ...]
    wrong: int
    right: str
    result: str

    def program(self, *, corrected: bool) -> str:
        """The code, with the wrong line or with the right one."""
        lines = list(self.lines)
        if corrected:
            lines[self.wrong] = self.right
        return "\n".join(lines)


@dataclass(frozen=True)
class Ran:
    """What a program left: its names, and how it failed (empty: it did not)."""

    names: Mapping[str, Any]
    error: str = ""


EXERCISES: Mapping[str, Exercise] = {
    "dropout": Exercise(
        (
            "class FeedForward(nn.Module):",
            "    def __init__(self, d_model, d_ff, dropout=0.1):",
            "        super().__init__()",
            "        self.W_in = nn.Linear(d_model, d_ff)",
            "        self.W_out = nn.Linear(d_ff, d_model)",
            "        self.dropout = dropout",
            "    def forward(self, x):",
            "        return self.W_out(self.dropout(F.relu(self.W_in(x))))",
            "layer = FeedForward(d_model=x.shape[1], d_ff=4 * x.shape[1])",
            "first, second = layer.train()(x), layer(x)",
            "used = layer.eval()(x)",
        ),
        5,
        "        self.dropout = nn.Dropout(dropout)",
        "used",
    ),
    "scale": Exercise(
        (
            "d_k = d_model // n_heads",
            "scores = q @ k.T / math.sqrt(d_model)",
            "scores = scores + mask",
            "weights = torch.softmax(scores, dim=-1)",
            "z = weights @ v",
        ),
        1,
        "scores = q @ k.T / math.sqrt(d_k)",
        "weights",
    ),
    "waves": Exercise(
        (
            "pos = torch.arange(n, dtype=torch.float64)[:, None]",
            "pair = torch.arange(0, d, 2, dtype=torch.float64)",
            "wavelength = 2 * math.pi * 10000 ** (1 - pair / d)",
            "angle = 2 * math.pi * pos / wavelength",
            "P = torch.zeros(n, d)",
            "P[:, 0::2] = torch.sin(angle)",
            "P[:, 1::2] = torch.cos(angle)",
        ),
        2,
        "wavelength = 2 * math.pi * 10000 ** (pair / d)",
        "P",
    ),
    "total": Exercise(
        (
            "scores = K @ q / math.sqrt(len(q))",
            "weights = torch.tensor([0.5, 0.1, 0.5, 0.1])  # softmax of the scores",
            "output = weights @ V",
            "total = weights.sum()",
        ),
        1,
        "weights = torch.softmax(scores, dim=-1)",
        "weights",
    ),
    "count": Exercise(
        (
            "d, d_ff, N, vocabulary = 512, 2048, 6, 37_000",
            "attention = 4 * (d * d + d)",
            "feedforward = 2 * d * d_ff + d_ff + d",
            "norm = 2 * d",
            "encoder = N * (attention + feedforward + 2 * norm)  # 18.9 M",
            "decoder = 24_500_000  # 6 * (2 attentions + feed-forward + 3 norms)",
            "embedding = vocabulary * d  # 18.9 M, one table in three places",
            "total = 63_082_496",
            'assert encoder + decoder + embedding == total, "the parts do not sum to the total"',
        ),
        5,
        "decoder = N * (2 * attention + feedforward + 3 * norm)  # 25.2 M",
        "decoder",
    ),
    "after": Exercise(
        (
            "n = len(scores)",
            "blocked = torch.ones(n, n, dtype=torch.bool).triu(1)",
            "weights = torch.softmax(scores, dim=-1) * ~blocked",
            "sums = weights.sum(-1)",
        ),
        2,
        "weights = torch.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1)",
        "weights",
    ),
    "cache": Exercise(
        (
            "q_new, k_new, v_new = q[-1:], k[-1:], v[-1:]",
            "keys = torch.cat([k[:-1], k_new])",
            "values = torch.cat([v[:-1], v_new])",
            "z = F.scaled_dot_product_attention(q_new[None], keys[None], values[None], is_causal=True)[0]",
        ),
        3,
        "z = F.scaled_dot_product_attention(q_new[None], keys[None], values[None])[0]",
        "z",
    ),
    "embedding": Exercise(
        (
            "n, d = rows.shape",
            "x = rows + P[:n]",
            "ratio = rows.norm(dim=1).mean() / P[:n].norm(dim=1).mean()",
        ),
        1,
        "x = math.sqrt(d) * rows + P[:n]",
        "x",
    ),
    "join": Exercise(
        (
            "n_heads, n, d_k = z.shape",
            "joined = z.reshape(n, n_heads * d_k)",
            "out = joined @ W_O",
        ),
        1,
        "joined = z.transpose(0, 1).reshape(n, n_heads * d_k)",
        "joined",
    ),
}


def run(name: str, given: Mapping[str, object], *, corrected: bool) -> Ran:
    """Executes a program of this module with these numbers; random ones are drawn from seed 0, on the side."""
    names: dict[str, Any] = {"math": math, "torch": torch, "nn": nn, "F": F, **given}
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.default_generator.manual_seed(0)  # torch.manual_seed asks for the stack of calls, for GPUs: 7 ms
            exec(compile(EXERCISES[name].program(corrected=corrected), f"<{name}>", "exec"), names)
    except (TypeError, AssertionError) as error:
        return Ran(names, f"{type(error).__name__}: {error}")
    return Ran(names)
