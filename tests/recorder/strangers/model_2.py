"""Decoder-only LM that generates greedily: GQA, complex rotary, QK-norm, KV cache, SDPA.

Every other layer is "local": it only looks `window` tokens back and keeps a ring buffer, so once
the buffer has wrapped the cached keys are NOT in time order.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, N_Q, N_KV, HEAD, LAYERS, VOCAB = 64, 8, 2, 16, 4, 120
WINDOW = 6
QUERY_SCALAR = 24  # scale is QUERY_SCALAR ** -0.5, not HEAD ** -0.5


def rotary_table(max_len, head_dim, theta=10_000.0):
    inv = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(max_len).float(), inv)
    return torch.polar(torch.ones_like(angle), angle)  # complex64 [max_len, head/2]


def rotate(x, table):
    """x: [B, T, H, D] real."""
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * table[None, :, None, :]).flatten(-2).to(x.dtype)


class LinearCache:
    """Preallocated [B, Hkv, max, D], filled from the left."""

    def __init__(self, batch, max_len, dtype):
        self.k = torch.zeros(batch, N_KV, max_len, HEAD, dtype=dtype)
        self.v = torch.zeros_like(self.k)
        self.n = 0

    def update(self, k, v):
        t = k.shape[2]
        self.k[:, :, self.n : self.n + t] = k
        self.v[:, :, self.n : self.n + t] = v
        self.n += t
        return self.k[:, :, : self.n], self.v[:, :, : self.n]


class RingCache:
    def __init__(self, batch, size, dtype):
        self.size, self.seen = size, 0
        self.k = torch.zeros(batch, N_KV, size, HEAD, dtype=dtype)
        self.v = torch.zeros_like(self.k)

    def update(self, k, v):
        t = k.shape[2]
        where = torch.arange(self.seen, self.seen + t)[-self.size :] % self.size
        self.k.index_copy_(2, where, k[:, :, -self.size :])
        self.v.index_copy_(2, where, v[:, :, -self.size :])
        self.seen += t
        if t > 1:  # prefill attends to what was just computed
            return k, v
        filled = min(self.seen, self.size)
        return self.k[:, :, :filled], self.v[:, :, :filled]


class RMSNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


class Attention(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.local = index % 2 == 1
        self.q_proj = nn.Linear(DIM, N_Q * HEAD, bias=False)
        self.k_proj = nn.Linear(DIM, N_KV * HEAD, bias=False)
        self.v_proj = nn.Linear(DIM, N_KV * HEAD, bias=False)
        self.o_proj = nn.Linear(N_Q * HEAD, DIM, bias=False)
        self.q_norm, self.k_norm = RMSNorm(HEAD), RMSNorm(HEAD)
        self.scale = QUERY_SCALAR**-0.5

    def grow(self, x):
        """[B, Hkv, S, D] -> [B, Hq, S, D]; global layers by expand, local ones by repeat."""
        rep = N_Q // N_KV
        if self.local:
            return x.repeat_interleave(rep, dim=1)
        b, h, s, d = x.shape
        return x[:, :, None].expand(b, h, rep, s, d).reshape(b, h * rep, s, d)

    def forward(self, x, table, cache, truth=None):
        b, t, _ = x.shape
        q = rotate(self.q_norm(self.q_proj(x).view(b, t, N_Q, HEAD)), table).transpose(1, 2)
        k = rotate(self.k_norm(self.k_proj(x).view(b, t, N_KV, HEAD)), table).transpose(1, 2)
        v = self.v_proj(x).view(b, t, N_KV, HEAD).transpose(1, 2)
        k, v = cache.update(k, v)
        k, v = self.grow(k), self.grow(v)

        if t == 1:
            mask, y = None, F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        elif self.local:
            i = torch.arange(t, device=x.device)
            back = i[:, None] - i[None, :]
            mask = (back >= 0) & (back < WINDOW)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)
        else:
            mask = None
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)

        if truth is not None:  # SDPA hides the weights: redo them on the side
            s = (q.double() @ k.double().transpose(-1, -2)) * self.scale
            if mask is None and t > 1:
                mask = torch.ones(t, t, dtype=torch.bool).tril()
            if mask is not None:
                s = s.masked_fill(~mask, float("-inf"))
            truth.append(
                dict(name=f"layers.{self.index}.attn", weights=s.softmax(-1).to(q.dtype), output=y.detach().clone())
            )
        return self.o_proj(y.transpose(1, 2).reshape(b, t, N_Q * HEAD))


class SwiGLU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up = nn.Linear(DIM, 2 * 96, bias=False)
        self.down = nn.Linear(96, DIM, bias=False)

    def forward(self, x):
        g, u = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.silu(g) * u)


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.attn, self.mlp = Attention(index), SwiGLU()
        self.ln1, self.ln2 = RMSNorm(DIM), RMSNorm(DIM)

    def forward(self, x, *rest):
        x = x + self.attn(self.ln1(x), *rest)
        return x + self.mlp(self.ln2(x))


class Generator(nn.Module):
    def __init__(self, max_len=64):
        super().__init__()
        self.max_len = max_len
        self.truth = None
        self.tok = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList([Block(i) for i in range(LAYERS)])
        self.norm = RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.register_buffer("rotary", rotary_table(max_len, HEAD), persistent=False)

    def step(self, ids, start, caches):
        x = self.tok(ids)
        table = self.rotary[start : start + ids.shape[1]]
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, table, cache, self.truth)
        return self.head(self.norm(x[:, -1]))

    @torch.inference_mode()
    def forward(self, prompt, max_new_tokens=4):
        b, dtype = prompt.shape[0], self.tok.weight.dtype
        caches = [
            RingCache(b, WINDOW, dtype) if layer.attn.local else LinearCache(b, self.max_len, dtype)
            for layer in self.layers
        ]
        ids, fresh, pos, logits = prompt, prompt, 0, []
        for _ in range(max_new_tokens):
            logits.append(self.step(fresh, pos, caches))
            pos += fresh.shape[1]
            fresh = logits[-1].argmax(-1, keepdim=True)
            ids = torch.cat((ids, fresh), dim=1)
        return ids, torch.stack(logits, dim=1)


def build():
    torch.manual_seed(202)
    model = Generator().eval()
    for layer in model.layers:  # sharper than the default init
        nn.init.constant_(layer.attn.q_norm.weight, 1.6)
        nn.init.constant_(layer.attn.k_norm.weight, 1.3)
    args = (torch.randint(0, VOCAB, (2, 9)),)
    kwargs = dict(max_new_tokens=5)  # 1 prefill + 4 single-token steps
    model.truth = []
    ids, logits = model(*args, **kwargs)
    truth = {"calls": model.truth, "result": (ids, logits)}
    model.truth = None
    return model, args, kwargs, truth
