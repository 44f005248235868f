"""Small text-to-text encoder/decoder (T5 flavoured), einsum everywhere.

Shapes:  b batch, i query position, j key position, n head, d head width, m model width.
Scores live in [b, i, n, j]: the head axis stays in the middle all the way through.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, einsum, nn


@dataclass
class Config:
    vocab: int = 97
    width: int = 48
    n_heads: int = 6
    head_width: int = 12  # n_heads * head_width != width, as in T5
    hidden: int = 80
    depth: int = 2
    buckets: int = 8
    max_distance: int = 20
    pad: int = 0


class ScaleNorm(nn.Module):
    """RMS norm without mean subtraction or bias."""

    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.g = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.g * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


class BucketedBias(nn.Module):
    """Learned bias per head, indexed by a log-bucketed relative distance."""

    def __init__(self, cfg: Config, both_ways: bool):
        super().__init__()
        self.both_ways, self.n, self.far = both_ways, cfg.buckets, cfg.max_distance
        self.table = nn.Embedding(cfg.buckets, cfg.n_heads)

    def bucket(self, delta: Tensor) -> Tensor:  # delta = key position - query position
        n, offset = self.n, 0
        if self.both_ways:
            n //= 2
            offset = (delta > 0).long() * n
            delta = delta.abs()
        else:
            delta = (-delta).clamp(min=0)
        near = n // 2
        ratio = torch.log(delta.clamp(min=1).float() / near) / math.log(self.far / near)
        log_bucket = (near + (ratio * (n - near)).long()).clamp(max=n - 1)
        return offset + torch.where(delta < near, delta, log_bucket)

    def forward(self, n_query: int, n_key: int, device) -> Tensor:
        i = torch.arange(n_query, device=device)[:, None]
        j = torch.arange(n_key, device=device)[None, :]
        return self.table(self.bucket(j - i)).permute(0, 2, 1)[None]  # [1, i, n, j]


class EinsumAttention(nn.Module):
    def __init__(self, cfg: Config, tag: str):
        super().__init__()
        self.tag = tag
        shape = (cfg.width, cfg.n_heads, cfg.head_width)
        self.wq = nn.Parameter(torch.randn(shape) * (cfg.width * cfg.head_width) ** -0.5 * 2.5)
        self.wk = nn.Parameter(torch.randn(shape) * cfg.width**-0.5)
        self.wv = nn.Parameter(torch.randn(shape) * cfg.width**-0.5)
        self.wo = nn.Parameter(
            torch.randn(cfg.n_heads, cfg.head_width, cfg.width) * (cfg.n_heads * cfg.head_width) ** -0.5
        )

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor, truth=None) -> Tensor:
        q = einsum("bim,mnd->bind", x, self.wq)
        k = einsum("bjm,mnd->bjnd", memory, self.wk)
        v = einsum("bjm,mnd->bjnd", memory, self.wv)
        logits = einsum("bind,bjnd->binj", q, k)  # no 1/sqrt(d): the init takes care of it
        logits = logits + bias
        probs = logits.float().softmax(dim=-1).type_as(logits)
        mixed = einsum("binj,bjnd->bind", probs, v)
        if truth is not None:
            truth.append(
                {
                    "name": self.tag,
                    "weights": probs.detach().permute(0, 2, 1, 3).clone(),
                    "output": mixed.detach().permute(0, 2, 1, 3).clone(),
                }
            )
        return einsum("bind,ndm->bim", mixed, self.wo)


class GatedFF(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.a = nn.Linear(cfg.width, cfg.hidden, bias=False)
        self.b = nn.Linear(cfg.width, cfg.hidden, bias=False)
        self.c = nn.Linear(cfg.hidden, cfg.width, bias=False)

    def forward(self, x):
        return self.c(nn.functional.gelu(self.a(x), approximate="tanh") * self.b(x))


class Layer(nn.Module):
    def __init__(self, cfg, tag, cross):
        super().__init__()
        self.norm_self, self.norm_ff = ScaleNorm(cfg.width), ScaleNorm(cfg.width)
        self.self_attn = EinsumAttention(cfg, tag + ".self_attn")
        self.ff = GatedFF(cfg)
        if cross:
            self.norm_cross = ScaleNorm(cfg.width)
            self.cross_attn = EinsumAttention(cfg, tag + ".cross_attn")

    def forward(self, x, bias, memory=None, memory_bias=None, truth=None):
        h = self.norm_self(x)
        x = x + self.self_attn(h, h, bias, truth)
        if memory is not None:
            x = x + self.cross_attn(self.norm_cross(x), memory, memory_bias, truth)
        return x + self.ff(self.norm_ff(x))


def additive(keep: Tensor, dtype) -> Tensor:
    """1/0 keep mask -> 0 / very negative float, the HF way."""
    return (1.0 - keep.to(dtype)) * torch.finfo(dtype).min


class TextToText(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.truth = None
        self.embed = nn.Embedding(cfg.vocab, cfg.width)
        self.enc_bias = BucketedBias(cfg, both_ways=True)
        self.dec_bias = BucketedBias(cfg, both_ways=False)
        self.encoder = nn.ModuleList(Layer(cfg, f"encoder.{i}", False) for i in range(cfg.depth))
        self.decoder = nn.ModuleList(Layer(cfg, f"decoder.{i}", True) for i in range(cfg.depth))
        self.enc_norm, self.dec_norm = ScaleNorm(cfg.width), ScaleNorm(cfg.width)

    def encode(self, ids, keep):
        x = self.embed(ids)
        bias = self.enc_bias(ids.size(1), ids.size(1), ids.device)
        bias = bias + additive(keep, x.dtype)[:, None, None, :]
        for layer in self.encoder:
            x = layer(x, bias, truth=self.truth)
        return self.enc_norm(x)

    def shift_right(self, labels):
        return torch.cat([labels.new_full((labels.size(0), 1), self.cfg.pad), labels[:, :-1]], dim=1)

    def forward(self, input_ids, labels, attention_mask=None):
        if attention_mask is None:
            attention_mask = (input_ids != self.cfg.pad).long()
        memory = self.encode(input_ids, attention_mask)
        y = self.embed(self.shift_right(labels))
        t = y.size(1)
        causal = torch.ones(t, t, device=y.device).tril()
        bias = self.dec_bias(t, t, y.device) + additive(causal, y.dtype)[None, :, None, :]
        cross_bias = additive(attention_mask, y.dtype)[:, None, None, :]
        for layer in self.decoder:
            y = layer(y, bias, memory, cross_bias, truth=self.truth)
        y = self.dec_norm(y) * self.cfg.width**-0.5
        return einsum("bim,vm->biv", y, self.embed.weight)  # tied head


def build():
    torch.manual_seed(101)
    model = TextToText(Config()).eval()
    src = torch.randint(1, 97, (3, 11))
    keep = torch.ones_like(src)
    keep[1, 8:] = 0
    keep[2, 5:] = 0
    src = src * keep
    labels = torch.randint(1, 97, (3, 7))
    args, kwargs = (src, labels), {"attention_mask": keep}
    model.truth = calls = []
    with torch.no_grad():
        out = model(*args, **kwargs)
    model.truth = None
    return model, args, kwargs, {"calls": calls, "result": out}
