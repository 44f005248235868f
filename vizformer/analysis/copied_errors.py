"""Errors that are copied from one tutorial to the next: nine short programs with one wrong line each, and what it does.

Every program runs as it stands (`program`), with the wrong line or with the right one in its place.  What is shown of
them is what these lines themselves compute: `run` executes them (they are constants of this module, never a text from
outside) with the numbers of a trace, and the `Contrast`s hold both results against what the model recorded.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.analysis.memory import Written, written
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Proof, examples, layer_steps, masked_attention
from vizformer.explain.arrays import float64
from vizformer.messages import N_, Message
from vizformer.model import AttentionRecord, Trace
from vizformer.model.mask_recipe import MaskRecipe
from vizformer.model.positions import sinusoidal_encoding


@dataclass(frozen=True)
class Exercise:
    """A program with one wrong line.

    Attributes:
        lines: the program, the wrong line among them; what it reads beside them is given to `run`.
        wrong: the index of that line.
        right: what belongs there.
        result: the name that holds the result.
    """

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


@dataclass(frozen=True)
class Contrast:
    """The result of a program with the wrong line and with the right one, beside what the model computed.

    Attributes:
        right, wrong: the results, of the same shape.
        proof: the right one against the model.
        off: the largest |difference| of the wrong one from the model.
    """

    right: Float[ndarray, "..."]
    wrong: Float[ndarray, "..."]
    proof: Proof
    off: float


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
            torch.manual_seed(0)
            exec(compile(EXERCISES[name].program(corrected=corrected), f"<{name}>", "exec"), names)
    except (TypeError, AssertionError) as error:
        return Ran(names, f"{type(error).__name__}: {error}")
    return Ran(names)


# --- what the programs read of a trace --------------------------------------------------------------------------------


def hand_given() -> dict[str, Tensor]:
    """The query, the keys and the values of the calculation by hand that is copied (`examples.PRINTED_WEIGHTS`)."""
    arrays = {"q": examples.QUERY[0], "K": examples.KEYS, "V": examples.VALUES[:, 0]}
    return {name: torch.from_numpy(array).float() for name, array in arrays.items()}


def dropout_given(trace: Trace) -> dict[str, Tensor]:
    """What enters the first layer."""
    return {"x": trace.residual(f"{first_stack(trace)}.0.pre").detach().cpu().float()}


def head_given(record: AttentionRecord, head: int) -> dict[str, Tensor | int]:
    """q, k, v of a head as the paper has them: with another scale than 1 / sqrt(d_k), that scale goes into q."""
    kv = record.kv_head(head)
    q, k, v = (x.detach().cpu().float() for x in (record.q[head], record.k[kv], record.v[kv]))
    mask = torch.zeros(q.shape[0], k.shape[0])
    for bias in (record.bias, record.position_bias):
        if bias is not None:
            mask = mask + bias[head % bias.shape[0]].cpu().float()
    d_k = q.shape[1]
    return {
        "q": q * (record.scale * math.sqrt(d_k)),
        "k": k,
        "v": v,
        "mask": mask,
        "n_heads": record.n_heads,
        "d_model": record.n_heads * d_k,
    }


def causal_given(record: AttentionRecord, head: int) -> dict[str, Tensor]:
    """The scores of a head before the mask."""
    return {"scores": record.scores(head).detach().cpu().float()}


def embedding_given(checkpoint: Checkpoint, trace: Trace) -> dict[str, Tensor]:
    """The rows of the tokens and the position table of the first stack.

    Raises:
        ValueError: a model that does not scale its embedding, or adds no positions (see `scales_its_embedding`).
    """
    stack = first_stack(trace)
    tokens = trace.tokens[stack]
    positions = checkpoint.model.positions(len(tokens), stack)
    if positions is None:
        raise ValueError("this model adds no positions")
    rows = checkpoint.model.token_table(stack)(checkpoint.tensor(tokens))[0]
    return {"rows": rows.detach().cpu().float(), "P": positions.detach().cpu().float()}


def join_given(checkpoint: Checkpoint, trace: Trace) -> dict[str, Tensor]:
    """z of every head of the first layer, as the model's own attention gives it, and W_O."""
    stack = first_stack(trace)
    record = trace[f"{stack}.0.self"]
    module = checkpoint.model.encoder if stack == "encoder" else checkpoint.model.decoder
    assert module is not None
    z = torch.stack([record.z(head) for head in range(record.n_heads)])
    layer: Any = module.layers[0]
    return {"z": z.detach().cpu().float(), "W_O": layer.self_attention.W_O.weight.detach().cpu().float().T}


def first_stack(trace: Trace) -> Literal["encoder", "decoder"]:
    """The stack that reads the text."""
    return "encoder" if "encoder" in trace.tokens else "decoder"


def scales_its_embedding(checkpoint: Checkpoint) -> bool:
    """Whether a model computes sqrt(d) E[id] + P with nothing more."""
    config = checkpoint.model.config
    plain = not config.embedding_norm and not config.n_segments
    return config.scaled_embedding and plain and config.positions in ("sinusoidal", "learned")


# --- right against wrong ----------------------------------------------------------------------------------------------


def scale_contrast(record: AttentionRecord, head: int) -> Contrast:
    """The weights of a head."""
    anchor = N_("the weights of the trace")
    if record.score_cap is not None:  # which the paper's programs do not know
        record, anchor = replace(record, score_cap=None), N_("the weights of this head without its soft cap")
    return _contrast("scale", head_given(record, head), anchor, float64(record.pattern(head)))


