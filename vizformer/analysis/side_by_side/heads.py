"""How far heads and answers of two runs are from one another: the Jensen-Shannon divergence of their rows.

For the weights p and q that a head gives to the keys in the same row of both runs, with m = (p + q) / 2,

    JSD(p, q) = sum_j p_j log2(p_j / m_j) / 2 + sum_j q_j log2(q_j / m_j) / 2

in bits: 0 where the rows are the same, 1 where they have no key in common.  It is finite where a weight is 0, and the
same from both sides, which the Kullback-Leibler divergence is not.  That of a head is the mean over the rows that have a
choice, i. e. see more than one key in one of the runs.

Source: Lin 1991, "Divergence Measures Based on the Shannon Entropy", IV; between attention heads: Clark et al. 2019,
"What Does BERT Look At?", 6.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, site_name
from vizformer.analysis.one_forward.predictions import writable
from vizformer.analysis.side_by_side.runs import TwoRuns
from vizformer.errors import TraceError
from vizformer.model.input_check import row_at
from vizformer.model.records import AttentionRecord
from vizformer.text import Token

AT_ONCE = 2**21  # weights of a head that are held at once, of each run


@dataclass(frozen=True)
class HeadPair:
    """One head in both runs, over some of the rows and keys.

    Attributes:
        difference: second - first, from -1 to 1; None where the maps have no rows and keys in common.
        divergence: of every row of the difference, in bits; NaN where a row has no choice.
        reasons: why cells are blocked in the first and in the second run (`vizformer.model.Reason`), 0 where they are not.
    """

    first: Float[ndarray, "n_q n_k"]
    second: Float[ndarray, "m_q m_k"]
    difference: Float[ndarray, "rows keys"] | None
    divergence: Float[ndarray, " rows"] | None
    reasons: tuple[UInt8[ndarray, "n_q n_k"], UInt8[ndarray, "m_q m_k"]]


@torch.inference_mode()
def head_divergences(
    runs: TwoRuns, kind: Kind, *, measure: "Measure | None" = None, heard: Callable[[int, int], None] | None = None
) -> Float[ndarray, "n_layers n_heads"]:
    """The mean divergence of the rows of every head, in bits; NaN where no row has a choice, and where a layer has no such
    head.

    Raises:
        TraceError: the maps have no cells in common (`TwoRuns.rows_and_keys`).
    """
    n_layers, n_heads = runs.shape(kind)
    found = np.full((n_layers, n_heads), np.nan)
    for layer, head in np.ndindex(n_layers, n_heads):
        rows = row_divergences(runs, kind, layer, head, measure)
        if np.isfinite(rows).any():
            found[layer, head] = np.nanmean(rows)
        if heard is not None and head == n_heads - 1:
            heard(layer + 1, n_layers)
    return found


@torch.inference_mode()
def row_divergences(
    runs: TwoRuns, kind: Kind, layer: int, head: int, measure: "Measure | None" = None
) -> Float[ndarray, " rows"]:
    """The divergence (or another measure) of every row of one head, in bits; NaN where a row has no choice.  Of a signed
    map it is that of the shares by size.

    Raises:
        TraceError: no such head in both models; the maps have no cells in common.
    """
    one, two = _records(runs, kind, layer, head)
    rows, keys = runs.rows_and_keys(kind)
    if head >= min(runs.trace[one.site].n_heads, runs.other[two.site].n_heads):
        return np.full(rows, np.nan)
    step = max(1, AT_ONCE // keys)
    parts = []
    for start in range(0, rows, step):
        some = [record.of_queries(start, min(start + step, rows)) for record in (one, two)]
        p, q = (record.pattern(head)[:, :keys].cpu().double() for record in some)
        choice = (torch.stack([record.reason(head)[:, :keys].cpu() == 0 for record in some]).sum(-1) > 1).any(0)
        parts.append(torch.where(choice, (measure or divergence)(p, q), torch.nan))
    return torch.cat(parts).numpy()


@torch.inference_mode()
def head_pair(
    runs: TwoRuns, kind: Kind, layer: int, head: int, queries: range | None = None, keys: range | None = None
) -> HeadPair:
    """The maps of one head in both runs, and their difference."""
    (one, why), (two, why_other) = (
        _window(record, head, queries, keys) for record in _records(runs, kind, layer, head)
    )
    try:
        n_rows, n_keys = runs.rows_and_keys(kind)
    except TraceError:
        return HeadPair(one, two, None, None, (why, why_other))
    first_row, first_key = (0 if chosen is None else chosen.start for chosen in (queries, keys))
    rows, columns = max(0, n_rows - first_row), max(0, n_keys - first_key)
    difference = two[:rows, :columns] - one[:rows, :columns]
    divergences = row_divergences(runs, kind, layer, head)[first_row : first_row + len(difference)]
    return HeadPair(one, two, difference, divergences, (why, why_other))


def divergence(p: Float[Tensor, "*rows n"], q: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows"]:
    """JSD(p, q) of distributions, in bits."""
    middle = ((p + q) / 2).clamp_min(torch.finfo(p.dtype).tiny)
    both = torch.special.xlogy(p, p / middle) + torch.special.xlogy(q, q / middle)
    return (both.sum(-1) / (2 * np.log(2))).clamp(0.0, 1.0)  # (rounding goes a hair beyond)


def total_variation(p: Float[Tensor, "*rows n"], q: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows"]:
    """sum_j |p_j - q_j| / 2 of distributions: the share of the one that lies elsewhere in the other."""
    return (p - q).abs().sum(-1) / 2


Measure = Callable[[Tensor, Tensor], Tensor]


def _records(runs: TwoRuns, kind: Kind, layer: int, head: int) -> tuple[AttentionRecord, AttentionRecord]:
    n_layers, n_heads = runs.shape(kind)
    if not 0 <= layer < n_layers or not 0 <= head < n_heads:
        raise TraceError(
            "There is no head {head} in layer {layer} of both models: they share {layers} layers of {heads} heads.",
            head=head,
            layer=layer,
            layers=n_layers,
            heads=n_heads,
        )
    name = site_name(kind, layer)
    return runs.trace[name], runs.other[name]


def _window(
    record: AttentionRecord, head: int, queries: range | None, keys: range | None
) -> tuple[Float[ndarray, "n_q n_k"], UInt8[ndarray, "n_q n_k"]]:
    """Some of the weights of a head, and why cells of them are blocked."""
    if queries is not None:
        record = record.of_queries(queries.start, queries.stop)
    columns = slice(None) if keys is None else slice(keys.start, keys.stop)
    return record.pattern(head)[:, columns].float().cpu().numpy(), record.reason(head)[:, columns].cpu().numpy()


@dataclass(frozen=True)
class Answer:
    """A token, and the probability that each run gives it."""

    token: Token
    first: float
    second: float


@dataclass(frozen=True)
class Answers:
    """The most probable tokens of both runs, and the Jensen-Shannon divergence of their distributions in bits."""

    tokens: tuple[Answer, ...]
    divergence: float


@torch.inference_mode()
def two_answers(runs: TwoRuns, row: int, other_row: int | None = None, count: int = 5) -> Answers:
    """The `count` most probable tokens of each run, with the probability that the other one gives them.

    p = softmax(logits[row]); a token that only one vocabulary has is impossible for the other model.
    """
    rows = row, row if other_row is None else other_row
    p, q = (
        torch.softmax(trace.logits[row_at(at, len(trace.logits))].double().cpu(), dim=-1)
        for trace, at in zip((runs.trace, runs.other), rows, strict=True)
    )
    size = max(len(p), len(q))
    p, q = (torch.cat([one, torch.zeros(size - len(one), dtype=one.dtype)]) for one in (p, q))
    both = ((runs.first, p), (runs.second, q))
    best = {int(id) for model, one in both for id in writable(model, one).topk(min(count, size)).indices}
    ids = sorted(best, key=lambda id: (-max(float(p[id]), float(q[id])), id))
    return Answers(
        tuple(Answer(token, float(p[token.id]), float(q[token.id])) for token in _tokens(runs, ids)),
        float(divergence(p, q)),
    )


def differing_rows(runs: TwoRuns) -> tuple[int, ...]:
    """The leading rows of the output in which the two runs find different tokens most probable."""
    both = ((runs.first, runs.trace), (runs.second, runs.other))
    first, second = (writable(model, trace.logits).argmax(-1).cpu() for model, trace in both)
    n = min(len(first), len(second))
    return tuple((first[:n] != second[:n]).nonzero()[:, 0].tolist())


def _tokens(runs: TwoRuns, ids: list[int]) -> list[Token]:
    """The tokens of some ids, by the first model's vocabulary, or by the second one's where the first one lacks the id."""
    known = runs.first.shape.vocab_size
    return [(runs.first if id < known else runs.second).tokenizer.tokens([id])[0] for id in ids]
