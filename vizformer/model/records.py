"""The record of one attention call; scores and weights are recomputed on demand.

Kept are q, k, v, the mask and the scale.  Attention maps are not (n x n floats a head): `AttentionRecord` recomputes the
one of the head that someone looks at.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model.input_check import check_head
from vizformer.model.masks import total_bias

# softmax(scores) v: one fused call, or step by step where a recorded model's scores are more than scaled products.

Numbers = TypeVar("Numbers", Tensor, ndarray)


@dataclass(frozen=True)
class Scoring:
    """What happens to q k^T before position bias and mask are added: scale, then soft cap.

    Attributes:
        scale: 1 / sqrt(d_head), or the factor that the model or an edit uses instead.
        cap: the scores of a recorded model may be bent by a soft cap, cap * tanh(score / cap): about what they were where
            they are small, and never beyond -cap or cap (Bello et al. 2016, "Neural Combinatorial Optimization with
            Reinforcement Learning", section 4.2, for logits; Gemma Team 2024, "Gemma 2", section 2).  None: they are not.
    """

    scale: float
    cap: float | None = None

    @property
    def is_product(self) -> bool:
        """Whether a score is the dot product times the scale, without a soft cap."""
        return self.cap is None

    def bent(self, scores: Numbers) -> Numbers:
        """cap * tanh(scores / cap) of scores that are scaled already; the scores themselves without a cap."""
        if self.cap is None:
            return scores
        return self.cap * (torch.tanh(scores / self.cap) if isinstance(scores, Tensor) else np.tanh(scores / self.cap))


def weights_of(
    scores: Float[Tensor, "*b n_q n_k"], sinks: Float[Tensor, "*b #n_q"] | None = None
) -> Float[Tensor, "*b n_q n_k"]:
    """softmax of the scores with all that is added to them; a row whose every key is blocked gives 0.

    With sinks each row has one more score, whose share of 1 goes to no key.
    Source: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2.1.
    """
    if sinks is None:
        return torch.softmax(scores, dim=-1).nan_to_num(0.0)
    column = sinks.to(scores)[..., None].expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, column], -1), dim=-1)[..., :-1].nan_to_num(0.0)


def mix(
    q: Float[Tensor, "b h n_q d"],
    k: Float[Tensor, "b h_kv n_k d"],
    v: Float[Tensor, "b h_kv n_k d_value"],
    bias: Tensor | None,
    scoring: Scoring,
    sinks: Float[Tensor, "b h #n_q"] | None = None,
) -> Float[Tensor, "b h n_q d_value"]:
    """softmax(scoring(q k^T) + bias) v in every head: the fused call of the forward, or step by step where a recorded
    model bends its scores or has sinks; half precision is left inside then, as the fused call does.

    `bias` is shaped like the scores, with sizes of 1 for "the same for all".  Query heads in a row may share a key head
    where the call is fused.  A row whose every key is blocked gives 0.
    """
    if scoring.is_product and sinks is None:
        shared = q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scoring.scale, enable_gqa=shared)
    wide = [t if t.dtype == torch.float64 else t.float() for t in (q, k, v)]
    scores = scoring.bent(wide[0] @ wide[1].mT * scoring.scale)  # [b, h, n_q, n_k]
    weights = weights_of(scores if bias is None else scores + bias, sinks)
    return (weights @ wide[2]).to(v.dtype)


@dataclass(frozen=True, repr=False)
class AttentionRecord:
    """One attention call of batch item 0: the operands of softmax(scoring(q k^T) + position_bias + bias) v.

    Attributes:
        q: [n_heads, n_q, d_head], as the fused kernel received it (after the rotation, where there is one).
        k, v: [n_kv_heads, n_k, d_head] likewise; consecutive query heads
            share a key/value head (`kv_head`).
        bias: the mask, [1 or n_heads, n_q or 1, n_k], or None where every query sees every key.
        reason: uint8 map of `vizformer.model.masks.Reason`, shaped like `bias`.
        scoring: scale and soft cap of q k^T, before anything is added.
        position_bias: the bias of the scores by ALiBi or T5, [n_heads, n_q, n_k], or None.
        tokens: the labels of the queries and of the keys; empty where only token ids went in.
        assumed: as in `Trace`.
        sinks: one more score of each row, [n_heads, n_q or 1], whose share of 1 goes to no key; None: there is none.
            Recorded models alone have them.
        scored: False for a recorded model whose weights are no softmax of scaled products: the position bias is then the
            logarithm of the weights, and q and k are zeros.
    """

    site: str
    q: Float[Tensor, "n_heads n_q d_head"]
    k: Float[Tensor, "n_kv_heads n_k d_head"]
    v: Float[Tensor, "n_kv_heads n_k d_value"]
    bias: Float[Tensor, "h _q n_k"] | None
    reason_map: UInt8[Tensor, "h _q n_k"] | None
    scoring: Scoring
    position_bias: Float[Tensor, "n_heads n_q n_k"] | None = None
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    assumed: tuple[str, ...] = ()
    sinks: Float[Tensor, "n_heads _q"] | None = None
    scored: bool = True

    def __repr__(self) -> str:
        n_q, n_k = self.q.shape[1], self.k.shape[1]
        return f"<AttentionRecord {self.site}: {self.n_heads} heads, {n_q} queries, {n_k} keys>"

    @property
    def n_heads(self) -> int:
        return self.q.shape[0]

    @property
    def scale(self) -> float:
        """The factor of q k^T: 1 / sqrt(d_head), or the one that the model or an edit uses instead."""
        return self.scoring.scale

    def kv_head(self, head: int) -> int:
        """The key/value head that query head `head` looks at: its own, or one shared with its neighbours."""
        return head // (self.q.shape[0] // self.k.shape[0])

    def content_scores(self, head: int) -> Float[Tensor, "n_q n_k"]:
        """q k^T * scale of one head, before soft cap, position bias and mask.

        Tensors in half precision are widened to float32, here and below, as the fused kernels do inside.

        Raises:
            TraceError: no such head, or not `scored`.
        """
        self.check(head)
        if not self.scored:
            raise TraceError(
                "The weights at {site} are not the softmax of scaled dot products alone, so there are no scores.",
                site=self.site,
            )
        return _wide(self.q[head]) @ _wide(self.k[self.kv_head(head)]).T * self.scale  # [n_q, n_k]

    def scores(self, head: int) -> Float[Tensor, "n_q n_k"]:
        """The scores of one head before the mask: q k^T * scale, with soft cap and position bias if the model has them."""
        scores = self.scoring.bent(self.content_scores(head))
        return scores if self.position_bias is None else scores + self.position_bias[head]  # [n_q, n_k]

    def pattern(self, head: int) -> Float[Tensor, "n_q n_k"]:
        """The attention weights of one head: each row sums to 1 (or is 0 where all is blocked)."""
        if self.scored:
            scores = self.scores(head)
        else:
            self.check(head)
            assert self.position_bias is not None
            scores = self.position_bias[head]
        if self.bias is not None:
            scores = scores + self.bias[head % self.bias.shape[0]]  # a bias with one head is the same for all
        return weights_of(scores, None if self.sinks is None else self.sinks[head])  # [n_q, n_k]

    def all_scores(self) -> Float[Tensor, "n_heads n_q n_k"]:
        """The `scores` of every head."""
        return torch.stack([self.scores(head) for head in range(self.n_heads)])

    def all_patterns(self, scores: Float[Tensor, "n_heads n_q n_k"] | None = None) -> Float[Tensor, "n_heads n_q n_k"]:
        """The `pattern` of every head, computed from `all_scores` if the caller has them already."""
        if not self.scored:
            return torch.stack([self.pattern(head) for head in range(self.n_heads)])
        scores = self.all_scores() if scores is None else scores
        return weights_of(scores if self.bias is None else scores + self.bias, self.sinks)

    def z(self, head: int) -> Float[Tensor, "n_q d_value"]:
        """pattern @ v of one head, by the same fused call as in the forward: the anchor of the proofs."""
        self.check(head)
        mask = None if self.bias is None else self.bias[head % self.bias.shape[0]]
        bias = total_bias(None if self.position_bias is None else self.position_bias[head], mask)
        bias = None if bias is None else bias[None, None].to(self.q.dtype)
        q, kv = slice(head, head + 1), slice(self.kv_head(head), self.kv_head(head) + 1)
        sinks = None if self.sinks is None else self.sinks[None, q]
        return mix(self.q[None, q], self.k[None, kv], self.v[None, kv], bias, self.scoring, sinks)[0, 0]

    def of_queries(self, first: int, end: int) -> "AttentionRecord":
        """The same attention call with the queries first <= query < end only."""

        def rows(x: Tensor | None) -> Tensor | None:
            return x if x is None or x.shape[1] == 1 else x[:, first:end]

        return replace(
            self,
            q=self.q[:, first:end],
            bias=rows(self.bias),
            reason_map=rows(self.reason_map),
            position_bias=rows(self.position_bias),
            sinks=rows(self.sinks),
            tokens=(self.tokens[0][first:end], self.tokens[1]),
        )

    @property
    def weighs_plainly(self) -> bool:
        """Whether the weights are softmax(scores + position bias + mask) of scaled products, without sinks."""
        return self.scored and self.sinks is None

    def mask_row(self, head: int, query: int) -> Float[Tensor, " n_k"] | None:
        """The mask of one query in one head, as it is added to the scores; None if there is no mask."""
        return None if self.bias is None else self.bias[head % self.bias.shape[0], query % self.bias.shape[1]]

    def reason(self, head: int) -> UInt8[Tensor, "n_q n_k"]:
        """Why each cell is blocked; 0 where it is not."""
        self.check(head)
        shape = (self.q.shape[1], self.k.shape[1])
        if self.reason_map is None:
            return torch.zeros(shape, dtype=torch.uint8, device=self.q.device)
        return self.reason_map[head % self.reason_map.shape[0]].expand(shape)

    def _repr_html_(self) -> str:
        """The attention maps of all heads as HTML, for notebooks."""
        return picture(self)

    def check(self, head: int) -> None:
        """Raises TraceError where there is no such head, or where its numbers cannot be used."""
        check_head(head, self.n_heads, self.site)


def picture(shown: object) -> str:
    """Imported by the package's public name when a notebook asks for it: the model itself imports no pictures."""
    import vizformer

    return vizformer.view(shown)._repr_html_()


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
