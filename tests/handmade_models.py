"""More Transformers as people write them by hand, each with the forward of its author: the names differ, and the habits.

`MODELS` names them all, with what has to be answered about them.  Those that translate take ids of the source and of the
target, the others ids [b, n].
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.strangers import FF, LAYERS, LONGEST, SOURCES, D, H, V, future, heads, sine_waves, together

W = D // H


def attend(q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None = None, scale: float = W**-0.5) -> Tensor:
    """softmax(q k^T scale) v, [..., n, w]"""
    scores = q @ k.transpose(-2, -1) * scale
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    return scores.softmax(-1) @ v


def places(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1])


class GPT(nn.Module):
    """What the models for one text have in common; `block` makes a layer."""

    def __init__(self, block: Callable[[], nn.Module], **names: Any) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(V, D), nn.Embedding(LONGEST, D)
        self.blocks = nn.ModuleList(block() for _ in range(LAYERS))
        self.ln_f, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok_emb(ids) + self.pos_emb(places(ids))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


# --- one module for every head -----------------------------------------------------------------------------------


class RawHead(nn.Module):
    """Parameters without modules: x W."""

    def __init__(self) -> None:
        super().__init__()
        self.WQ, self.WK, self.WV = (nn.Parameter(torch.zeros(D, W)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return attend(x @ self.WQ, x @ self.WK, x @ self.WV, future(x.shape[1]))


class RawHeads(nn.Module):
    """mha.heads.0.WQ, mha.WO; a network of parameters as well; a bias for each."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.Module()
        self.mha.heads, self.mha.WO = nn.ModuleList(RawHead() for _ in range(H)), nn.Parameter(torch.zeros(D, D))
        self.ffn = nn.Module()
        self.ffn.W1, self.ffn.b1 = nn.Parameter(torch.zeros(D, FF)), nn.Parameter(torch.zeros(FF))
        self.ffn.W2, self.ffn.b2 = nn.Parameter(torch.zeros(FF, D)), nn.Parameter(torch.zeros(D))
        self.norm_1, self.norm_2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.cat([head(x) for head in self.mha.heads], -1) @ self.mha.WO
        x = self.norm_1(x + y)
        return self.norm_2(x + F.relu(x @ self.ffn.W1 + self.ffn.b1) @ self.ffn.W2 + self.ffn.b2)


class SmallHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, W) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return attend(self.q(x), self.k(x), self.v(x), future(x.shape[1]), D**-0.5)


class AttentionOnly(nn.Module):
    """attn.0.q; nothing after the heads, no feed-forward network; scores over the root of the whole width."""

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.ln = nn.ModuleList(SmallHead() for _ in range(H)), nn.LayerNorm(D)

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln(x)
        return x + torch.cat([head(y) for head in self.attn], -1)


