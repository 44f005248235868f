"""Sums over a corpus to one row a head: means, spreads, positions against content, which heads are alike.

Two heads are alike where they look at the same keys, the sinks left out (the first token and the tokenizer's marks, where
heads rest that have nothing to do), and do not do opposite things there: of two that copy and anti-copy what they look at
neither is redundant.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.circuits import copying_scores, predicting_kind
from vizformer.analysis.corpus_heads.clustering import clusters
from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.measures import CROSS, MEASURES, TARGETS
from vizformer.analysis.corpus_heads.one_text import stacks_of
from vizformer.analysis.corpus_heads.sums import Sums
from vizformer.analysis.frames import frame
from vizformer.analysis.heads.maps import Kind
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError, VizformerError
from vizformer.figures.files import written
from vizformer.text import Tokenizer
from vizformer.text.pieces import told_apart

POSITIONAL, CONTENT, REPEATED, REDUNDANCY = "positional", "content", "induction_repeated", "redundancy"
BESIDE, COPYING, EFFECT = "beside_sinks", "copying", "logit_effect"
COLUMNS = (*MEASURES, REPEATED, POSITIONAL, CONTENT, REDUNDANCY, BESIDE, COPYING, EFFECT)
"""The measures of a finished report, in the order in which they are shown."""
LEAST_COMPARED = 0.1
"""Two heads are compared where both leave enough beside the sinks in this share of the rows."""
TENTHS, MOST_TOKENS, LONGEST_TOKEN = 10, 10, 40  # tokens of a head that are kept, and their characters
TOKEN_COUNTS = ("key_count", "query_count", "query_rows")
SIGNS = {1: "copying", -1: "anti-copying", 0: ""}
"""The names of the signs of OV in a row of the report."""


@dataclass(frozen=True)
class KindReport:
    """All heads of one kind of attention.

    Layers may have different numbers of heads; n_heads is that of the layers that have most.  Where a layer has fewer there
    is no number: NaN, 0, or -1.

    Attributes:
        layer_heads: of every layer how many heads it has, and heads of keys, which several may share.
        mean, spread: of every measure of COLUMNS, over the texts that say something of it: mean and standard deviation.
            NaN where none does, and as spread of what is computed from all texts together.
        texts: how many texts say something.
        strongest: the number of the text where a measure is strongest, -1 where there is none.
        rows, most: of the targets: in how many rows of all texts there is a choice, and in which share of them the target
            gets more than half of the attention.
        similarity: cosine of two heads' maps over all texts, without the columns of the sinks; NaN where they have too few
            rows in common; empty for very many heads.
        cluster: the number of each head's cluster, from 0 in the order of the heads; -1 where there is no head.
        nearest: which head is most alike, as layer * n_heads + head; -1 where none is compared.
        sign: of OV: 1 where a head copies, -1 where it anti-copies, 0 where it clearly does neither or nobody knows.
        tenths, tenth_values: of a measure the kept texts in the order of its value there, the smallest first, cut into ten
            parts: the number of the text in the middle of each, and the value; -1 and NaN where none says something.
            Kept are the first texts (`Sums.keeps`).
        largest: in how many rows of the kept texts the largest weight is in which of 20 equal parts of 0 to 1.
        picks: in how many of these rows more than half of the attention is on one key that is no sink.
        tokens: of the rows that pick, "key" and "query": what is picked most often, and what picks more often than the
            rows of this head do on average, MOST_TOKENS of each (empty texts where there are fewer); how often
            ("key_count", "query_count"), and how many rows that query has in all ("query_rows").
    """

    kind: Kind
    layer_heads: tuple[tuple[int, int], ...]
    mean: Mapping[str, Float[ndarray, "n_layers n_heads"]]
    spread: Mapping[str, Float[ndarray, "n_layers n_heads"]]
    texts: Mapping[str, Int[ndarray, "n_layers n_heads"]]
    strongest: Mapping[str, Int[ndarray, "n_layers n_heads"]]
    rows: Mapping[str, Int[ndarray, "n_layers n_heads"]]
    most: Mapping[str, Float[ndarray, "n_layers n_heads"]]
    similarity: Float[ndarray, "heads heads"]
    cluster: Int[ndarray, "n_layers n_heads"]
    nearest: Int[ndarray, "n_layers n_heads"]
    sign: Int[ndarray, "n_layers n_heads"]
    tenths: Mapping[str, Int[ndarray, "n_layers n_heads tenths"]]
    tenth_values: Mapping[str, Float[ndarray, "n_layers n_heads tenths"]]
    largest: Int[ndarray, "n_layers n_heads bins"]
    picks: Int[ndarray, "n_layers n_heads"]
    tokens: Mapping[str, Shaped[ndarray, "n_layers n_heads tokens"]]

    @property
    def shape(self) -> tuple[int, int]:
        n_layers, n_heads = self.cluster.shape
        return n_layers, n_heads

    @property
    def places(self) -> list[tuple[int, int]]:
        """Layer and number of every head."""
        return [(layer, head) for layer, (heads, __) in enumerate(self.layer_heads) for head in range(heads)]

    @property
    def grouped(self) -> bool:
        """Whether heads share their keys."""
        return any(keys < heads for heads, keys in self.layer_heads)

    def group(self, layer: int, head: int) -> int:
        """The key head that a head reads: its own, or one that several share."""
        heads, keys = self.layer_heads[layer]
        return head // (heads // keys)


@dataclass(frozen=True)
class HeadReport:
    """What the heads of a model do on a corpus.

    Attributes:
        model, corpus: their names.
        texts: how many of the corpus the model could read; `given` is how many there are.
        kinds: in the order of the data flow.
        weights: `Checkpoint.key` of the model that was measured.
    """

    model: str
    corpus: str
    texts: int
    given: int
    kinds: Mapping[Kind, KindReport]
    weights: str

    def rows(self) -> list[dict[str, Any]]:
        """One row a head: kind, layer, head, its group, each measure with its spread and the share of rows where the
        target gets most, the strongest text, the sign of OV, the cluster, the head most alike.
        """
        found = []
        for kind, report in self.kinds.items():
            n_heads = report.shape[1]
            for layer, head in report.places:
                row: dict[str, Any] = {"kind": kind, "layer": layer, "head": head, "group": report.group(layer, head)}
                for name in COLUMNS:
                    row[name] = float(report.mean[name][layer, head])
                    row[f"{name}_spread"] = float(report.spread[name][layer, head])
                    if name in TARGETS:
                        row[f"{name}_most"] = float(report.most[name][layer, head])
                    if name in MEASURES:
                        row[f"{name}_text"] = int(report.strongest[name][layer, head])
                nearest = int(report.nearest[layer, head])
                row["ov_sign"] = SIGNS[int(report.sign[layer, head])]
                row["cluster"] = int(report.cluster[layer, head])
                row["nearest"] = "" if nearest < 0 else f"{nearest // n_heads}.{nearest % n_heads}"
                found.append(row)
        return found

    def to_frame(self) -> Any:
        """The rows as a DataFrame."""
        return frame(self.rows())

    def csv(self) -> str:
        rows = self.rows()
        return written([list(rows[0]), *(row.values() for row in rows)])

    def save(self, path: Path) -> None:
        """Writes the rows as CSV, or as Parquet where the name ends so.

        Raises:
            VizformerError: another ending.
        """
        check_name(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(self.rows()), path)
            return
        path.write_text(self.csv(), encoding="utf-8", newline="")


def check_name(path: Path, *more: str) -> None:
    """Before anything is measured.

    `more`: endings of other files than tables.

    Raises:
        VizformerError: the name says none of the ways to write.
    """
    if path.suffix not in (endings := (".csv", ".parquet", *more)):
        raise VizformerError(
            "{path} has none of the endings {endings}. Give it one of them.",
            path=path.name,
            endings=", ".join(endings),
        )


def make_report(
    checkpoint: Checkpoint,
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
    config = checkpoint.model.config
    copying = {}
    if checkpoint.has_head:
        with suppress(TraceError):  # of latent keys and values, and of a state, no one matrix is known
            copying[predicting_kind(checkpoint)] = copying_scores(checkpoint)
    kinds = {
        kind: kind_report(
            kind,
            tuple(config.heads_of(layer) for layer in range(config.layers_of(kind))),
            part,
            [checkpoint.tokenizer_of(stack) for stack in stacks_of(kind)],  # type: ignore[arg-type]
            repeated.get(kind),
            copying.get(kind),
            clear_copying(config.d_head),
            effects.get(kind),
        )
        for kind, part in sums.items()
    }
    return HeadReport(checkpoint.name, corpus.name, read, len(corpus.passages), kinds, checkpoint.key)


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
    cluster = np.full((n_layers, n_heads), -1)
    alike = same[np.ix_(there.ravel(), there.ravel())] if same.size else same
    cluster[there] = clusters(alike, int(there.sum()))
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
        similarity,
        cluster,
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
    """How much of where a head looks is the same in every text, at the same positions; the rest is content.

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
