"""What the tests of the arithmetic share: models with every option that changes it, and one traced sentence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tests import tiny
from tests.eager_transformer import Call, Eager
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model import Trace

TEXT, TARGET = "我有 cat 鑫", "The cats"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "post": ("encoder-decoder", dict(norm_order="post", scaled_embedding=True)),
    "pre": ("encoder-decoder", dict(norm_order="pre", final_norm=True, activation="gelu_tanh")),
    "decoder-only": ("decoder-only", dict(norm_order="pre", positions="learned", final_norm=True)),
    "encoder-only": ("encoder-only", dict(norm_order="post", n_heads=2)),
    "llama": ("decoder-only", tiny.LLAMA),
    "llama-encoder-decoder": ("encoder-decoder", {**tiny.LLAMA, "bias": True}),
    "alibi": ("decoder-only", {**tiny.ALIBI, "norm_order": "pre", "n_kv_heads": 2}),
    "alibi-encoder-decoder": ("encoder-decoder", {**tiny.ALIBI, "norm_order": "post", "d_model": 24, "n_heads": 6}),
    "alibi-encoder-only": ("encoder-only", {**tiny.ALIBI, "norm_order": "post", "n_heads": 2}),
    "t5": ("encoder-decoder", tiny.T5),
    "t5-decoder-only": ("decoder-only", {**tiny.T5, "norm_order": "post", "bias": True}),
    "t5-encoder-only": ("encoder-only", {**tiny.T5, "n_kv_heads": 1}),
    "qwen2": ("decoder-only", {**tiny.LLAMA, "attention_bias": "qkv"}),
    "qwen3": ("decoder-only", tiny.QWEN3),
    "qwen3-encoder-decoder": ("encoder-decoder", {**tiny.QWEN3, "attention_bias": "all"}),
    "geglu": ("decoder-only", tiny.GEGLU),
    "turned": ("decoder-only", tiny.ROPE),
    "qk-norm-encoder-only": ("encoder-only", {**tiny.ROPE, "qk_norm": True, "positions": "none", "bias": False}),
    "qk-norm-post": ("decoder-only", {**tiny.QWEN3, "norm_order": "post"}),
    "llama3": ("decoder-only", tiny.LLAMA3),
    "linear": ("decoder-only", {**tiny.ROPE, "rope_scaling": "linear", "rope_factor": 4.0}),
    "t5-unscaled": ("encoder-decoder", tiny.T5_1),
    "scaled": ("decoder-only", tiny.SCALED),
    "post-gated": ("encoder-decoder", dict(norm_order="post", feedforward="gated", n_kv_heads=2)),
    "quick-gelu": ("decoder-only", {**tiny.GEGLU, "activation": "quick_gelu"}),
    "relu-squared": ("decoder-only", {**tiny.GEGLU, "activation": "relu_squared"}),
    "quick-gelu-encoder-only": ("encoder-only", {**tiny.BERT, "norm_order": "post", "activation": "quick_gelu"}),
    "no-norms": ("encoder-decoder", dict(norm_order="none")),
    "no-residual": ("encoder-decoder", dict(norm_order="post", residual="none")),
    "no-residual-pre": ("decoder-only", dict(norm_order="pre", final_norm=True, residual="none")),
    "bare": ("decoder-only", dict(norm_order="none", residual="none")),
    "post-rms": ("decoder-only", dict(norm_order="post", norm="rms_norm", n_kv_heads=1)),
    "bert": ("encoder-only", {**tiny.BERT, "norm_order": "post"}),
    "mpnet": (
        "encoder-only",
        {**tiny.BERT, "norm_order": "post", "relative_bias": True, "relative_buckets": 8, "relative_max_distance": 8},
    ),
    "marian": ("encoder-decoder", {**tiny.MARIAN, "norm_order": "post"}),
    "bart": ("encoder-decoder", {**tiny.BART, "norm_order": "post"}),
}
"""Name -> architecture and options of `tiny.checkpoint`; a test adds what only it looks at."""

NO_CODE = {
    "t5": "positions",
    "t5-decoder-only": "positions",
    "t5-encoder-only": "positions",
    "t5-unscaled": "positions",
    "mpnet": "relative_bias",
    "llama3": "rope_scaling",
    "linear": "rope_scaling",
    "bart": "stack_inputs",
}
"""Variant -> the option for which `head_code` writes no code."""


class Line(NamedTuple):
    """A step of a head, as a test expects it.

    Attributes:
        value: its result from the plain loops, for a head and a query.
        reads: the steps that its operands are the results of; of several names in one text, the first that the head has.
        when: whether the attention of a kind ("self" or "cross") has it.
    """

    value: Callable[[Call, int, int], Tensor]
    reads: tuple[str, ...] = ()
    when: Callable[[ModelConfig, str], bool] = lambda config, kind: True


def normed(config: ModelConfig, kind: str) -> bool:
    return config.qk_norm


def turned(config: ModelConfig, kind: str) -> bool:
    return config.positions == "rope" and kind == "self"


def placed(config: ModelConfig, kind: str) -> bool:
    return (config.positions == "alibi" or config.has_relative_bias) and kind == "self"


def _shifted(call: Call, head: int, query: int) -> Tensor:
    masked = call.masked[head][query]
    return masked - masked[~masked.isneginf()].max()


LINES = {
    "input": Line(lambda c, h, i: c.x[i]),
    "q": Line(lambda c, h, i: c.q_projected[h][i], ("input",)),
    "k": Line(lambda c, h, i: c.k_projected[h]),
    "v": Line(lambda c, h, i: c.v[h]),
    "q_normed": Line(lambda c, h, i: c.q_normed[h][i], ("q",), normed),
    "k_normed": Line(lambda c, h, i: c.k_normed[h], ("k",), normed),
    "q_turned": Line(lambda c, h, i: c.q[h][i], ("q_normed q",), turned),
    "k_turned": Line(lambda c, h, i: c.k[h], ("k_normed k",), turned),
    "dots": Line(lambda c, h, i: c.dots[h][i], ("q_turned q_normed q", "k_turned k_normed k")),
    "scores": Line(lambda c, h, i: c.scaled[h][i], ("dots",)),
    "position": Line(lambda c, h, i: c.scores[h][i], ("scores",), placed),
    "mask": Line(lambda c, h, i: c.masked[h][i], ("position scores",)),
    "shift": Line(_shifted, ("mask",)),
    "exp": Line(lambda c, h, i: _shifted(c, h, i).exp(), ("shift",)),
    "sum": Line(lambda c, h, i: _shifted(c, h, i).exp().sum()[None], ("exp",)),
    "weights": Line(lambda c, h, i: c.pattern[h][i], ("exp", "sum")),
    "z": Line(lambda c, h, i: c.z[h][i], ("weights", "v")),
    "head_out": Line(lambda c, h, i: c.head_out[h][i], ("z",)),
    "attn_out": Line(lambda c, h, i: c.attn_out[i]),
    "add": Line(lambda c, h, i: c.added[i]),
    "norm": Line(lambda c, h, i: c.after[i], ("add",), lambda config, kind: config.norm_order == "post"),
}
"""The steps of a head in their order."""
OF_ALL_HEADS = {
    "heads": "q_projected",
    "normed": "q_normed",
    "turned": "q",
    "shared": "k",
    "scores": "scaled",
    "position": "scores",
    "mask": "masked",
    "weights": "pattern",
    "z": "z",
}
"""Step of a layer -> the list of `Call` that its result is, one tensor a head."""


def traced(architecture: str, options: dict[str, Any]) -> tuple[Checkpoint, Trace, Eager]:
    """A model, one sentence traced in it, and the same forward in plain loops."""
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace(TEXT, target=TARGET if architecture == "encoder-decoder" else None)
    ids = [torch.tensor([token.id for token in tokens]) for tokens in trace.tokens.values()]
    return checkpoint, trace, Eager(checkpoint.model).run(*ids)
