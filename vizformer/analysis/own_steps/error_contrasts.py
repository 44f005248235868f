"""What a wrong line does to the numbers of a trace: its result and the right one, beside what the model recorded.

The programs are those of `vizformer.analysis.own_steps.copied_errors`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.decoding.changed_memory import Written, written
from vizformer.analysis.own_steps.copied_errors import EXERCISES, Ran, run
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Proof, examples, layer_steps, masked_attention
from vizformer.explain.arrays import float64
from vizformer.messages import N_, Message
from vizformer.model import AttentionRecord, Trace
from vizformer.model.mask_recipe import MaskRecipe
from vizformer.model.mixing import Scoring
from vizformer.model.positions import sinusoidal_encoding


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
    """The rows of the tokens and the position table of the first stack of a model that `scales_its_embedding`.

    Raises:
        ValueError: a model that does not scale its embedding, or adds no positions (see `scales_its_embedding`).
    """
    stack = first_stack(trace)
    tokens = trace.tokens[stack]
    positions = checkpoint.model.positions(len(tokens), stack)
    if positions is None:
        raise ValueError("this model adds no positions")
    rows = checkpoint.model.token_rows(checkpoint.model.token_table(stack)(checkpoint.tensor(tokens)))[0]
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


@dataclass(frozen=True)
class Contrast:
    """The result of a program with the wrong line and with the right one, beside what the model computed."""

    right: Float[ndarray, "..."]
    wrong: Float[ndarray, "..."]
    proof: Proof
    off: float  # the largest |difference| of the wrong one from the model


def scale_contrast(record: AttentionRecord, head: int) -> Contrast:
    """The weights of a head."""
    anchor = N_("the weights of the trace")
    if not record.scoring.is_product:  # which the paper's programs do not know
        record, anchor = (
            replace(record, scoring=Scoring(record.scale)),
            N_("the weights of this head without its soft cap"),
        )
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


# --- what becomes of the model -----------------------------------------------------------------------------------------


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
    """What the rows of a head's weights sum to."""

    off: float  # the largest |sum - 1|
    # least, most: of the sums where each weight is first rounded to one digit, as it is printed
    least: float
    most: float


def row_sums(record: AttentionRecord, head: int) -> Sums:
    weights = float64(record.pattern(head))
    printed = weights.round(1).sum(axis=1)
    return Sums(float(np.abs(weights.sum(axis=1) - 1).max()), float(printed.min()), float(printed.max()))


def first_lengths(ran: Ran, names: Sequence[str]) -> dict[str, float]:
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
