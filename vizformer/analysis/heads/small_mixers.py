"""One layer of random weights for each way of mixing tokens: its map, its proof, and what it costs.

All layers have the same widths and, where they have the same matrices, the same numbers: they differ in how they mix.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.costs.generation_cost import FLOAT_BYTES, decoder_pass, rolling_cache_bytes
from vizformer.config import ModelConfig
from vizformer.explain.arrays import float64
from vizformer.model import Trace, Transformer

Mixer = Literal["softmax", "sink", "grouped", "latent", "window", "delta", "space", "convolution"]
MIXERS: tuple[Mixer, ...] = get_args(Mixer)
HEADS, D_HEAD, WINDOW = 4, 8, 3
LATENT, TURNED = 12, 4  # numbers of a latent, and of the rotary part of the keys
OPTIONS: dict[Mixer, dict[str, Any]] = {
    "softmax": {},
    "sink": {"sinks": True},
    "grouped": {"n_kv_heads": 1},
    "latent": {"latent_dim": LATENT, "rope_dims": TURNED},
    "window": {"sliding_window": WINDOW},
    "delta": {"state_layers": (0,)},
    "space": {"state_layers": (0,), "state_rule": "space", "state_key_heads": 1},
    "convolution": {"state_layers": (0,), "state_rule": "convolution", "state_kernel": HEADS},  # a head is a tap
}


@dataclass(frozen=True)
class MixerCost:
    """For one layer: multiplications to mix one more token, and numbers that are kept of n tokens."""

    products: int
    kept: int


@dataclass(frozen=True)
class Mixed:
    """What a layer has made of a text."""

    maps: Float[ndarray, "h n n"]  # what each token reads of each value, head by head: o = M v
    error: float  # |M v - o| / |o| over all heads, o as the layer has computed it


def small_config(kind: Mixer, vocab_size: int) -> ModelConfig:
    """A decoder of one layer."""
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=HEADS * D_HEAD,
        n_heads=HEADS,
        d_ff=16,
        n_encoder_layers=0,
        n_decoder_layers=1,
        norm_order="pre",
        norm="rms_norm",
        bias=False,
        positions="rope",
        **OPTIONS[kind],
    )


def small_mixer(kind: Mixer, vocab_size: int, *, seed: int = 0) -> Transformer:
    """The model of one layer; matrices are drawn with variance 1 / columns, the sinks' scores are 1.

    A state space begins with D = 1 and steps near 0, so that all but the diagonal of its map is small: here D is 0, and a
    step is softplus(x W_a), with e^rate = 1.
    """
    model = Transformer(small_config(kind, vocab_size))
    for name, parameter in sorted(model.named_parameters()):
        # not torch's own: other threads draw from that
        generator = torch.Generator().manual_seed(seed + sum(name.encode()))
        if parameter.dim() > 1:
            parameter.data = torch.randn(parameter.shape, generator=generator) * parameter[0].numel() ** -0.5
        elif name.endswith("sinks"):
            parameter.data = torch.ones_like(parameter)
        elif kind == "space" and name.endswith(("skip", "self_attention.bias", "rate")):
            parameter.data = torch.zeros_like(parameter)
    return model.eval().requires_grad_(False)


def mixed(kind: Mixer, ids: tuple[int, ...]) -> Mixed:
    """The layer's maps of a text; equal ids are equal tokens, whatever they are in a vocabulary."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys(ids))}
    own, trace = torch.tensor([[numbers[token] for token in ids]]), Trace()
    with torch.inference_mode():
        small_mixer(kind, len(ids) + 4)(own, trace=trace)
    record = trace["decoder.0.self"]
    maps = torch.stack([record.pattern(head) for head in range(HEADS)])
    v = record.v.repeat_interleave(HEADS // len(record.v), dim=0)
    read = torch.stack([record.z(head) for head in range(HEADS)])
    return Mixed(float64(maps), float((maps @ v - read).norm() / read.norm()))


def mixer_cost(kind: Mixer, n: int) -> MixerCost:
    """Of token n and for n tokens, with a cache that forgets what a window no longer sees."""
    config = small_config(kind, 1)
    kept, numbers = rolling_cache_bytes(config, n), min(n, WINDOW) if kind == "window" else n
    return MixerCost(decoder_pass(config, 1, numbers).attention, kept // FLOAT_BYTES)