class OneHead(nn.Module):
    """The lecture's first model: one layer, which is not in a list, of one head."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding_table, self.position_embedding_table = nn.Embedding(V, D), nn.Embedding(LONGEST, D)
        self.sa_heads = nn.Module()
        self.sa_heads.heads = nn.ModuleList(SmallHead() for _ in range(H))
        self.ln1, self.ffwd = nn.LayerNorm(D), nn.Module()
        self.ln2, self.ffwd.net = nn.LayerNorm(D), nn.Sequential(nn.Linear(D, FF), nn.ReLU(), nn.Linear(FF, D))
        self.lm_head = nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding_table(ids) + self.position_embedding_table(places(ids))
        y = self.ln1(x)
        x = x + torch.cat([head(y) for head in self.sa_heads.heads], -1)
        return self.lm_head(x + self.ffwd.net(self.ln2(x)))


# --- query, key and value in one matrix --------------------------------------------------------------------------


class Fused(nn.Module):
    """attn.qkv and attn.proj, mlp.fc1 and mlp.fc2, as in models for pictures; `order` of the rows."""

    def __init__(self, name: str = "qkv", order: str = "qkv") -> None:
        super().__init__()
        self.order, self.name = order, name
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.ModuleDict({name: nn.Linear(D, 3 * D), "proj": nn.Linear(D, D)})
        self.mlp = nn.ModuleDict(dict(fc1=nn.Linear(D, FF), fc2=nn.Linear(FF, D)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        rows = self.attn[self.name](self.norm1(x)).reshape(1, n, 3, H, W).permute(2, 0, 3, 1, 4)
        q, k, v = (rows[self.order.index(letter)] for letter in "qkv")
        x = x + self.attn["proj"](together(attend(q, k, v, future(n))))
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class Conv1D(nn.Module):
    """GPT-2's linear layer, [in, out]."""

    def __init__(self, out: int, into: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(into, out)), nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Turned(nn.Module):
    """GPT-2's layers under somebody's own names."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_attn, self.ln_mlp = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = nn.ModuleDict(dict(c_attn=Conv1D(3 * D, D), c_proj=Conv1D(D, D)))
        self.mlp = nn.ModuleDict(dict(c_fc=Conv1D(FF, D), c_proj=Conv1D(D, FF)))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(part) for part in self.attention["c_attn"](self.ln_attn(x)).split(D, -1))
        x = x + self.attention["c_proj"](together(attend(q, k, v, future(x.shape[1]))))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_mlp(x)), approximate="tanh"))


# --- separate matrices -------------------------------------------------------------------------------------------


class Former(nn.Module):
    """toqueries, tokeys, tovalues, unifyheads: a well-known tutorial; a classifier that sees everything."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Module()
        for name in ("tokeys", "toqueries", "tovalues"):
            self.attention.add_module(name, nn.Linear(D, D, bias=False))
        self.attention.unifyheads = nn.Linear(D, D)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.ff = nn.Sequential(nn.Linear(D, FF), nn.ReLU(), nn.Linear(FF, D))

    def forward(self, x: Tensor) -> Tensor:
        a = self.attention
        y = a.unifyheads(together(attend(heads(a.toqueries(x)), heads(a.tokeys(x)), heads(a.tovalues(x)))))
        x = self.norm1(y + x)
        return self.norm2(self.ff(x) + x)


class Classifier(nn.Module):
    """An encoder of such layers, with classes at the end; `body` is what comes before them."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding, self.pos_embedding = nn.Embedding(V, D), nn.Embedding(LONGEST, D)
        self.tblocks, self.toprobs = nn.Sequential(*(Former() for _ in range(LAYERS))), nn.Linear(D, 3)

    def body(self, ids: Tensor) -> Tensor:
        return self.tblocks(self.token_embedding(ids) + self.pos_embedding(places(ids)))

    def forward(self, ids: Tensor) -> Tensor:
        return self.toprobs(self.body(ids).mean(1))


class Shared(nn.Module):
    """values, keys, queries of one head's width, which every head of a layer uses: x is cut before them."""

    def __init__(self) -> None:
        super().__init__()
        self.values, self.keys, self.queries = (nn.Linear(W, W, bias=False) for _ in range(3))
        self.fc_out = nn.Linear(D, D)

    def forward(self, values: Tensor, keys: Tensor, x: Tensor, blocked: Tensor | None = None) -> Tensor:
        q, k, v = self.queries(heads(x)), self.keys(heads(keys)), self.values(heads(values))
        return self.fc_out(together(attend(q, k, v, blocked, D**-0.5)))


class SharedBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm1, self.norm2 = Shared(), nn.LayerNorm(D), nn.LayerNorm(D)
        self.feed_forward = nn.Sequential(nn.Linear(D, FF), nn.ReLU(), nn.Linear(FF, D))

    def forward(self, values: Tensor, keys: Tensor, x: Tensor) -> Tensor:
        x = self.norm1(self.attention(values, keys, x) + x)
        return self.norm2(self.feed_forward(x) + x)


