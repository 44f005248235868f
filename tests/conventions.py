"""Transformers written by hand in every convention that their weights do not hold: generators, with what is true of each.

`Habits` says how an author's forward computes, `Written` is such a model, under the names of one of four styles of code.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests import tiny
from tests.handmade_models import FIRST_NORM, GAMMA, Course, Hooked, Translator, W, attend
from tests.strangers import FF, LAYERS, LONGEST, D, H, Seq2Seq, V, future, heads, sine_waves, stack, together

NARROW = 6  # numbers of an embedding that a projection makes wider


@dataclass(frozen=True)
class Habits:
    """What an author has decided, and no tensor says.

    Attributes:
        style: whose names: "heads" (a Linear for each), "apart", "fused" (head by head), "projected" (input_projection) or
            "packed" (nn.MultiheadAttention).
        n_heads: of a layer, in the styles "apart" and "fused".
        divisor: of the scores.
        eps: of the norms.
        norm: "layer", "rms" or "none".
        order: "pre", "post", "output": of what a sublayer has found, "normed_stream": of what it reads and adds to,
            "unused": in the file, and not applied, or "none".
        residual: "sequential", "parallel" or "none".
        final: a norm after the last layer: "used", "unused" or "" for none.
        segment: the row that is added, of three; -1: none of them; None: no such table.
        logits: what they are multiplied by.
        over_batch: attention runs over dimension 0, which are the texts.
        causal: only what is before is seen.
        gate: of fc1 and fc2 the one that goes through the activation; "" for a network without a gate.
        named: what layers are called that have their number in their name ("layer_"); "" where they are in a list.
        first: the number of the first of such layers.
        front: what input_projection reads: "one_hot" (vectors with one 1), "narrow" (rows of a table); "": there is none.
        wrapped: a sublayer and its norm lie in a module of their own.
        first_position: the row of the table of positions that the first token has.
        waves: sines before cosines are added in the place of a table, and no file has them.
        rows: how numbers are divided among the heads, as in `qkv_rows` and `head_rows`.
        joined_in_turn: what the heads have made is joined number by number, whatever `rows` says.
        unweighted: where norms without weights stand beside the sublayers: "final_norm", "embedding_norm", "qk_norm".
        tied: the logits are made with the table of embeddings, and no other lies in the file.
        scaled: what is multiplied by the root of the width: "tokens", "sum" with the positions, or "" for nothing.
        softmax: "over_keys", "over_queries", or "before_mask".
        turned: rotary positions in the place of a table: of "heads", or of "rows", split later; "": there are none.
        activation: "relu" or "relu_squared".
        normed: what a norm of the embeddings is applied to: "sum" or "tokens"; "": there is none.
    """

    style: str = "apart"
    n_heads: int = H
    divisor: float = math.sqrt(W)
    eps: float = 1e-5
    norm: str = "layer"
    order: str = "pre"
    residual: str = "sequential"
    final: str = ""
    segment: int | None = None
    logits: float = 1.0
    over_batch: bool = False
    causal: bool = False
    gate: str = ""
    named: str = ""
    first: int = 0
    front: str = ""
    wrapped: bool = False
    first_position: int = 0
    waves: bool = False
    rows: str = "head_by_head"
    joined_in_turn: bool = False
    unweighted: tuple[str, ...] = ()
    tied: bool = False
    normed: str = ""
    scaled: str = ""
    softmax: str = "over_keys"
    turned: str = ""
    activation: str = "relu"

    def norms(self) -> nn.Module:
        return {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[self.norm](D, eps=self.eps)

    def bare_norm(self, x: Tensor, place: str = "") -> Tensor:
        """A norm without weights, where there is one at this place: LayerNorm if the others are, else RMSNorm."""
        if place and place not in self.unweighted:
            return x
        return (F.layer_norm if self.norm == "layer" else F.rms_norm)(x, x.shape[-1:], eps=self.eps)

    def split(self, x: Tensor) -> Tensor:
        """[b, n, D] -> [b, heads, n, D / heads]"""
        if self.rows in ("in_turn", "split_in_turn"):
            return x.unflatten(-1, (-1, self.n_heads)).movedim(-1, 1)
        if self.rows == "not_transposed":
            return x.reshape(len(x), H, -1, W)
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        if self.joined_in_turn or self.rows in ("in_turn", "joined_in_turn"):
            return x.movedim(1, -1).flatten(2)
        return x.reshape(len(x), -1, D) if self.rows == "not_transposed" else together(x)


LAID_OUT = {  # the axes of a common matrix, outermost first: letters, heads, numbers of a head
    "by_head": "hln",
    "by_head_number": "hnl",
    "by_number": "nlh",
    "by_number_head": "nhl",
}


class OneHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, W, bias=False) for _ in range(3))


class Attention(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.habits = habits
        if habits.style == "heads":
            self.heads, self.proj = nn.ModuleList(OneHead() for _ in range(H)), nn.Linear(D, D)
        elif habits.style == "fused":
            self.qkv_proj, self.o_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        elif habits.style == "projected":
            self.input_projection, self.output_projection = nn.Linear(D, 3 * D), nn.Linear(D, D)
        elif habits.style == "packed":
            self.attn = nn.MultiheadAttention(D, H, batch_first=not habits.over_batch)
        else:
            self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        n, habits = x.shape[1], self.habits
        blocked = future(n) if habits.causal else torch.zeros(n, n, dtype=torch.bool)
        if habits.style == "packed":
            mask = blocked if habits.causal else None
            return self.attn(x, x, x, attn_mask=mask, need_weights=False)[0]
        if habits.style == "heads":
            q, k, v = (
                torch.stack([getattr(head, name)(x) for head in self.heads], 1) for name in ("query", "key", "value")
            )
        elif habits.style == "fused":
            fused = self.qkv_proj(x)
            if (rows := "by_head" if habits.rows == "head_by_head" else habits.rows) in LAID_OUT:
                axes, sizes = LAID_OUT[rows], dict(l=3, h=habits.n_heads, n=D // habits.n_heads)
                parted = fused.reshape(1, n, *(sizes[axis] for axis in axes))
                q, k, v = parted.permute(2 + axes.index("l"), 0, 2 + axes.index("h"), 1, 2 + axes.index("n"))
            else:
                parts = dict(zip(rows[::2], map(habits.split, fused.chunk(3, -1)), strict=True))
                q, k, v = (parts[letter] for letter in "qkv")
        elif habits.style == "projected":
            q, k, v = (heads(part) for part in self.input_projection(x).chunk(3, -1))
        else:
            q, k, v = (habits.split(projection(x)) for projection in (self.w_q, self.w_k, self.w_v))
        q, k = habits.bare_norm(q, "qk_norm"), habits.bare_norm(k, "qk_norm")
        if habits.turned:
            q, k = (turned(z) if habits.turned == "heads" else heads(turned(together(z))) for z in (q, k))
        scores = q @ k.transpose(-2, -1) / habits.divisor
        if habits.softmax == "before_mask":
            weights = scores.softmax(-1).masked_fill(blocked, 0.0)
        else:
            weights = scores.masked_fill(blocked, -math.inf).softmax(-1 if habits.softmax == "over_keys" else -2)
        out = {"heads": "proj", "fused": "o_proj", "projected": "output_projection", "apart": "w_o"}[habits.style]
        return getattr(self, out)(habits.merge(weights @ v))


def turned(x: Tensor) -> Tensor:
    """Rotary positions: halves turn together."""
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(x.shape[-2]), 10_000.0 ** (-torch.arange(half) / half))
    one, other = x.chunk(2, -1)
    return torch.cat([one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()], -1)


class SquaredReLU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x) ** 2


class Gated(nn.Module):
    """fc1, fc2 and fc3, which brings them back."""

    def __init__(self, gate: str) -> None:
        super().__init__()
        self.gate, self.fc3 = gate, nn.Linear(FF, D, bias=False)
        self.fc1, self.fc2 = (nn.Linear(D, FF, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        one, other = (self.fc1(x), self.fc2(x)) if self.gate == "fc1" else (self.fc2(x), self.fc1(x))
        return self.fc3(F.silu(one) * other)


class Layer(nn.Module):
    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.habits, self.attention = habits, Attention(habits)
        bends = nn.ReLU() if habits.activation == "relu" else SquaredReLU()
        plain = nn.Sequential(nn.Linear(D, FF), bends, nn.Linear(FF, D))
        self.mlp: nn.Module = Gated(habits.gate) if habits.gate else plain
        if habits.wrapped:
            self.first = nn.ModuleDict(dict(sublayer=self.attention, norm=habits.norms()))
            self.then = nn.ModuleDict(dict(sublayer=self.mlp, norm=habits.norms()))
            del self.attention, self.mlp
        elif habits.norm not in ("none", "unweighted"):
            self.norm1, self.norm2 = habits.norms(), habits.norms()

    def forward(self, x: Tensor) -> Tensor:
        habits = self.habits
        if habits.wrapped:
            for pair in (self.first, self.then):
                x = pair["norm"](x + pair["sublayer"](x))
            return x
        applied = habits.norm != "none" and habits.order not in ("unused", "none")
        norms: tuple[Callable[[Tensor], Tensor], ...] = (nn.Identity(), nn.Identity())
        if applied:
            norms = (habits.bare_norm,) * 2 if habits.norm == "unweighted" else (self.norm1, self.norm2)
        if habits.residual == "parallel":
            return x + self.attention(norms[0](x)) + self.mlp(norms[1](x))
        for norm, sublayer in zip(norms, (self.attention, self.mlp), strict=True):
            x = norm(x) if habits.order == "normed_stream" else x
            found = sublayer(norm(x) if habits.order == "pre" else x)
            found = norm(found) if habits.order == "output" else found
            found = found if habits.residual == "none" else x + found
            x = norm(found) if habits.order == "post" else found
        return x


class Written(nn.Module):
    """Ids [1, n] -> logits [1, n, V]."""

    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self.habits = habits
        if not habits.waves and not habits.turned:
            self.position_embedding = nn.Embedding(LONGEST + habits.first_position, D)
        if habits.normed:
            self.embedding_norm = habits.norms()
        if habits.front:
            self.input_projection = nn.Linear({"one_hot": V, "narrow": NARROW}[habits.front], D)
        if habits.front != "one_hot":
            self.token_embedding = nn.Embedding(V, NARROW if habits.front else D)
        if habits.segment is not None:
            self.segment_embedding = nn.Embedding(3, D)
        if habits.named:
            for number in range(LAYERS):
                self.add_module(f"{habits.named}{habits.first + number}", Layer(habits))
        else:
            self.layers = nn.ModuleList(Layer(habits) for _ in range(LAYERS))
        if habits.final:
            self.ln_f = nn.LayerNorm(D, eps=habits.eps)
        if not habits.tied:
            self.output_projection = nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = F.one_hot(ids, V).float() if self.habits.front == "one_hot" else self.token_embedding(ids)
        x = self.input_projection(x) if self.habits.front else x
        x = self.embedding_norm(x) if self.habits.normed == "tokens" else x
        x = x * math.sqrt(D) if self.habits.scaled == "tokens" else x
        if self.habits.waves:
            x = x + sine_waves(ids.shape[1]).unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
        elif not self.habits.turned:
            x = x + self.position_embedding(torch.arange(ids.shape[1]) + self.habits.first_position)
        x = x * math.sqrt(D) if self.habits.scaled == "sum" else x
        x = self.embedding_norm(x) if self.habits.normed == "sum" else x
        x = self.habits.bare_norm(x, "embedding_norm")
        if self.habits.segment not in (None, -1):
            x = x + self.segment_embedding(torch.full_like(ids, self.habits.segment))
        for one in (module for module in self.modules() if isinstance(module, Layer)):
            x = one(x)
        x = self.ln_f(x) if self.habits.final == "used" else x
        x = self.habits.bare_norm(x, "final_norm")
        out = self.token_embedding.weight if self.habits.tied else None
        return (self.output_projection(x) if out is None else x @ out.T) * self.habits.logits


class TorchEncoder(nn.Module):
    """nn.TransformerEncoder, and a norm beside it that nothing uses; `over_batch`: batch_first was forgotten."""

    def __init__(self, *, over_batch: bool = False, logits: float = 1.0) -> None:
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(V, D), stack()
        for one in self.encoder.layers:
            one.self_attn.batch_first = not over_batch
        self.logits, self.norm_f, self.head = logits, nn.LayerNorm(D), nn.Linear(D, V)
        self.register_buffer("pe", sine_waves(LONGEST)[None])

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.get_buffer("pe")[:, : ids.shape[1]]
        for one in self.encoder.layers:  # without the kernel for inference, which knows no other order
            x = one.norm1(x + one.self_attn(x, x, x, need_weights=False)[0])
            x = one.norm2(x + one.linear2(F.relu(one.linear1(x))))
        return self.head(x) * self.logits


class Unnormed(Hooked):
    """TransformerLens with normalization_type=None."""

    def __init__(self) -> None:
        super().__init__(folded=True)

    def norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        return x


class Small(nn.Module):
    """nanoGPT's names, and the conventions of `Habits` that somebody may change; `final`: the last norm is used."""

    def __init__(
        self, habits: Habits = Habits(final="unused", causal=True), bends: Callable[[Tensor], Tensor] = F.gelu
    ) -> None:
        super().__init__()
        self.habits = habits
        inner = nn.ModuleDict(dict(wte=nn.Embedding(V, D), wpe=nn.Embedding(LONGEST, D)))
        inner["h"], inner["ln_f"] = nn.Sequential(*(NanoLayer(habits, bends) for _ in range(LAYERS))), habits.norms()
        self.transformer, self.lm_head = inner, nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(ids.shape[1]))
        x = self.transformer["h"](x)
        return self.lm_head(self.transformer["ln_f"](x) if self.habits.final == "used" else x)