def flat_weight(record: AttentionRecord, head: int) -> float:
    """The mean over the rows of 1 / n_i, n_i the keys that row i may see: the largest weights of a head that is flat."""
    seen = (record.reason(head) == 0).sum(-1).clamp(min=1)
    return float((1.0 / seen.double()).mean())


def total_contrast() -> Contrast:
    """The weights of the calculation by hand, against a softmax in float64."""
    right = examples.paper_attention(examples.QUERY, examples.KEYS, examples.VALUES)
    return _contrast("total", hand_given(), N_("a softmax in float64"), right.weights[0])


def after_contrast(record: AttentionRecord, head: int) -> Contrast:
    """The weights of a head with the causal mask: its own, or laid over it."""
    found = masked_attention(record, head, MaskRecipe("causal").mask(record.q.shape[1]))
    return _contrast("after", causal_given(record, head), N_("softmax(S + M) of this head in float64"), found.weights)


def cache_contrast(record: AttentionRecord, head: int) -> Contrast:
    """z of the last query, from the keys in the cache and its own."""
    given = head_given(record, head)
    q, k, v = (float64(torch.as_tensor(given[name])) for name in "qkv")
    scores = q[-1] @ k.T / math.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max())
    z = (weights / weights.sum() @ v)[None]
    return _contrast("cache", given, N_("softmax(q Kᵀ / √d) V over all keys, in float64"), z)


def waves_contrast(n: int, d: int) -> Contrast:
    """The position table of n positions and d dimensions (even) against the paper's."""
    return _contrast(
        "waves", {"n": n, "d": d}, N_("the paper's table of sines and cosines"), float64(sinusoidal_encoding(n, d))
    )


def embedding_contrast(checkpoint: Checkpoint, trace: Trace) -> Contrast:
    """What enters the first layer."""
    name = f"{first_stack(trace)}.0.pre"
    anchor = N_("what entered the first layer, as it was traced")
    return _contrast("embedding", embedding_given(checkpoint, trace), anchor, trace.residual(name))


def join_contrast(checkpoint: Checkpoint, trace: Trace) -> Contrast:
    """The joined heads of the first layer."""
    steps = {step.key: step for step in layer_steps(checkpoint, trace, f"{first_stack(trace)}.0")}
    given = join_given(checkpoint, trace)
    anchor = N_("the joined heads of the layer, worked out")
    return _contrast("join", given, anchor, steps["self.concat"].result, trace.logits.dtype)


def _contrast(
    name: str,
    given: Mapping[str, object],
    anchor: Message,
    recorded: Tensor | ndarray,
    dtype: torch.dtype | None = None,
) -> Contrast:
    right, wrong = (
        float64(run(name, given, corrected=corrected).names[EXERCISES[name].result]) for corrected in (True, False)
    )
    known = float64(recorded) if isinstance(recorded, Tensor) else recorded
    return Contrast(
        right, wrong, Proof.compare(anchor, right, recorded, dtype=dtype), float(np.abs(wrong - known).max())
    )


# --- what becomes of the model ----------------------------------------------------------------------------------------


def joined_from(n_heads: int, n: int) -> list[list[tuple[int, int]]]:
    """Where the blocks of each wrongly joined row come from: (head, token), n rows of n_heads blocks.

    A tensor [n_heads, n, d_k] that is reshaped without being transposed is read row by row of its memory: block
    r n_heads + c of it is head (r n_heads + c) // n at token (r n_heads + c) % n.
    """
    return [[divmod(row * n_heads + block, n) for block in range(n_heads)] for row in range(n)]


def mean_largest(weights: Float[ndarray, "n_q n_k"]) -> float:
    """The mean over the rows of their largest weight: 1 / (number of keys) where all are flat."""
    return float(weights.max(axis=1).mean())


@dataclass(frozen=True)
class Sums:
    """What the rows of a head's weights sum to.

    Attributes:
        off: the largest |sum - 1|.
        least, most: of the sums where each weight is first rounded to one digit, as it is printed.
    """

    off: float
    least: float
    most: float


def row_sums(record: AttentionRecord, head: int) -> Sums:
    """The sums of the rows of one head."""
    weights = float64(record.pattern(head))
    printed = weights.round(1).sum(axis=1)
    return Sums(float(np.abs(weights.sum(axis=1) - 1).max()), float(printed.min()), float(printed.max()))


def first_lengths(ran: Ran, names: Sequence[str]) -> dict[str, float]:
    """The length of the first row of each of these results."""
    return {name: float(ran.names[name][0].norm()) for name in names}


def first_value(record: AttentionRecord, head: int) -> Float[ndarray, " d_k"]:
    """v of the first token in the row of a head."""
    return float64(record.v[record.kv_head(head)][0])


@torch.inference_mode()
def written_with(checkpoint: Checkpoint, trace: Trace, x: Float[ndarray, "n d_model"]) -> Written:
    """What an encoder-decoder writes where these rows enter its encoder in place of its own."""
    model, tokens = checkpoint.model, trace.tokens["encoder"]
    assert model.encoder is not None
    entering = torch.from_numpy(x).to(checkpoint.device, checkpoint.dtype)[None]
    memory = model.encoder(entering, model.forward_pass("encoder", checkpoint.tensor(tokens)))
    return written(checkpoint, memory[0])


def entering_with_waves(checkpoint: Checkpoint, trace: Trace, *, corrected: bool) -> Float[ndarray, "n d_model"]:
    """sqrt(d) E[id] + P, with P from the program "waves"."""
    given = embedding_given(checkpoint, trace)
    rows = given["rows"]
    n, d = rows.shape
    table = run("waves", {"n": n, "d": d}, corrected=corrected).names["P"]
    return float64(run("embedding", {"rows": rows, "P": table}, corrected=True).names["x"])
