"""Attention as people write it: a small module for each habit, with its map written once more by hand.

Each `Attention` takes x [b, n, D] and hands back [b, n, D]; `shown` keeps the maps [b, H, n, n] that it multiplied v by.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

D, H, V, LAYERS = 16, 4, 29, 2
d = D // H


def future(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def split(x: Tensor, heads: int = H) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, kv_heads: int = H) -> None:
        super().__init__()
        self.wq, self.wo = nn.Linear(D, D), nn.Linear(D, D)
        self.wk, self.wv = nn.Linear(D, d * kv_heads), nn.Linear(D, d * kv_heads)
        self.kv_heads = kv_heads
        self.shown: list[Tensor] = []

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return split(self.wq(x)), split(self.wk(x), self.kv_heads), split(self.wv(x), self.kv_heads)

    def keep(self, p: Tensor) -> Tensor:
        self.shown.append(p.detach().clone())
        return p

    def out(self, z: Tensor) -> Tensor:
        return self.wo(z.transpose(1, 2).flatten(2))


class Separate(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)
        p = F.softmax(scores.masked_fill(future(x.shape[1]), float("-inf")), dim=-1)
        return self.out(self.keep(p) @ v)


class Fused(Attention):
    """minGPT: one matrix for q, k and v, a buffer with the mask, the scale multiplied in."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(D, 3 * D)
        self.register_buffer("bias", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.size()
        q, k, v = (t.view(b, n, H, d).transpose(1, 2) for t in self.c_attn(x).split(D, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :n, :n] == 0, -1e9)
        att = self.keep(F.softmax(att, dim=-1))
        return self.out(att @ v)


class Einsum(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (H, d)) for f in (self.wq, self.wk, self.wv))
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) * d**-0.5
        p = torch.softmax(scores + torch.triu(torch.full((x.shape[1],) * 2, -torch.inf), 1), -1)
        return self.wo(torch.einsum("bhnm,bmhd->bnhd", self.keep(p), v).flatten(2))


class KeysFirst(Attention):
    """The map the other way round: [b, keys, queries, h], its softmax over the first of these."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (H, d)) for f in (self.wq, self.wk, self.wv))
        p = (torch.einsum("bmhd,bnhd->bmnh", k, q) * d**-0.5).softmax(1)
        self.keep(p.permute(0, 3, 2, 1))
        return self.wo(torch.einsum("bmnh,bmhd->bnhd", p, v).flatten(2))


class Flattened(Attention):
    """Heads beside the texts, by bmm (fairseq)."""

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (t.reshape(b * H, n, d) for t in self.qkv(x))
        p = torch.bmm(q * d**-0.5, k.transpose(1, 2)).softmax(dim=-1)
        self.keep(p.view(b, H, n, n))
        return self.out(torch.bmm(p, v).view(b, H, n, d))


class Grouped(Attention):
    """Heads share keys and values, which are repeated (LLaMA)."""

    def __init__(self) -> None:
        super().__init__(kv_heads=2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        k, v = (t.repeat_interleave(H // 2, dim=1) for t in (k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(d)
        scores = scores + torch.full((x.shape[1],) * 2, torch.finfo(x.dtype).min).triu(1)[None, None]
        return self.out(self.keep(F.softmax(scores.float(), dim=-1).type_as(q)) @ v)


class GroupedEinsum(Grouped):
    """The same without repeating them."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        q = q.unflatten(1, (2, H // 2))  # [b, groups, heads of each, n, d]
        p = (torch.einsum("bghqd,bgkd->bghqk", q, k) / math.sqrt(d)).softmax(-1)
        self.keep(p.flatten(1, 2))
        return self.out(torch.einsum("bghqk,bgkd->bghqd", p, v).flatten(1, 2))


