"""Computes the numbers of a report from sums over a corpus: means, spreads, positions against content, redundancy.

Of two heads one is redundant where both look at the same keys, the sinks left out (the first token and the tokenizer's
marks, where heads rest that have nothing to do), and do not do opposite things there: of two that copy and anti-copy what
they look at neither is.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.circuits import copying_scores, predicting_kind
from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.measures import CROSS, MEASURES, TARGETS
from vizformer.analysis.corpus_heads.one_text import stacks_of
from vizformer.analysis.corpus_heads.report import (
    BESIDE,
    CONTENT,
    COPYING,
    EFFECT,
    LEAST_COMPARED,
    LONGEST_TOKEN,
    MOST_TOKENS,
    POSITIONAL,
    REDUNDANCY,
    REPEATED,
    TENTHS,
    TOKEN_COUNTS,
    HeadReport,
    KindReport,
)
from vizformer.analysis.corpus_heads.sums import Sums
from vizformer.analysis.heads.maps import Kind
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.text import Tokenizer
from vizformer.text.pieces import told_apart


def make_report(
    checkpoint: AnyCheckpoint,
    corpus: Corpus,
    read: int,
    sums: Mapping[Kind, Sums],
    repeated: Mapping[Kind, Tensor],
    effects: Mapping[Kind, Float[ndarray, "rows n_layers n_heads"]],
) -> HeadReport:
    """The report of a corpus whose texts were all added up.

    Args:
        read: how many texts could be read.
        repeated: the induction score on random tokens that come twice, see `repeated_induction`.
        effects: see `next_token_effects`.
    """
    shape, copying = checkpoint.shape, {}
    if checkpoint.has_head:
        with suppress(TraceError):  # recorded code of which no matrices are found
            copying[predicting_kind(checkpoint)] = copying_scores(checkpoint)
    kinds = {
        kind: kind_report(
            kind,
            layer_heads(checkpoint, kind),
            part,
            [checkpoint.tokenizer_of(stack) for stack in stacks_of(kind)],  # type: ignore[arg-type]
            repeated.get(kind),
            copying.get(kind),
            clear_copying(shape.d_head),
            effects.get(kind),
        )
        for kind, part in sums.items()
    }
    return HeadReport(checkpoint.name, corpus.name, read, len(corpus.passages), kinds)


def layer_heads(checkpoint: AnyCheckpoint, kind: Kind) -> tuple[tuple[int, int], ...]:
    """Heads of queries, and of keys and values, of each layer; of recorded code it is not asked which heads share keys."""
    if not checkpoint.is_own:
        return tuple((heads, heads) for heads in checkpoint.shape.heads_of(kind))
    config = checkpoint.model.config
    return ((config.n_heads, config.kv_heads),) * config.layers_of(kind)


def clear_copying(d_head: int) -> float:
    """The copying score from which on a head copies, or anti-copies below its negative.

    Random matrices have a deviation of about 1.6 / d_head (measured for d_head of 4 to 64): three of them, but 0.2 at least
    and 0.95 at most.
    """
    return float(np.clip(5 / d_head, 0.2, 0.95))


def kind_report(
    kind: Kind,
    layer_heads: tuple[tuple[int, int], ...],
    sums: Sums,
    tokenizers: Sequence[Tokenizer],
    repeated: Tensor | None,
    copying: Float[ndarray, "n_layers n_heads"] | None = None,
    clear: float = 1.0,
    effects: Float[ndarray, "rows n_layers n_heads"] | None = None,
) -> KindReport:
    """Mean = total / count, spread^2 = squares / count - mean^2, and what is computed of all texts together.

    Args:
        tokenizers: of the queries and the keys.
        copying: the copying scores, where they are known; heads above `clear` copy, heads below its negative anti-copy.
    """
    n_layers, n_heads = sums.count.shape[1:]
    unknown = np.full((n_layers, n_heads), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.total / sums.count
        spreads = np.sqrt(np.maximum(sums.squares / sums.count - means**2, 0.0))
        most = sums.hits / sums.rows
        similarity = sums.products / np.sqrt(sums.lengths * sums.lengths.T)
        beside = sums.beside / sums.choice[:, None]
    mean: dict[str, ndarray] = dict(zip(MEASURES, means, strict=True))
    spread: dict[str, ndarray] = dict(zip(MEASURES, spreads, strict=True))
    if kind == "cross":
        for name in set(MEASURES) - set(CROSS):
            mean[name] = spread[name] = unknown
    if repeated is None:
        mean[REPEATED] = spread[REPEATED] = unknown
    else:
        mean[REPEATED], spread[REPEATED] = repeated.double().mean(0).numpy(), repeated.double().std(0, False).numpy()
    mean[POSITIONAL] = positional_share(sums)
    mean[CONTENT] = 1 - mean[POSITIONAL]
    mean[BESIDE] = beside
    mean[COPYING] = unknown if copying is None else copying
    sign = np.where(np.abs(mean[COPYING]) >= clear, np.sign(mean[COPYING]), 0).astype(np.int64)
    too_few = sums.compared < LEAST_COMPARED * sums.choice.max(initial=0)
    even = np.minimum(sums.lengths, sums.lengths.T) < 1e-12 * sums.compared  # an even look has no direction
    similarity[too_few | even] = np.nan
    opposite = np.outer(sign, sign) < 0
    same = np.where(opposite[: len(similarity), : len(similarity)], np.nan, similarity)
    others = np.where(np.eye(len(same), dtype=bool) | ~np.isfinite(same), -np.inf, same)
    nearest, redundancy = np.full(n_layers * n_heads, -1), np.full(n_layers * n_heads, np.nan)
    if len(others) > 1:
        best = others.max(1)
        has = np.isfinite(best)
        nearest[has], redundancy[has] = others.argmax(1)[has], best[has]
    mean[REDUNDANCY] = redundancy.reshape(n_layers, n_heads)
    spread |= dict.fromkeys((POSITIONAL, CONTENT, REDUNDANCY, BESIDE, COPYING), unknown)
    mean[EFFECT], spread[EFFECT] = unknown, unknown
    if effects is not None and len(effects):
        mean[EFFECT], spread[EFFECT] = effects.mean(0), effects.std(0)
    there = np.arange(n_heads) < np.array([heads for heads, __ in layer_heads])[:, None]
    for numbers in (mean, spread):
        numbers |= {name: np.where(there, values, np.nan) for name, values in numbers.items()}
    tenths, tenth_values = _tenths(sums, [bool(np.isfinite(mean[name]).any()) for name in MEASURES])
    picks, tokens = _tokens(sums, tokenizers)
    return KindReport(
        kind,
        layer_heads,
        mean,
        spread,
        dict(zip(MEASURES, sums.count, strict=True)),
        dict(zip(MEASURES, sums.where, strict=True)),
        dict(zip(TARGETS, sums.rows, strict=True)),
        dict(zip(TARGETS, most, strict=True)),
        nearest.reshape(n_layers, n_heads),
        sign,
        dict(zip(MEASURES, tenths, strict=True)),
        dict(zip(MEASURES, tenth_values, strict=True)),
        sums.largest,
        picks,
        tokens,
    )


def _tenths(sums: Sums, meant: list[bool]) -> tuple[ndarray, ndarray]:
    """Numbers of texts and values there, [n_measures, n_layers, n_heads, TENTHS]; see `KindReport`."""
    if not len(sums.numbers):
        shape = (*sums.count.shape, TENTHS)
        return np.full(shape, -1), np.full(shape, np.nan)
    values = np.where(np.isfinite(sums.values) & np.reshape(meant, (-1, 1, 1)), sums.values, np.inf)
    order = np.argsort(values, axis=0, kind="stable")  # [n_kept, n_measures, n_layers, n_heads], nothing last
    n = np.isfinite(values).sum(0)
    middle = (2 * np.arange(TENTHS).reshape(-1, 1, 1, 1) + 1) * n // (2 * TENTHS)
    at = np.take_along_axis(order, middle.clip(max=len(values) - 1), 0)
    chosen = np.take_along_axis(values, at, 0)
    known = n > 0
    return (
        np.moveaxis(np.where(known, sums.numbers[at], -1), 0, -1),
        np.moveaxis(np.where(known, chosen, np.nan), 0, -1).round(6),
    )


def _tokens(sums: Sums, tokenizers: Sequence[Tokenizer]) -> tuple[ndarray, dict[str, ndarray]]:
    """How many rows of each head pick, and the tokens of these rows; see `KindReport` and `Sums.looks`."""
    shape = (n_layers, n_heads) = sums.cells.shape[0], sums.count.shape[2]
    heads = n_layers * n_heads
    place, ids = sums.codes >> 32, sums.codes & 0xFFFFFFFF
    picks = np.bincount(place[place < heads], sums.counts[place < heads], heads).astype(np.int64)
    share = picks / np.maximum(sums.largest.sum(2).ravel(), 1)
    tokens = {name: np.zeros((heads, MOST_TOKENS), np.int64) for name in TOKEN_COUNTS}
    for role, (name, tokenizer) in enumerate(zip(("key", "query"), reversed(tokenizers), strict=True)):
        mine = place // max(heads, 1) == role
        head, id, count = place[mine] - role * heads, ids[mine], sums.counts[mine]
        rows = count
        if name == "query":
            layer = head // n_heads * n_heads
            rows = sums.counts[np.searchsorted(sums.codes, (2 * heads + layer) << 32 | id)]
        above = count - rows * share[head] if name == "query" else count
        order = np.lexsort((id, -above, head))
        rank = np.arange(len(order)) - np.searchsorted(head[order], head[order])
        order, rank = order[rank < MOST_TOKENS], rank[rank < MOST_TOKENS]
        unique, at = np.unique(id[order], return_inverse=True)
        texts = np.array([text[:LONGEST_TOKEN] for text in told_apart(tokenizer.tokens(unique.tolist()))] or [""])
        tokens[name] = np.full((heads, MOST_TOKENS), "", texts.dtype)
        tokens[name][head[order], rank] = texts[at]
        tokens[f"{name}_count"][head[order], rank] = count[order]
        if name == "query":
            tokens["query_rows"][head[order], rank] = rows[order]
    return picks.reshape(shape), {name: found.reshape(*shape, -1) for name, found in tokens.items()}


def positional_share(sums: Sums) -> Float[ndarray, "n_layers n_heads"]:
    """The share of each head's attention pattern that depends on positions alone; the rest depends on the content.

    With D = pattern - even on the first CORNER positions, and the mean M of a cell over the T texts that have it,

        positional = 1 - sum over cells of T V / sum over cells and texts of D^2,    V = sum over texts (D - M)^2 / (T - 1)

    1 for a head that looks at the token before in every text; 0 where what texts have in common is no more than an even
    look.  Cells that only one text has are left out.  NaN where no cell is left, and where a head always looks evenly.
    It is the share of variance that positions explain, with V without bias (the law of total variance).
    """
    texts = sums.cells[:, None]  # [n_layers, 1, corner, corner]
    several = texts > 1
    within = np.where(
        several, (sums.energy - sums.maps**2 / np.maximum(texts, 1)) * texts / np.maximum(texts - 1, 1), 0.0
    )
    energy = np.where(several, sums.energy, 0.0).sum((2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(1 - within.sum((2, 3)) / energy, 0.0, 1.0)
    return np.where(energy > 1e-9, share, np.nan)
