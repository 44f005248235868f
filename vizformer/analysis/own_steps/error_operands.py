"""What the programs of `vizformer.analysis.own_steps.copied_errors` read of a trace."""

import math
from typing import Any, Literal

import torch
from torch import Tensor

from vizformer.checkpoints import Checkpoint
from vizformer.explain import examples
from vizformer.model import AttentionRecord, Trace


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
    """z of every head of the first layer, as the model's own attention gives it, and W_O.

    Raises:
        TraceError: a short convolution, whose heads are added up and not joined.
    """
    stack = first_stack(trace)
    record = trace[f"{stack}.0.self"]
    if record.gates is not None and record.gates.rule == "convolution":
        record.require_softmax()
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