class NanoLayer(nn.Module):
    def __init__(self, habits: Habits, bends: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.habits, self.bends = habits, bends
        self.ln_1, self.ln_2, bias = habits.norms(), habits.norms(), habits.norm == "layer"
        self.attn = nn.ModuleDict(dict(c_attn=nn.Linear(D, 3 * D, bias=bias), c_proj=nn.Linear(D, D, bias=bias)))
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(D, FF, bias=bias), c_proj=nn.Linear(FF, D, bias=bias)))

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = (heads(part) for part in self.attn["c_attn"](x).split(D, -1))
        blocked = future(x.shape[1]) if self.habits.causal else None
        return self.attn["c_proj"](together(attend(q, k, v, blocked, 1 / self.habits.divisor)))

    def bend(self, x: Tensor) -> Tensor:
        return self.mlp["c_proj"](self.bends(self.mlp["c_fc"](x)))

    def forward(self, x: Tensor) -> Tensor:
        if self.habits.order == "post":
            x = self.ln_1(x + self.attend(x))
            return self.ln_2(x + self.bend(x))
        x = x + self.attend(self.ln_1(x))
        return x + self.bend(self.ln_2(x))


CODES = ("nanoGPT / minGPT", "GPT-2", "minGPT")


def under_names(weights: dict[str, Tensor], code: str) -> dict[str, Tensor]:
    """The tensors of `Small` under the names of one of CODES: GPT-2's are [in, out], the first minGPT has others."""
    if code == "GPT-2":
        return {name: t.T.contiguous() if ".c_" in name and t.dim() == 2 else t for name, t in weights.items()}
    if code != "minGPT":
        return weights
    changes = {
        **{"transformer.h.": "blocks.", "ln_": "ln", "lnf": "ln_f", "attn.c_proj": "attn.proj", "mlp.c_fc": "mlp.0"},
        **{"mlp.c_proj": "mlp.2", "transformer.wte": "tok_emb", "transformer.wpe.weight": "pos_emb"},
        **{"transformer.": "", "lm_head": "head"},
    }
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        for old, new in changes.items():
            name = name.replace(old, new)
        if "c_attn" in name:
            found |= {
                name.replace("c_attn", own): t
                for own, t in zip(("query", "key", "value"), tensor.chunk(3), strict=True)
            }
        else:
            found[name] = tensor[None] if name == "pos_emb" else tensor
    return found


