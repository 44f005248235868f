"""Small models for the tests, with every parameter away from its default.

A fresh LayerNorm has weight 1 and bias 0, a fresh bias is 0: a swapped norm or a dropped bias would then go unseen.
"""

from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from recipes.vocabulary import train_bpe, train_wordpiece
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.text import Tokenizer

STACKS = {"encoder-decoder": (2, 2), "decoder-only": (0, 2), "encoder-only": (2, 0)}
TEXTS = (
    "我有一只猫。",
    "I have a cat.",
    "你好吗？",
    "How are you?",
    "The cats are here.",
    "我们在这儿。",
    "她有两只狗。",
    "She has two dogs.",
    "猫和狗",
    "cats and dogs",
)

LLAMA: dict[str, Any] = dict(
    n_kv_heads=2,
    positions="rope",
    norm="rms_norm",
    norm_order="pre",
    final_norm=True,
    activation="silu",
    feedforward="gated",
    bias=False,
)
BERT: dict[str, Any] = dict(
    positions="learned",
    n_segments=2,
    embedding_norm=True,
    activation="gelu",
    head="transform",
    norm_eps=1e-12,
    mask_id=3,
)
ALIBI: dict[str, Any] = dict(positions="alibi")
T5: dict[str, Any] = dict(  # buckets small enough that a short sentence reaches the shared ones
    positions="relative",
    relative_buckets=8,
    relative_max_distance=8,
    norm="rms_norm",
    norm_order="pre",
    final_norm=True,
    bias=False,
)

QWEN3: dict[str, Any] = {**LLAMA, "head_dim": 6, "qk_norm": True}
GEGLU: dict[str, Any] = {
    **LLAMA,
    "head_dim": 8,
    "scaled_embedding": True,
    "activation": "gelu_tanh",
}
SCALED: dict[str, Any] = {**LLAMA, "attention_scale": 0.2, "logit_scale": 0.4}
ROPE: dict[str, Any] = dict(
    head_dim=8,
    positions="rope",
    norm_order="pre",
    final_norm=True,
    activation="gelu",
)
LLAMA3: dict[str, Any] = {
    **LLAMA,
    "head_dim": 16,
    "rope_scaling": "llama3",
    "rope_factor": 8.0,
    "rope_theta": 100.0,
    "rope_trained_positions": 64,
}

MARIAN: dict[str, Any] = dict(
    sinusoids="halves", scaled_embedding=True, activation="silu", logit_bias=True, decoder_start_id=0, never_pad=True
)
BART: dict[str, Any] = dict(
    positions="learned",
    stack_inputs="own",
    embedding_norm=True,
    activation="gelu",
    logit_bias=True,
    decoder_start_id=2,
    forced_bos_id=1,
)
# T5 as it is, with heads wider than their share
T5_1: dict[str, Any] = {**T5, "head_dim": 6, "attention_scale": 1.0, "logit_scale": 0.25, "decoder_start_id": 0}
# a model of each kind of arithmetic: the architecture, and the options that are not usual
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "encoder-decoder": ("encoder-decoder", {}),
    "gpt": ("decoder-only", {"positions": "learned"}),
    "bert": ("encoder-only", BERT),
    "llama": ("decoder-only", LLAMA),
    "alibi": ("decoder-only", ALIBI),
    "t5": ("encoder-decoder", T5_1),
    "qwen3": ("decoder-only", QWEN3),
    "geglu": ("decoder-only", GEGLU),
    "turned": ("decoder-only", ROPE),
    "marian": ("encoder-decoder", MARIAN),
    "bart": ("encoder-decoder", BART),
    "window": ("decoder-only", {**LLAMA, "sliding_window": 3, "sliding_layers": (1,)}),
}

M = TypeVar("M", bound=nn.Module)


def config(architecture: str = "encoder-decoder", **changes: Any) -> ModelConfig:
    """A legal config that makes a model of a few thousand numbers."""
    encoder, decoder = STACKS[architecture]
    options = dict(
        vocab_size=29,
        d_model=16,
        n_heads=4,
        d_ff=24,
        n_encoder_layers=encoder,
        n_decoder_layers=decoder,
        max_positions=32,
        pad_id=0,
        bos_id=1,
        eos_id=2,
    )
    return ModelConfig(**{**options, **changes})


def randomise(model: M, seed: int = 0) -> M:
    """Fills every parameter with numbers that keep activations near 1; the same seed, the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise * parameter.shape[-1] ** -0.5)
            else:
                parameter.copy_(0.3 * noise + (1.0 if name.endswith("weight") else 0.0))
    return model


def model(architecture: str = "encoder-decoder", *, seed: int = 0, **changes: Any) -> Transformer:
    """A model in evaluation mode, every parameter randomised."""
    return randomise(Transformer(config(architecture, **changes)), seed).eval()


@cache
def tokenizer() -> Tokenizer:
    """Byte-level BPE with a few hundred entries; some Chinese characters are whole, the others are bytes."""
    return Tokenizer(train_bpe(TEXTS * 3, 320))


def checkpoint(architecture: str = "encoder-decoder", *, seed: int = 0, **changes: Any) -> Checkpoint:
    """A model with a tokenizer that fits it."""
    changes = {"vocab_size": tokenizer().vocab_size, **changes}
    return Checkpoint("tiny", model(architecture, seed=seed, **changes), tokenizer())


@cache
def source_tokenizer() -> Tokenizer:
    """WordPiece, with other entries, other ids and other marks than `tokenizer`."""
    return Tokenizer(train_wordpiece(TEXTS * 3, 90))


def two_vocabularies(*, seed: int = 0, **changes: Any) -> Checkpoint:
    """An encoder-decoder with a vocabulary and a table of embeddings for each stack."""
    source, target = source_tokenizer(), tokenizer()
    changes = {"vocab_size": target.vocab_size, "source_vocab_size": source.vocab_size, **changes}
    return Checkpoint("tiny", model(seed=seed, **changes), target, source_tokenizer=source)


def ids(n: int, *, seed: int = 0, vocab_size: int = 29) -> Tensor:
    """[1, n] token ids, none of them special."""
    return torch.randint(3, vocab_size, (1, n), generator=torch.Generator().manual_seed(seed))


def right_padded(lengths: list[int], width: int | None = None) -> Tensor:
    """[b, width] True where a row is longer than its own length."""
    width = width or max(lengths)
    return torch.arange(width)[None, :] >= torch.tensor(lengths)[:, None]


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """|difference| <= tolerance * max(1, |value|) everywhere: the rule of the proofs."""
    assert found.shape == expected.shape
    difference = (found - expected).abs() - tolerance * expected.abs().clamp(min=1.0)
    assert bool((difference <= 0).all()), f"off by {float((found - expected).abs().max()):.3g}"
