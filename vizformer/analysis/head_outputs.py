"""What each head adds to the residual stream, and which logits it raises or lowers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.attribution.direct import logit_attribution
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64, stored
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import Site, Sublayer, find_site, linear_inputs
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

_AT_ONCE = 2**22  # numbers of values, masked row by row, that are taken apart at once


@dataclass(frozen=True)
class EffectiveAttention:
    """The weights of a head and what of them is effective, see the module.

    Attributes:
        free: in how many directions the weights of a row can change and z stays: keys that it sees, less the rank of V.
        proof: the effective rows times V against the head's own z.
    """

    weights: Float[ndarray, "n_q n_k"]
    effective: Float[ndarray, "n_q n_k"]
    free: Int[ndarray, " n_q"]
    proof: Proof


@dataclass(frozen=True)
class HeadSlices:
    """The vectors of one query position on their way through a sublayer of attention."""

    x: Float[ndarray, " d_model"]  # the row that the projections read, all d_model numbers of it in every head
    q: Float[ndarray, " width"]  # the query; head h owns the columns h * d_head to (h + 1) * d_head
    # k, v: key and value at the query's own position; key/value head g owns the columns from g * d_head on.  None in
    # cross-attention, where keys and values belong to other positions
    k: Float[ndarray, " kv_width"] | None
    v: Float[ndarray, " v_width"] | None
    z: Float[ndarray, " z_width"]  # what the heads bring back, one after the other
    out: Float[ndarray, " d_model"]  # z W_O + b_O: the sublayer's output, in which no column belongs to a head


@dataclass(frozen=True)
class Contributions:
    """The output of an attention sublayer at one position, split into heads: out = sum_h z_h W_O^h + b_O."""

    slices: HeadSlices
    parts: Float[ndarray, "n_heads d_model"]  # z_h W_O^h of every head
    bias: Float[ndarray, " d_model"] | None
    norms: Float[ndarray, " n_heads"]
    bias_norm: float
    # part . out / |out|^2: how far each part goes in the direction of the whole; with the bias's share they sum to 1,
    # and a part that works against the others has a negative one
    shares: Float[ndarray, " n_heads"]
    bias_share: float
    proof: Proof  # the sum, brought to the next point of the residual stream, against what the model recorded there

    def without(self, head: int) -> Float[ndarray, " d_model"]:
        """What the sublayer would add if z of this head were 0: out - z_h W_O^h."""
        return self.slices.out - self.parts[head]


def contributions(checkpoint: AnyCheckpoint, trace: Trace, site: str, query: int) -> Contributions:
    """The parts of one sublayer's output at position `query`, in float64, from the model's own z.

    Concatenating the heads and multiplying by W_O is the same as multiplying each head by its own rows of W_O and
    adding up: [z_0; ...; z_H] W_O = sum_h z_h W_O^h.

    Source: Vaswani et al. 2017, section 3.2.2; Elhage et al. 2021 for the sum over heads.
    """
    found, record = find_site(checkpoint, trace, site), trace[site]
    query = row_at(query, record.q.shape[1])
    place = _place(found, trace, query)
    d_head = found.attention.d_head
    z = np.stack([float64(record.z(head)[query]) for head in range(record.n_heads)])  # [n_heads, d_head]
    W_O, b_O = found.attention.W_O.weight, found.attention.W_O.bias
    rows = float64(W_O).T.reshape(record.n_heads, d_head, -1)  # [n_heads, d_head, d_model]
    parts = np.einsum("hd,hdm->hm", z, rows)
    bias = None if b_O is None else float64(b_O)
    out: Float[ndarray, " d_model"] = parts.sum(0) if bias is None else parts.sum(0) + bias
    square = float(out @ out) or 1.0
    own = None if found.is_cross else (float64(record.k[:, query]).ravel(), float64(record.v[:, query]).ravel())
    k, v = own or (None, None)
    slices = HeadSlices(place.read[0], float64(record.q[:, query]).ravel(), k, v, z.ravel(), out)
    return Contributions(
        slices,
        parts,
        bias,
        np.linalg.norm(parts, axis=1),
        0.0 if bias is None else float(np.linalg.norm(bias)),
        parts @ out / square,
        0.0 if bias is None else float(bias @ out) / square,
        # the sublayer's output is not recorded; the residual stream before and after it is
        place.proof(stored(out, place.dtype)[None], direct=False),
    )


def output_matrix(checkpoint: AnyCheckpoint, trace: Trace, site: str) -> dict[str, Tensor]:
    """W_O as in z W_O, and b_O where the model has one, by the names that code has for them."""
    return linear_inputs(find_site(checkpoint, trace, site).attention.W_O, "O")


@dataclass(frozen=True)
class KeyContributions:
    """The contribution of every key through one head, for one query."""

    weights: Float[ndarray, " n_k"]  # the attention weights a_j
    norms: Float[ndarray, " n_k"]  # |a_j v_j W_O^h|: how long the vector is that arrives from key j

    @property
    def value_norms(self) -> Float[ndarray, " n_k"]:
        """|v_j W_O^h|, the length before it is weighted; 0 where nothing of it arrives."""
        found: Float[ndarray, " n_k"] = np.zeros_like(self.norms)
        np.divide(self.norms, self.weights, out=found, where=self.weights > 0)
        return found

    @property
    def longest(self) -> int:
        """The key whose contribution vector is longest."""
        return int(self.norms.argmax())

    def leading(self, count: int) -> list[int]:
        """The `count` keys with the largest weights, the largest first."""
        return [int(key) for key in np.argsort(-self.weights, kind="stable")[:count]]


def key_contributions(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> KeyContributions:
    """Weights beside the lengths of what they weigh: a large weight on a short vector moves little.

    Source: Kobayashi et al. 2020, "Attention is Not Only a Weight".
    """
    found, record = find_site(checkpoint, trace, site), trace[site]
    query = row_at(query, record.q.shape[1])
    weights = float64(record.pattern(head)[query])
    own = slice(head * found.attention.d_head, (head + 1) * found.attention.d_head)
    arriving = float64(record.v[record.kv_head(head)]) @ float64(found.attention.W_O.weight[:, own]).T
    return KeyContributions(weights, weights * np.linalg.norm(arriving, axis=1))


def _place(at: Site, trace: Trace, query: int) -> Sublayer:
    return Sublayer(trace, at.around, "", at.before, at.after, queries=slice(query, query + 1))


# Effective attention: what of a head's weights can reach its output at all.
#
# A head puts out z_i = a_i V, with its row of weights a_i [n] and the values V [n, d_head] of the keys that row i
# sees. With more keys than V has rank, weights can be moved about without any change of z_i: along the left null
# space of V,
#
#     a_i = effective_i + rest_i        rest_i V = 0        effective_i = a_i V V^+
#
# where V V^+ projects onto the column space of V. `effective_i` is the shortest row that gives the same z_i; it may
# have entries below 0 and sums to what it sums to. V is what the forward had, digit by digit, with its bias:
# singular values below 4 eps of float32 times the largest count as 0, in half precision too. W_O is taken to lose
# nothing of z_i. Weights that are large where effective ones are small say little about what the head has read.
#
# Source: Brunner et al. 2020, "On Identifiability in Transformers" (effective attention), for one head.
def effective_attention(trace: Trace, site: str, head: int) -> EffectiveAttention:
    """The effective attention of one head, in float64.

    Raises:
        TraceError: no such site or head; a layer without softmax.
    """
    record = trace[site]
    record.check(head)
    weights, v, z = float64(record.pattern(head)), float64(record.v[record.kv_head(head)]), float64(record.z(head))
    seen = np.asarray(record.reason(head).cpu() == 0)
    rows, which = np.unique(seen, axis=0, return_inverse=True)
    effective, free = np.zeros_like(weights), np.zeros(len(weights), dtype=np.int64)
    size, smallest = max(1, _AT_ONCE // v.size), 4 * torch.finfo(torch.float32).eps
    for first in range(0, len(rows), size):
        u, s, _ = np.linalg.svd(rows[first : first + size, :, None] * v, full_matrices=False)  # u [rows, n_k, _]
        u = u * (s > smallest * s.max(axis=-1, keepdims=True))[:, None]  # the columns that span those of V
        for at, basis in enumerate(u, start=first):
            effective[which == at] = weights[which == at] @ basis @ basis.T
            free[which == at] = rows[at].sum() - np.count_nonzero(basis.any(axis=0))
    size_of_sum = np.abs(effective) @ np.abs(v)
    proof = Proof.compare(N_("the head's own z"), effective @ v, z, terms=size_of_sum, dtype=record.v.dtype)
    return EffectiveAttention(weights, effective, free, proof)


# What a head does to the logits of the tokens that it looks at: it raises them, or works against them.
#
# At row i a head looks most at some token t (marks left out).  Its effect there is its own term of the logit of t, less the
# mean logit of all tokens (`attribution.direct`):
#
# effect_i = z_i W_O . g_i(t)
#
# and t was *expected* where, without this term, it is one of the EXPECTED tokens with the largest logits of the row.
#
# copying        the mean effect is above LEAST, and the effect is above 0 in most rows
# suppressing    it is below -LEAST, below 0 in most rows, and most of it falls on rows whose token was expected
# anti-copying   it is below -LEAST, below 0 in most rows, and most of it falls on other rows
#
# A head without a role does something else, or writes for other heads.  These are direct effects: what later parts
# make of it is not in them.
#
# Source: McDougall et al. 2023, "Copy Suppression: Comprehensively Understanding an Attention Head"; Elhage et al. 2021,
# "A Mathematical Framework for Transformer Circuits" (copying); Wang et al. 2022, "Interpretability in the Wild" (negative
# name movers).

SignedRoleName = Literal["copying", "suppressing", "anti-copying"]
LEAST = 0.1  # the mean effect, in nats of logit, from which on a head has a role
MOST_ROWS = 24  # of all texts, evenly: each is a way back through the model
EXPECTED = 10
_MOST = 2 / 3  # the share of the rows, or of the summed effect, that a role needs


@dataclass(frozen=True)
class SignedRole:
    """The effects of a head on the logits of the tokens that it attends to; see the module.

    Attributes:
        texts, rows: of each effect the text and the row, from 0.
        weights: what the head gives to them.
        effects: on their logits, in nats.
        expected: whether the token was among those with the largest logits without the effect.
    """

    site: str
    head: int
    texts: Int[ndarray, " rows"]
    rows: Int[ndarray, " rows"]
    tokens: Int[ndarray, " rows"]
    weights: Float[ndarray, " rows"]
    effects: Float[ndarray, " rows"]
    expected: Bool[ndarray, " rows"]

    @property
    def mean(self) -> float:
        return float(self.effects.mean())

    @property
    def role(self) -> SignedRoleName | None:
        """The role of the head; None where none is clear."""
        sign = np.sign(self.mean)
        if abs(self.mean) < LEAST or float((np.sign(self.effects) == sign).mean()) < _MOST:
            return None
        if sign > 0:
            return "copying"
        lowered = np.minimum(self.effects, 0.0)
        return "suppressing" if lowered[self.expected].sum() <= _MOST * lowered.sum() else "anti-copying"

    def to_frame(self) -> Any:
        """A DataFrame: a row for each effect."""
        columns = (self.texts, self.rows, self.tokens, self.weights, self.effects, self.expected)
        return frame(zip(*columns, strict=True), ("text", "row", "token", "weight", "effect", "expected"))


def signed_role(checkpoint: AnyCheckpoint, traces: Sequence[Trace], site: str, head: int) -> SignedRole:
    """What a head of the self-attention that predicts does to the logits of what it looks at; of MOST_ROWS rows.

    Raises:
        TraceError: another attention, no such head, or no row that looks at a token.
    """
    if not site.startswith(f"{predicting_stack(checkpoint)}.") or not site.endswith(".self"):
        raise TraceError(
            "{site} does not look at tokens whose logits the model tells: choose the self-attention of the stack that "
            "predicts.",
            site=site,
        )
    looked = [
        (text, row, key, weight)
        for text, trace in enumerate(traces)
        for row, (key, weight) in _looked_at(trace, site, head).items()
    ]
    if not looked:
        raise TraceError("No row of these texts looks at a token. Give longer ones.")
    kept = [looked[at] for at in np.unique(np.linspace(0, len(looked) - 1, MOST_ROWS).round().astype(int))]
    found, stack = [], site.partition(".")[0]
    for text, row, key, weight in kept:
        trace = traces[text]
        token = trace.tokens[stack][key].id
        terms = logit_attribution(checkpoint, trace, row, token).terms
        effect = sum(term.value for term in terms if (term.part, term.place, term.head) == ("head", site, head))
        logits = trace.logits[row].double()
        above = int((logits > logits[token] - effect).sum()) - int(effect < 0)  # (its own logit may be above it)
        found.append((text, row, token, weight, effect, above < EXPECTED))
    texts, rows, tokens, weights, effects, expected = (np.array(column) for column in zip(*found, strict=True))
    return SignedRole(site, head, texts, rows, tokens, weights, effects, expected)


def _looked_at(trace: Trace, site: str, head: int) -> dict[int, tuple[int, float]]:
    """row -> the non-special key with the largest weight, and this weight; without rows where special tokens get more."""
    tokens = trace.tokens[site.partition(".")[0]]
    pattern = trace[site].pattern(head).float()  # [n, n]
    marks = torch.tensor([token.special for token in tokens], device=pattern.device)
    weights, keys = pattern.masked_fill(marks, 0.0).max(-1)
    least = pattern[:, marks].sum(-1) if bool(marks.any()) else torch.zeros_like(weights)
    pairs = enumerate(zip(keys.tolist(), weights.tolist(), least.tolist(), strict=True))
    return {row: (key, weight) for row, (key, weight, rest) in pairs if weight > rest and not tokens[row].special}