class TorchHeadless(nn.Module):
    """nn.TransformerEncoder, logits by the embeddings; positions are learned, and begin with row 1."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.position_embedding = nn.Embedding(V, D), nn.Embedding(LONGEST + 1, D)
        self.encoder = stack()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position_embedding(torch.arange(ids.shape[1]) + 1)
        return self.encoder(x) @ self.embedding.weight.T


class BatchTranslator(Translator):
    """A repository's translator whose logits are multiplied by d_model^-0.5, as it shares its tables."""

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        return super().forward(ids, target) * D**-0.5


class CourseOneNorm(Course):
    """The video course's translator with a norm after the decoder alone."""

    def __init__(self) -> None:
        super().__init__()
        layers = self.get_submodule("encoder.layers")
        self.add_module("encoder", nn.ModuleDict(dict(layers=layers, norm=nn.Identity())))


class TorchOneNorm(Seq2Seq):
    """nn.Transformer with a norm after one of its stacks alone."""

    def __init__(self, without: str) -> None:
        super().__init__()
        getattr(self.transformer, without).norm = None


@dataclass(frozen=True)
class Kind:
    """A model, and the answers that are true of it; `open` are those that no strict question asks for."""

    make: Callable[[], nn.Module]
    strict: dict[str, Any]
    open: dict[str, Any]

    @property
    def answers(self) -> dict[str, Any]:
        return self.strict | self.open


