"""What is measured of every head on one text, as arithmetic on the maps of one layer.

A *share* of a head is the attention that its queries give to some keys, their target:

    share = mean over the queries i that have a choice of  sum over the keys j in target(i) of pattern[i, j]

A query has a choice where it sees a key of its target and another one.  Where no query has a choice the share is NaN:
that text says nothing of it.  Beside the mean stands in how many of these rows the target gets more than half.

    diagonal         j = i
    previous         j = i - 1
    next             j = i + 1
    first            j = 0, where heads rest that have nothing to do (Xiao et al. 2023, "Efficient Streaming Language
                     Models with Attention Sinks")
    delimiter        separators, end marks, punctuation, but for the first token (Clark et al. 2019, "What Does BERT Look
                     At?", section 3.2)
    same_token       the keys with the query's own token, itself included
    duplicate_token  j < i with the query's own token (Wang et al. 2022, "Interpretability in the Wild", section 3)
    induction        j < i after an earlier occurrence of the query's token: token[j - 1] = token[i] (Olsson et al. 2022,
                     "In-context Learning and Induction Heads")

In cross-attention only first, delimiter and (where both stacks read the same ids) same_token mean anything.

    entropy          mean over i of -sum_j a_ij ln a_ij, in nats: 0 where each query reads one key, ln n where n alike
    distance         mean over i of sum_j a_ij |i - j|, in tokens (Vig & Belinkov 2019, "Analyzing the Structure of
                     Attention", section 4.2)
    effective_rank   (sum_k s_k^2)^2 / sum_k s_k^4 with the singular values s of the pattern: 1 where all queries look
                     alike, n where each looks elsewhere (the participation ratio; Del Giudice 2021, "Effective
                     Dimensionality: A Tutorial", n_2)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vizformer.model.masks import total_bias
from vizformer.model.records import AttentionRecord, weights_of

TARGETS = ("diagonal", "previous", "next", "first", "delimiter", "same_token", "duplicate_token", "induction")
OTHERS = ("entropy", "distance", "effective_rank")
MEASURES = (*TARGETS, *OTHERS)
CROSS = ("first", "delimiter", "same_token", "entropy", "effective_rank")
"""The measures that are defined where queries and keys are positions of different texts (cross-attention)."""
SMALL_IS_STRONG = ("entropy", "effective_rank")
MOST = 0.5


@dataclass(frozen=True)
class Targets:
    """The target cells of one text for one kind of attention; they are the same in every layer, before the masks."""

    # whether a key is in the target of a query, in the order of TARGETS; False everywhere where the target means
    # nothing
    keys: Bool[Tensor, "n_targets n_q n_k"]
    distance: Float[Tensor, "n_q n_k"] | None  # |i - j|; None in cross-attention


@dataclass(frozen=True)
class LayerMeasures:
    """The measures of the heads of one layer on one text."""

    values: Float[Tensor, "n_measures n_heads"]  # in the order of MEASURES; NaN where the text says nothing
    # rows, hits: of TARGETS: in how many rows there is a choice, and in how many of them the target gets more than half
    rows: Int[Tensor, "n_targets n_heads"]
    hits: Int[Tensor, "n_targets n_heads"]


def targets(
    queries: Int[Tensor, " n_q"],
    keys: Int[Tensor, " n_k"],
    delimiters: Bool[Tensor, " n_k"],
    *,
    cross: bool,
    same: bool,
) -> Targets:
    """The cells of each target in one text; `same`: an id means the same token for queries and for keys."""
    n_q, n_k = len(queries), len(keys)
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)[None, :]
    found = {name: torch.zeros(n_q, n_k, dtype=torch.bool) for name in TARGETS}
    found["first"] = (j == 0).expand(n_q, n_k)
    found["delimiter"] = (delimiters[None, :] & (j > 0)).expand(n_q, n_k)
    if same:
        found["same_token"] = queries[:, None] == keys[None, :]
    if cross:
        return Targets(torch.stack([found[name] for name in TARGETS]), None)
    found["diagonal"], found["previous"], found["next"] = i == j, j == i - 1, j == i + 1
    found["duplicate_token"] = found["same_token"] & (j < i)
    found["induction"][:, 1:] = found["same_token"][:, :-1]
    found["induction"] &= j < i
    return Targets(torch.stack([found[name] for name in TARGETS]), (i - j).abs().float())


def layer_patterns(record: AttentionRecord) -> Float[Tensor, "n_heads n_q n_k"]:
    """The weights of all heads of one attention call at once, in float32."""
    keys = record.k.float().repeat_interleave(record.n_heads // record.k.shape[0], dim=0)
    # [n_heads, n_q, n_k]
    scores = record.scoring.bent(torch.bmm(record.q.float() * record.scale, keys.transpose(1, 2)))
    bias = total_bias(record.position_bias, record.bias)
    if bias is not None:
        scores += bias
    return weights_of(scores, record.sinks)


def visible_keys(record: AttentionRecord) -> Bool[Tensor, "n_q n_k"]:
    """The cells of an attention call that its mask leaves visible."""
    shape = (record.q.shape[1], record.k.shape[1])
    if record.reason_map is None:
        return torch.ones(shape, dtype=torch.bool)
    return (record.reason_map[0] == 0).expand(shape)


def measure_layer(
    patterns: Float[Tensor, "n_heads n_q n_k"], visible: Bool[Tensor, "n_q n_k"], targets: Targets
) -> LayerMeasures:
    """All measures of the heads of one layer; see the formulas above.  Of a head that sees nothing there are none."""
    inside = targets.keys & visible  # [n_targets, n_q, n_k]
    choice = inside.any(-1) & (~targets.keys & visible).any(-1)  # [n_targets, n_q]
    several = visible.sum(-1) > 1  # [n_q]
    columns = inside.float() if targets.distance is None else torch.cat([inside.float(), targets.distance[None]])
    sums = torch.bmm(patterns.transpose(0, 1), columns.permute(1, 2, 0))  # [n_q, n_heads, n_targets or one more]
    shares = sums[:, :, : len(TARGETS)].permute(2, 1, 0)  # [n_targets, n_heads, n_q]
    rows = choice.sum(-1)  # [n_targets]
    chosen = choice[:, None, :]
    share = torch.where(chosen, shares, 0.0).sum(-1) / rows[:, None]  # 0 / 0 is NaN
    hits = ((shares > MOST) & chosen).sum(-1)

    n_heads = patterns.shape[0]
    entropy = distance = torch.full((n_heads,), torch.nan)
    if several.any():
        entropy = torch.special.entr(patterns).sum(-1)[:, several].mean(-1)
        if targets.distance is not None:
            distance = sums[several, :, len(TARGETS)].mean(0)
    values = torch.cat([share, torch.stack([entropy, distance, effective_rank(patterns)])])
    sees = patterns.flatten(1).any(1)
    return LayerMeasures(torch.where(sees, values, torch.nan), rows[:, None] * sees, hits)


def effective_rank(patterns: Float[Tensor, "n_heads n_q n_k"]) -> Float[Tensor, " n_heads"]:
    """tr(G)^2 / |G|^2 with G = A A^T, whose eigenvalues are the squares of A's singular values; NaN where A is 0."""
    short = patterns if patterns.shape[1] <= patterns.shape[2] else patterns.transpose(1, 2)
    gram = torch.bmm(short, short.transpose(1, 2))
    trace = gram.diagonal(dim1=1, dim2=2).sum(-1)
    return trace.square() / gram.square().sum((1, 2))