class SharedDecoderBlock(nn.Module):
    """Its own attention and norm, then a block of the encoder as it is, which reads the encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention, self.transformer_block = nn.LayerNorm(D), Shared(), SharedBlock()

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        x = self.norm(self.attention(x, x, x, future(x.shape[1])) + x)
        return self.transformer_block(memory, memory, x)


class SharedStack(nn.Module):
    def __init__(self, rows: int, block: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.word_embedding, self.position_embedding = nn.Embedding(rows, D), nn.Embedding(LONGEST, D)
        self.layers = nn.ModuleList(block() for _ in range(LAYERS))

    def embed(self, ids: Tensor) -> Tensor:
        return self.word_embedding(ids) + self.position_embedding(places(ids))


class SharedTranslator(nn.Module):
    """A video's translator from scratch."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = SharedStack(SOURCES, SharedBlock), SharedStack(V, SharedDecoderBlock)
        self.decoder.fc_out = nn.Linear(D, V)

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        x, y = self.encoder.embed(ids), self.decoder.embed(target)
        for layer in self.encoder.layers:
            x = layer(x, x, x)
        for layer in self.decoder.layers:
            y = layer(y, x)
        return self.decoder.fc_out(y)


class RMS(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Modern(nn.Module):
    """wq, wk, wv, wo with two heads of keys, w1, w2, w3; rotary positions as complex numbers, which turn neighbours."""

    def __init__(self) -> None:
        super().__init__()
        kv = D // 2
        sizes = dict(wq=(D, D), wk=(D, kv), wv=(D, kv), wo=(D, D))
        self.attention = nn.ModuleDict({name: nn.Linear(*size, bias=False) for name, size in sizes.items()})
        widths = dict(w1=(D, FF), w2=(FF, D), w3=(D, FF))
        self.feed_forward = nn.ModuleDict({name: nn.Linear(*size, bias=False) for name, size in widths.items()})
        self.attention_norm, self.ffn_norm = RMS(), RMS()

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        y, a, n = self.attention_norm(x), self.attention, x.shape[1]

        def rotated(z: Tensor) -> Tensor:
            pairs = torch.view_as_complex(z.unflatten(-1, (-1, W // 2, 2)))  # [b, n, h, w/2]
            return torch.view_as_real(pairs * turns[:n, None]).flatten(3).transpose(1, 2)

        q, k, v = rotated(a["wq"](y)), rotated(a["wk"](y)), a["wv"](y).unflatten(-1, (-1, W)).transpose(1, 2)
        k, v = (part.repeat_interleave(2, 1) for part in (k, v))
        x = x + a["wo"](together(attend(q, k, v, future(n))))
        f, y = self.feed_forward, self.ffn_norm(x)
        return x + f["w2"](F.silu(f["w1"](y)) * f["w3"](y))


class ModernGPT(nn.Module):
    """No bias anywhere, tied tables, the rotation kept as freqs_cis."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings, self.norm, self.output = nn.Embedding(V, D), RMS(), nn.Linear(D, V, bias=False)
        self.layers = nn.ModuleList(Modern() for _ in range(LAYERS))
        self.output.weight = self.tok_embeddings.weight
        angles = torch.outer(torch.arange(LONGEST).float(), 500.0 ** (-torch.arange(0, W, 2).float() / W))
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x, self.freqs_cis)
        return self.output(self.norm(x))


# --- TransformerLens ---------------------------------------------------------------------------------------------


class Hooked(nn.Module):
    """Its names and shapes: W_Q [head, d_model, d_head]; norms with weights, or folded; with or without a network."""

    def __init__(self, *, folded: bool = False, network: bool = True, outputs: int = V) -> None:
        super().__init__()
        self.embed, self.pos_embed, self.unembed = nn.Module(), nn.Module(), nn.Module()
        self.embed.W_E, self.pos_embed.W_pos = numbers(V, D), numbers(LONGEST, D)
        self.unembed.W_U, self.unembed.b_U = numbers(D, outputs), numbers(outputs)
        self.blocks = nn.ModuleList(nn.Module() for _ in range(LAYERS))
        for block in self.blocks:
            block.attn = nn.Module()
            for letter in "QKV":
                block.attn.register_parameter(f"W_{letter}", numbers(H, D, W))
                block.attn.register_parameter(f"b_{letter}", numbers(H, W))
            block.attn.W_O, block.attn.b_O = numbers(H, W, D), numbers(D)
            block.attn.register_buffer("mask", ~future(LONGEST))
            block.attn.register_buffer("IGNORE", torch.tensor(-1e5))
            block.ln1 = normed(folded)
            if network:
                block.ln2, block.mlp = normed(folded), nn.Module()
                block.mlp.W_in, block.mlp.b_in = numbers(D, FF), numbers(FF)
                block.mlp.W_out, block.mlp.b_out = numbers(FF, D), numbers(D)
        self.ln_final = normed(folded)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed.W_E[ids] + self.pos_embed.W_pos[places(ids)]
        for block in self.blocks:
            a, y = block.attn, self.norm(block.ln1, x)
            q, k, v = (
                torch.einsum("bnd,hdw->bhnw", y, getattr(a, f"W_{letter}")) + getattr(a, f"b_{letter}")[:, None]
                for letter in "QKV"
            )
            z = attend(q, k, v, future(x.shape[1]))
            x = x + torch.einsum("bhnw,hwd->bnd", z, a.W_O) + a.b_O
            if hasattr(block, "mlp"):
                hidden = F.gelu(self.norm(block.ln2, x) @ block.mlp.W_in + block.mlp.b_in, approximate="tanh")
                x = x + hidden @ block.mlp.W_out + block.mlp.b_out
        return self.norm(self.ln_final, x) @ self.unembed.W_U + self.unembed.b_U

    def norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), getattr(norm, "w", None), getattr(norm, "b", None))


def numbers(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


def normed(folded: bool) -> nn.Module:
    norm = nn.Module()
    if not folded:
        norm.w, norm.b = numbers(D), numbers(D)
    return norm


# --- translators -------------------------------------------------------------------------------------------------


class OwnNorm(nn.Module):
    """Norms as people write them: the names of the two numbers, and the way of dividing."""

    def __init__(self, weight: str, bias: str, *, deviation: bool, n: int = D) -> None:
        super().__init__()
        self.names, self.deviation = (weight, bias), deviation
        self.register_parameter(weight, nn.Parameter(torch.ones(n)))
        self.register_parameter(bias, nn.Parameter(torch.zeros(n)))

    def forward(self, x: Tensor) -> Tensor:
        scale, shift = (getattr(self, name) for name in self.names)
        centred = x - x.mean(-1, keepdim=True)
        if self.deviation:
            return scale * centred / (x.std(-1, keepdim=True) + 1e-6) + shift
        return scale * centred / (x.var(-1, unbiased=False, keepdim=True) + 1e-12).sqrt() + shift


class Projected(nn.Module):
    """Attention with four matrices by any names."""

    def __init__(self, names: tuple[str, str, str, str], *, bias: bool) -> None:
        super().__init__()
        self.names = names
        for name in names:
            self.add_module(name, nn.Linear(D, D, bias=bias))

    def forward(self, x: Tensor, memory: Tensor, blocked: Tensor | None = None) -> Tensor:
        q, k, v, out = (getattr(self, name) for name in self.names)
        return out(together(attend(heads(q(x)), heads(k(memory)), heads(v(memory)), blocked)))


class Listed(nn.Module):
    """Three lists, each with a matrix for every head; scores over the root of the whole width."""

    def __init__(self, names: tuple[str, str, str, str], *, bias: bool) -> None:
        super().__init__()
        self.names = names
        for name in names[:3]:
            self.add_module(name, nn.ModuleList(nn.Linear(D, W, bias=bias) for _ in range(H)))
        self.add_module(names[3], nn.Linear(D, D, bias=bias))

    def forward(self, x: Tensor, memory: Tensor, blocked: Tensor | None = None) -> Tensor:
        every = zip(*(getattr(self, name) for name in self.names[:3]), strict=True)
        found = [attend(q(x), k(memory), v(memory), blocked, D**-0.5) for q, k, v in every]
        return getattr(self, self.names[3])(torch.cat(found, -1))


class Residual(nn.Module):
    """x + sublayer(norm(x)), as the video course has it: residual_connections.0.norm.alpha."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.norm = OwnNorm("alpha", "bias", deviation=True, n=n)


class CourseLayer(nn.Module):
    def __init__(self, *, cross: bool, n: int) -> None:
        super().__init__()
        names = ("w_q", "w_k", "w_v", "w_o")
        self.self_attention_block = Projected(names, bias=False)
        if cross:
            self.cross_attention_block = Projected(names, bias=False)
        self.feed_forward_block = nn.ModuleDict(dict(linear_1=nn.Linear(D, FF), linear_2=nn.Linear(FF, D)))
        self.residual_connections = nn.ModuleList(Residual(n) for _ in range(3 if cross else 2))

    def forward(self, x: Tensor, memory: Tensor | None = None, blocked: Tensor | None = None) -> Tensor:
        first, *middle, last = (residual.norm for residual in self.residual_connections)
        y = first(x)
        x = x + self.self_attention_block(y, y, blocked)
        if memory is not None:
            x = x + self.cross_attention_block(middle[0](x), memory)
        inner = self.feed_forward_block
        return x + inner["linear_2"](F.relu(inner["linear_1"](last(x))))


class Course(nn.Module):
    """A video course's translator; `n`: of its norms, one number for the whole row or one each."""

    def __init__(self, n: int = D) -> None:
        super().__init__()
        for name, cross in (("encoder", False), ("decoder", True)):
            layers = nn.ModuleList(CourseLayer(cross=cross, n=n) for _ in range(LAYERS))
            norm = OwnNorm("alpha", "bias", deviation=True, n=n)
            self.add_module(name, nn.ModuleDict(dict(layers=layers, norm=norm)))
        for name, rows in (("src", SOURCES), ("tgt", V)):
            table, waves = nn.ModuleDict(dict(embedding=nn.Embedding(rows, D))), nn.Module()
            waves.register_buffer("pe", sine_waves(LONGEST)[None])
            self.add_module(f"{name}_embed", table)
            self.add_module(f"{name}_pos", waves)
        self.projection_layer = nn.ModuleDict(dict(proj=nn.Linear(D, V)))

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        x = self.src_embed["embedding"](ids) * math.sqrt(D) + self.src_pos.pe[:, : ids.shape[1]]
        y = self.tgt_embed["embedding"](target) * math.sqrt(D) + self.tgt_pos.pe[:, : target.shape[1]]
        for layer in self.encoder["layers"]:
            x = layer(x)
        x, blocked = self.encoder["norm"](x), future(target.shape[1])
        for layer in self.decoder["layers"]:
            y = layer(y, x, blocked)
        return self.projection_layer["proj"](self.decoder["norm"](y))


class PostLayer(nn.Module):
    """norm(x + sublayer(x)), or x + sublayer(x) of the normalised x; `style` is whose names, and where the norms are."""

    def __init__(self, style: "Style", *, cross: bool) -> None:
        super().__init__()
        self.style, self.cross = style, cross
        self.add_module(style.own[cross], style.attention(style.names, bias=style.bias))
        if cross:
            self.add_module(style.reads, style.attention(style.names, bias=style.bias))
        self.ffn = nn.ModuleDict(
            {style.ff[0]: nn.Linear(D, FF, bias=style.bias), style.ff[1]: nn.Linear(FF, D, bias=style.bias)}
        )
        if style.norm is not None:
            for number in range(3 if cross else 2):
                self.add_module(f"norm{number + 1}", style.norm())

    def norm(self, number: int, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,)) if self.style.norm is None else getattr(self, f"norm{number}")(x)

    def add(self, number: int, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.style.normed_stream:
            x = self.norm(number, x)
            return x + sublayer(x)
        return self.norm(number, x + sublayer(x))

    def forward(self, x: Tensor, memory: Tensor | None = None, blocked: Tensor | None = None) -> Tensor:
        x = self.add(1, x, lambda x: getattr(self, self.style.own[self.cross])(x, x, blocked))
        if memory is not None:
            x = self.add(2, x, lambda x: getattr(self, self.style.reads)(x, memory))
        wide, narrow = (self.ffn[name] for name in self.style.ff)
        return self.add(3 if self.cross else 2, x, lambda x: narrow(F.relu(wide(x))))


@dataclass(frozen=True)
class Style:
    """Names: of self-attention in an encoder and in a decoder, of the one that reads the encoder, of the matrices, ..."""

    own: tuple[str, str]
    reads: str
    names: tuple[str, str, str, str]
    ff: tuple[str, str]
    bias: bool
    norm: Callable[[], nn.Module] | None
    first_norm: str = ""
    tables: tuple[str, str] = ("src_emb", "tgt_emb")
    scaled: bool = False
    attention: Callable[..., nn.Module] = Projected
    normed_stream: bool = False


class PostStack(nn.Module):
    def __init__(self, style: Style, rows: int, *, cross: bool) -> None:
        super().__init__()
        self.style = style
        self.add_module(style.tables[cross], nn.Embedding(rows, D))
        self.pos_emb = nn.Module()
        self.pos_emb.register_buffer("pos_table", sine_waves(LONGEST)[None])
        self.layers = nn.ModuleList(PostLayer(style, cross=cross) for _ in range(LAYERS))
        if style.first_norm:
            self.add_module(style.first_norm, nn.LayerNorm(D))

    def forward(self, ids: Tensor, memory: Tensor | None = None) -> Tensor:
        x = getattr(self, self.style.tables[memory is not None])(ids)
        x = (x * math.sqrt(D) if self.style.scaled else x) + self.pos_emb.pos_table[:, : ids.shape[1]]
        x = getattr(self, self.style.first_norm)(x) if self.style.first_norm else x
        blocked = None if memory is None else future(ids.shape[1])
        for layer in self.layers:
            x = layer(x, memory, blocked)
        return x


class Translator(nn.Module):
    def __init__(self, style: Style) -> None:
        super().__init__()
        self.encoder, self.decoder = PostStack(style, SOURCES, cross=False), PostStack(style, V, cross=True)
        self.projection = nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        return self.projection(self.decoder(target, self.encoder(ids)))


WITHOUT_WEIGHTS = Style(  # norms that are made anew in every forward, and no bias
    ("enc_self_attn", "dec_self_attn"), "dec_enc_attn", ("W_Q", "W_K", "W_V", "fc"), ("fc1", "fc2"), False, None
)
GAMMA = Style(
    ("attention", "self_attention"),
    "enc_dec_attention",
    ("w_q", "w_k", "w_v", "w_concat"),
    ("linear1", "linear2"),
    True,
    lambda: OwnNorm("gamma", "beta", deviation=False),
)
LISTED = Style(
    ("self_attn", "masked_attn"),
    "cross_attn",
    ("queries", "keys", "values", "fc_out"),
    ("fc1", "fc2"),
    True,
    lambda: nn.LayerNorm(D),
    attention=Listed,
)
FIRST_NORM = Style(  # a norm after the embeddings, which looks like one after the last layer
    ("slf_attn", "slf_attn"),
    "enc_attn",
    ("w_qs", "w_ks", "w_vs", "fc"),
    ("w_1", "w_2"),
    True,
    lambda: nn.LayerNorm(D),
    "layer_norm",
    ("src_word_emb", "trg_word_emb"),
    True,
)


@dataclass(frozen=True)
class Model:
    """A model, what has to be answered about it, and what kind of output its forward has."""

    make: Callable[[], nn.Module]
    answers: dict[str, Any]
    output: str = "logits"


PRE: dict[str, Any] = dict(norm_order="pre", scaled_embedding=False)
POST: dict[str, Any] = dict(n_heads=H, norm_order="post", activation="relu")
SAID: dict[str, Any] = dict(bos_id=1, eos_id=2)
MODELS: dict[str, Model] = {
    "raw heads": Model(
        lambda: GPT(RawHeads), dict(norm_order="post", activation="relu", causal=True, scaled_embedding=False)
    ),
    "attention only": Model(
        lambda: GPT(AttentionOnly), dict(causal=True, scaled_embedding=False, score_scale="root_of_d_model")
    ),
    "one layer": Model(OneHead, {**PRE, "activation": "relu", "causal": True, "score_scale": "root_of_d_model"}),
    "fused": Model(lambda: GPT(Fused), {**PRE, "n_heads": H, "activation": "gelu", "causal": True}),
    "fused, keys first": Model(
        lambda: GPT(lambda: Fused("kqv_proj", "kqv")),
        {**PRE, "n_heads": H, "activation": "gelu", "causal": True, "qkv_rows": "q_k_v"},
    ),
    "fused, named keys first": Model(
        lambda: GPT(lambda: Fused("kqv_proj", "qkv")),
        {**PRE, "n_heads": H, "activation": "gelu", "causal": True, "qkv_rows": "as_q_k_v"},
    ),
    "turned": Model(lambda: GPT(Turned), {**PRE, "n_heads": H, "activation": "gelu_tanh", "causal": True}),
    "classifier": Model(Classifier, {**POST, "causal": False, "scaled_embedding": False}, "body"),
    "modern": Model(
        ModernGPT,
        {**PRE, "n_heads": H, "norm": "rms_norm", "activation": "silu", "causal": True, "norm_place": "last"},
    ),
    "TransformerLens": Model(Hooked, dict(activation="gelu_tanh")),
    "TransformerLens, folded": Model(lambda: Hooked(folded=True), dict(activation="gelu_tanh", norm="layer_norm")),
    "TransformerLens, attention only": Model(lambda: Hooked(network=False), dict(score_scale="root_of_d_head")),
    "course": Model(
        Course,
        {**SAID, "n_heads": H, "norm_order": "pre", "activation": "relu", "norm": "deviation_norm", "norm_eps": 1e-6}
        | {"norm_place": "last", "scaled_embedding": True},
        "translation",
    ),
    "course, one number": Model(
        lambda: Course(1),
        {**SAID, "n_heads": H, "norm_order": "pre", "activation": "relu", "norm": "deviation_norm", "norm_eps": 1e-6}
        | {"norm_place": "last", "scaled_embedding": True},
        "translation",
    ),
    "one matrix for all heads": Model(
        SharedTranslator,
        {
            **SAID,
            "norm_order": "post",
            "activation": "relu",
            "scaled_embedding": False,
            "score_scale": "root_of_d_model",
        },
        "translation",
    ),
    "norms without weights": Model(
        lambda: Translator(WITHOUT_WEIGHTS),
        {**POST, **SAID, "norm": "layer_norm", "scaled_embedding": False},
        "translation",
    ),
    "gamma and beta": Model(
        lambda: Translator(GAMMA),
        {**POST, **SAID, "norm": "layer_norm", "norm_eps": 1e-12, "scaled_embedding": False},
        "translation",
    ),
    "a list of heads for each letter": Model(
        lambda: Translator(LISTED),
        {**SAID, "norm_order": "post", "activation": "relu", "score_scale": "root_of_d_model"}
        | {"scaled_embedding": False},
        "translation",
    ),
    "norm of the embeddings": Model(
        lambda: Translator(FIRST_NORM), {**POST, **SAID, "norm_place": "first", "scaled_embedding": True}, "translation"
    ),
}