def written(open: dict[str, Any], **habits: Any) -> Kind:
    own = Habits(**habits)
    activation = "silu" if own.gate else own.activation
    strict: dict[str, Any] = dict(activation=activation, causal=own.causal, scaled_embedding=bool(own.scaled))
    if own.front == "one_hot":
        del strict["scaled_embedding"]
    strict |= {} if own.norm == "none" else dict(norm_order="none" if own.order == "unused" else own.order)
    strict |= {} if own.style == "heads" else dict(n_heads=own.n_heads)
    strict |= dict(qkv_rows="by_head" if own.rows == "head_by_head" else own.rows) if own.style == "fused" else {}
    strict |= dict(positions="rope") if own.turned else {}
    strict |= dict(qkv_rows="q_k_v") if own.style == "projected" else {}
    strict |= dict(gate=f"mlp.{own.gate}") if own.gate else {}
    strict |= dict(norm="rms_norm") if own.norm in ("rms", "unweighted") else {}
    strict |= dict(positions="sinusoidal_halves") if own.waves else {}
    return Kind(lambda: Written(own), strict, open)


BY_WIDTH, SMALL_EPS = dict(score_scale="root_of_d_model"), dict(norm_eps=1e-6)
NO_WEIGHTS: dict[str, Any] = dict(norm_eps=1e-6, final_norm=True, embedding_norm=True)
AROUND: dict[str, Any] = dict(eps=1e-6, unweighted=("final_norm", "embedding_norm"))
TORCH: dict[str, Any] = dict(n_heads=H, norm_order="post", activation="relu", causal=False, scaled_embedding=False)
KINDS: dict[str, Kind] = {
    "heads, by the root of the width": written(BY_WIDTH, style="heads", divisor=math.sqrt(D), causal=True),
    "heads, not scaled": written(dict(score_scale="nothing"), style="heads", divisor=1.0, order="post"),
    "apart, by the width of a head": written(dict(score_scale="d_head"), divisor=float(W), final="used"),
    "apart, another epsilon": written(SMALL_EPS, eps=1e-6, order="post"),
    "RMS, another epsilon": written(SMALL_EPS, eps=1e-6, norm="rms", causal=True),
    "norms before the sum": written({}, order="output", style="fused", causal=True),
    "the first is the gate": written({}, gate="fc1", norm="rms", causal=True),
    "the second is the gate": written(BY_WIDTH, gate="fc2", style="heads", divisor=math.sqrt(D)),
    "layers from 1 on": written({}, named="layer_", first=1, order="post"),
    "blocks_0": written({}, named="blocks_", style="fused", causal=True),
    "h0, with heads": written(BY_WIDTH, named="h", style="heads", divisor=math.sqrt(D)),
    "transformer_1": written({}, named="transformer_", first=1, norm="rms", causal=True),
    "input_projection, by the width of a head": written(
        dict(score_scale="d_head"), style="projected", divisor=float(W), causal=True
    ),
    "one 1 for each token, through input_projection": written({}, front="one_hot", causal=True),
    "narrow embeddings": written(BY_WIDTH, front="narrow", style="heads", divisor=math.sqrt(D)),
    "a module around each sublayer and its norm": written(
        BY_WIDTH, style="heads", divisor=math.sqrt(D), order="post", wrapped=True
    ),
    "the normalised row is added to": written({}, order="normed_stream", causal=True),
    "the normalised row is added to, and a last norm": written(
        BY_WIDTH, order="normed_stream", final="used", style="heads", divisor=math.sqrt(D)
    ),
    "positions from 1 on": written(dict(first_position=1), first_position=1, causal=True),
    "positions from 2 on, fused": written(dict(first_position=2), first_position=2, style="fused", final="used"),
    "all sines before all cosines, in no file": written({}, waves=True, causal=True),
    "numbers of the heads in turn": written(dict(head_rows="in_turn"), rows="in_turn", causal=True),
    "split in turn, joined head by head": written(dict(head_rows="split_in_turn"), rows="split_in_turn", causal=True),
    "split head by head, joined in turn": written(dict(head_rows="joined_in_turn"), rows="joined_in_turn"),
    **{
        f"fused, {rows}": written({}, style="fused", rows=rows, order="post")
        for rows in ("by_number", "by_head_number", "by_number_head", "v_k_q", "k_q_v")
    },
    **{
        f"fused, {rows}, joined in turn": written(
            dict(head_rows="joined_in_turn"), style="fused", rows=rows, joined_in_turn=True
        )
        for rows in LAID_OUT
    },
    **{
        f"one head, {rows}": written({}, style="fused", n_heads=1, divisor=math.sqrt(D), rows=rows, causal=True)
        for rows in ("q_k_v", "q_v_k", "k_q_v", "k_v_q", "v_q_k", "v_k_q", "by_head_number")
    },
    "the sum with the positions is scaled": written(dict(scaled_rows="sum"), scaled="sum", causal=True),
    "the sum is scaled, positions from 1 on": written(
        dict(scaled_rows="sum", first_position=1), scaled="sum", first_position=1, order="post"
    ),
    "scaled before positions are added": written({}, scaled="tokens", causal=True),
    "squared ReLU": written({}, activation="relu_squared", causal=True),
    "heads turned": written({}, turned="heads", causal=True),
    "queries and keys normalised, beside other norms": written(
        dict(qk_norm=True), unweighted=("qk_norm",), norm="layer", causal=True
    ),
    "queries and keys normalised, beside RMS norms": written(
        dict(qk_norm=True), unweighted=("qk_norm",), norm="rms", order="post", causal=True
    ),
    "norms without weights": written(NO_WEIGHTS, norm="unweighted", causal=True, **AROUND),
    "no norms but of queries and keys, without weights": written(
        dict(qk_norm=True, norm_eps=1e-6), norm="unweighted", order="none", eps=1e-6, unweighted=("qk_norm",)
    ),
    "no norms but the last, without weights": written(
        dict(final_norm=True, norm_eps=1e-6), norm="unweighted", order="none", eps=1e-6, unweighted=("final_norm",)
    ),
    "norms without weights, of queries and keys": written(
        dict(qk_norm=True, norm_eps=1e-6), norm="unweighted", eps=1e-6, unweighted=("qk_norm",)
    ),
    "logits by the embeddings": written(dict(tied=True), tied=True, final="used", causal=True),
    "logits by the embeddings, over the root": written(
        dict(tied=True, logit_scale="root_of_d_model"), tied=True, logits=D**-0.5, causal=True
    ),
    "a norm of the sum of the embeddings": written({}, normed="sum", causal=True),
    "no norms": written({}, norm="none", causal=True),
    "heads, no norms": written(BY_WIDTH, style="heads", norm="none", divisor=math.sqrt(D)),
    "no norms but the last": written(dict(norm_order="none"), norm="none", final="used"),
    "no residual": written(dict(residual="none"), residual="none", order="post"),
    "no residual, pre": written(dict(residual="none"), residual="none", style="fused", final="used"),
    "neither": written(dict(residual="none"), residual="none", norm="none", style="packed"),
    "side by side": written(dict(residual="parallel"), residual="parallel", final="used", causal=True),
    "a last norm that nothing uses": written(dict(final_norm=False), final="unused", causal=True),
    "fused, a last norm that nothing uses": written(dict(final_norm=False), style="fused", final="unused"),
    "norms that nothing uses": written({}, order="unused"),
    "over the batch": written(dict(attention_over="batch"), style="packed", over_batch=True, order="post"),
    "over the batch, pre": written(dict(attention_over="batch"), style="packed", over_batch=True, final="used"),
    "segment 1": written(dict(segment_row=1), segment=1),
    "no segment": written(dict(segment_row="none"), segment=-1),
    "segment 2, fused": written(dict(segment_row=2), segment=2, style="fused", order="post"),
    "logits by the root of the width": written(dict(logit_scale="root_of_d_model"), logits=D**-0.5, causal=True),
    "all at once": written(
        {**BY_WIDTH, **SMALL_EPS, "segment_row": 1, "logit_scale": "root_of_d_model", "final_norm": False},
        **dict(style="heads", divisor=math.sqrt(D), eps=1e-6, segment=1, logits=D**-0.5, final="unused"),
    ),
    "PyTorch's, over the batch": Kind(
        lambda: TorchEncoder(over_batch=True), TORCH, dict(attention_over="batch", final_norm=False)
    ),
    "PyTorch's, logits by the root of the width": Kind(
        lambda: TorchEncoder(logits=D**-0.5), TORCH, dict(logit_scale="root_of_d_model", final_norm=False)
    ),
    "nanoGPT, a last norm that nothing uses": Kind(Small, dict(n_heads=H, activation="gelu"), dict(final_norm=False)),
    "nanoGPT, RMS norms": Kind(
        lambda: Small(Habits(norm="rms", final="used", causal=True)),
        dict(n_heads=H, activation="gelu"),
        dict(norm="rms_norm"),
    ),
    "PyTorch's, logits by the embeddings, positions from 1 on": Kind(
        TorchHeadless,
        {name: value for name, value in TORCH.items() if name != "positions"},
        dict(tied=True, first_position=1),
    ),
    "TransformerLens without norms": Kind(Unnormed, dict(activation="gelu_tanh"), {}),
    "translator, the normalised row is added to": Kind(
        lambda: Translator(replace(GAMMA, normed_stream=True)),
        dict(n_heads=H, norm_order="normed_stream", activation="relu", norm="layer_norm", scaled_embedding=False),
        dict(norm_eps=1e-12, bos_id=1, eos_id=2),
    ),
    "translator, a norm after the decoder alone": Kind(
        CourseOneNorm,
        dict(n_heads=H, norm_order="pre", activation="relu", norm="deviation_norm", norm_place="last")
        | dict(scaled_embedding=True),
        dict(norm_eps=1e-6, bos_id=1, eos_id=2),
    ),
    **{
        f"translator, PyTorch's without a norm after its {stack}": Kind(
            partial(TorchOneNorm, stack), {**TORCH, "scaled_embedding": True, "causal": True}, dict(bos_id=1, eos_id=2)
        )
        for stack in ("encoder", "decoder")
    },
    "translator, logits by the root of the width": Kind(
        lambda: BatchTranslator(FIRST_NORM),
        dict(n_heads=H, norm_order="post", activation="relu", norm_place="first", scaled_embedding=True),
        dict(logit_scale="root_of_d_model", bos_id=1, eos_id=2),
    ),
}