class Capped(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        scores = 0.7 * torch.tanh(q @ k.mT * d**-0.5 / 0.7)
        return self.out(self.keep(scores.masked_fill(future(x.shape[1]), -torch.inf).softmax(-1)) @ v)


class Alibi(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        at = torch.arange(x.shape[1])
        slopes = 2.0 ** -torch.arange(1, H + 1)[:, None, None]
        scores = q @ k.mT * d**-0.5 - slopes * (at[:, None] - at).abs()
        return self.out(self.keep(scores.masked_fill(future(x.shape[1]), -torch.inf).softmax(-1)) @ v)


class Sinks(Attention):
    """One more score a head, without a value (gpt-oss)."""

    def __init__(self) -> None:
        super().__init__()
        self.sinks = nn.Parameter(torch.linspace(-1, 1, H))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        scores = (q @ k.mT * d**-0.5).masked_fill(future(x.shape[1]), -torch.inf)
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(len(x), -1, x.shape[1], -1)
        joined = torch.cat([scores, sinks], dim=-1)
        joined = joined - joined.max(dim=-1, keepdim=True).values
        return self.out(self.keep(F.softmax(joined, -1)[..., :-1]) @ v)


class Window(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        blocked = future(x.shape[1]) | ~future(x.shape[1]).logical_not().triu(-2)
        return self.out(self.keep((q @ k.mT * d**-0.5).masked_fill(blocked, -1e4).softmax(-1)) @ v)


class Sdpa(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        with torch._C.DisableTorchFunction():  # beside what is recorded
            self.keep((q @ k.mT * d**-0.5).masked_fill(future(x.shape[1]), -torch.inf).softmax(-1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


class SdpaShared(Attention):
    """Keys shared within the fused call, and a mask of its own for each head."""

    def __init__(self) -> None:
        super().__init__(kv_heads=2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        mask = torch.stack([future(x.shape[1]).roll(h, 1) for h in range(H)])
        mask = mask.logical_not() | torch.eye(x.shape[1], dtype=torch.bool)
        with torch._C.DisableTorchFunction():  # beside what is recorded
            repeated = k.repeat_interleave(H // 2, 1)
            self.keep((q @ repeated.mT * 0.3).masked_fill(~mask, -torch.inf).softmax(-1))
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3, enable_gqa=True))


class HandSoftmax(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        e = torch.exp(q @ k.mT * d**-0.5)
        return self.out(self.keep(e / e.sum(-1, keepdim=True)) @ v)


class Loop(Attention):
    """A head after another, in a loop."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        maps = [
            (q[:, h] @ k[:, h].mT * d**-0.5).masked_fill(future(x.shape[1]), -torch.inf).softmax(-1) for h in range(H)
        ]
        self.keep(torch.stack(maps, 1))
        return self.wo(torch.cat([p @ v[:, h] for h, p in enumerate(maps)], dim=-1))


class ReluAttention(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        return self.out(self.keep(F.relu(q @ k.mT * d**-0.5) / x.shape[1]) @ v)


class Torch(Attention):
    """nn.MultiheadAttention with its weights asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        z, p = self.inner(x, x, x, attn_mask=future(x.shape[1]), average_attn_weights=False)
        self.keep(p)
        return z


KINDS: dict[str, type[Attention]] = {
    one.__name__: one
    for one in (
        Separate,
        Fused,
        Einsum,
        KeysFirst,
        Flattened,
        Grouped,
        GroupedEinsum,
        Capped,
        Alibi,
        Sinks,
        Window,
        Sdpa,
        SdpaShared,
        HandSoftmax,
        Loop,
        ReluAttention,
        Torch,
    )
}


class Additive(Attention):
    """Bahdanau's: no product of queries and keys."""

    def __init__(self) -> None:
        super().__init__()
        self.v = nn.Linear(D, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.v(torch.tanh(self.wq(x)[:, :, None] + self.wk(x)[:, None])).squeeze(-1)
        return scores.softmax(-1) @ self.wv(x)


class Summed(Attention):
    """Multiplied and summed: no product is called at all."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        p = ((q[..., None, :] * k[..., None, :, :]).sum(-1) * d**-0.5).softmax(-1)
        return self.out((p[..., None] * v[..., None, :, :]).sum(-2))


class Block(nn.Module):
    def __init__(self, attention: type[Attention]) -> None:
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(D), nn.LayerNorm(D), attention()
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """[b, n] -> [b, n, V]"""

    def __init__(self, attention: type[Attention] = Separate) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(32, D)
        self.h = nn.ModuleList(Block(attention) for _ in range(LAYERS))
        self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.5)
        self.eval()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))

    @property
    def maps(self) -> list[Tensor]:
        """Of each layer the maps of the last forward."""
        return [block.attn.shown[-1] for block in self.h]


def ids(batch: int = 1, n: int = 7, seed: int = 0) -> Tensor:
    return torch.randint(0, V, (batch, n), generator=torch.Generator().manual_seed(seed))


class CachedAttention(Attention):
    """With the keys and values of what was read before."""

    cache: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        if self.cache is not None:
            k, v = (torch.cat(pair, 2) for pair in zip(self.cache, (k, v), strict=True))
        self.cache = (k, v)
        blocked = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1 + k.shape[2] - q.shape[2])
        return self.out((q @ k.mT * d**-0.5).masked_fill(blocked, -torch.inf).softmax(-1) @ v)


class Cached(GPT):
    def __init__(self) -> None:
        super().__init__(CachedAttention)

    def generate(self, ids: Tensor, more: int) -> Tensor:
        """`ids` and as many tokens more, each the likeliest."""
        for block in self.h:
            block.attn.cache = None
        new, first = ids, 0
        for _ in range(more):
            logits = self.step(new, first)
            first += new.shape[1]
            new = logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, new], 1)
        return ids

    def step(self, ids: Tensor, first: int) -> Tensor:
        return self(ids, torch.arange(first, first + ids.shape[1]))

    def forward(self, ids: Tensor, at: Tensor | None = None) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]) if at is None else at)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))
