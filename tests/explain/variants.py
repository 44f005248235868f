"""What the tests of the arithmetic share: models with every option that changes it, and one traced sentence."""

from typing import Any

import torch

from tests import tiny
from tests.eager_transformer import Eager
from vizformer.checkpoints import Checkpoint
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


def traced(architecture: str, options: dict[str, Any]) -> tuple[Checkpoint, Trace, Eager]:
    """A model, one sentence traced in it, and the same forward in plain loops."""
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace(TEXT, target=TARGET if architecture == "encoder-decoder" else None)
    ids = [torch.tensor([token.id for token in tokens]) for tokens in trace.tokens.values()]
    return checkpoint, trace, Eager(checkpoint.model).run(*ids)