def fork(open: dict[str, Any], bends: Callable[[Tensor], Tensor] = F.gelu, **habits: Any) -> Kind:
    own = Habits(final="used", **{"causal": True, **habits})
    known = dict(n_heads=H, activation="gelu", norm_order="pre", causal=True, scaled_embedding=False, known_code=False)
    return Kind(lambda: Small(own, bends), {**known, **open}, {})


FORKS: dict[str, Kind] = {  # under the names of a known code
    "not scaled": fork(dict(score_scale="nothing"), divisor=1.0),
    "another epsilon": fork(dict(norm_eps=1e-3), eps=1e-3),
    "RMS norms": fork(dict(norm="rms_norm"), norm="rms"),
    "norms after the sum": fork(dict(norm_order="post"), order="post"),
    "squared ReLU": fork(dict(activation="relu_squared"), SquaredReLU()),
    "no mask": fork(dict(causal=False), causal=False),
}


def made(name: str) -> nn.Module:
    """The model with random weights; norms that nothing uses stay as they were made."""
    model = tiny.randomise(KINDS[name].make()).eval()
    for place, module in model.named_modules():
        last = place.rpartition(".")[2]
        unused = isinstance(model, Written) and (
            (last == "ln_f" and model.habits.final == "unused")
            or (last in ("norm1", "norm2") and model.habits.order == "unused")
        )
        if (
            unused
            or last == "norm_f"
            or (last == "ln_f" and isinstance(model, Small) and model.habits.final == "unused")
        ):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    return model
