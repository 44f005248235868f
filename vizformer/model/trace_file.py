"""A trace as a file that other programs open: safetensors, every tensor under the name that it has here.

    Path("trace.safetensors").write_bytes(as_file(trace, about={"model": "zh-en"}))

Names: "encoder.0.self.q", ".k", ".v", ".bias", ".position_bias" and ".pattern" [heads, queries, keys] of every
attention call, the residual stream ("encoder.0.pre", ...), "decoder.0.feedforward.router", ".probabilities", ".experts",
".weights" and ".opened" of layers with experts, and "logits".
The metadata hold the scales, the soft caps of scores where there are any, and the tokens as JSON.
"""

import json
from collections.abc import Mapping

import torch
from safetensors.torch import save
from torch import Tensor

from vizformer.model.trace import Trace

MOST_PATTERN_BYTES = 64 * 2**20
"""Bytes up to which the attention maps are written too; of longer texts they follow from q, k and the biases."""


def as_file(trace: Trace, *, about: Mapping[str, str] | None = None) -> bytes:
    """The content of the file.

    Args:
        about: what else the metadata say, texts by name.
    """
    metadata = {
        **(about or {}),
        "format": "vizformer.trace 1",
        "scales": json.dumps({site: trace[site].scale for site in trace.sites}),
    }
    if caps := {site: cap for site in trace.sites if (cap := trace[site].scoring.cap) is not None}:
        metadata["score_caps"] = json.dumps(caps)
    for stack, tokens in trace.tokens.items():
        said = [{"id": token.id, "text": token.text} for token in tokens]
        metadata[f"tokens.{stack}"] = json.dumps(said, ensure_ascii=False)
    return save({name: one.detach().cpu().clone().contiguous() for name, one in tensors(trace).items()}, metadata)


def tensors(trace: Trace) -> dict[str, Tensor]:
    """Every tensor of a trace by its name; views of the trace's own."""
    found = dict(trace.residuals)
    cells = sum(trace[site].n_heads * trace[site].q.shape[1] * trace[site].k.shape[1] for site in trace.sites)
    for site in trace.sites:
        record = trace[site]
        for name in ("q", "k", "v", "bias", "position_bias"):
            if (tensor := getattr(record, name)) is not None:
                found[f"{site}.{name}"] = tensor
        if cells * 4 <= MOST_PATTERN_BYTES:
            found[f"{site}.pattern"] = torch.stack([record.pattern(head) for head in range(record.n_heads)])
    for site, routing in trace.routings.items():
        found |= {
            f"{site}.router": routing.scores,
            f"{site}.probabilities": routing.probabilities,
            f"{site}.experts": routing.chosen,
            f"{site}.weights": routing.weights,
        } | ({} if routing.opened is None else {f"{site}.opened": routing.opened})
    return {**found, "logits": trace.logits}
