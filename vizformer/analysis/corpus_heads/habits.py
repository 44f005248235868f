"""What the heads of a model do over a few short texts, and what taking one of them out costs there: a quick look.

The shares of a head's attention are those of `vizformer.analysis.corpus_heads.measures`: to the token before, itself, the
one after, punctuation between the first and the last token, earlier tokens like the query, and what followed these
(induction); and `rest`, what the first and the last token get together, where heads rest that have nothing to do.

What a head costs is what changes where its output is set to 0 (`vizformer.analysis.causes.ablation`):

    next      the mean of -ln P(next token), in nats
    masked    the same of every EVERYth token of the text, all of which are hidden by [MASK] at once
    vector    1 - cos(u, u') of the pooled vector u of a text and u' without the head

With x_i the last rows of a text (n tokens), u is by the model's pooling

    mean             sum_i x_i / n
    cls              x_0
    max              u_d = max over i of x_i[d]
    mean_sqrt_len    sum_i x_i / sqrt(n)

Source: Reimers & Gurevych 2019, "Sentence-BERT", section 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.corpus_heads.measures import MEASURES, layer_patterns, measure_layer, targets, visible_keys
from vizformer.analysis.corpus_heads.one_text import is_delimiter
from vizformer.analysis.heads.maps import Kind, records_of
from vizformer.checkpoints import AnyCheckpoint
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling
from vizformer.errors import VizformerError
from vizformer.model import Edit, Trace
from vizformer.text import Token

TARGETS = ("previous", "diagonal", "next", "delimiter", "duplicate_token", "induction", "rest")
LEAST = 0.3  # of its attention a head of a kind gives; more than this much makes a key a sink (`heads.measures`)
TEXTS, CHARACTERS = 8, 160  # how many, and about how long
MOST_TOKENS = 64  # of a text that are read
EVERY = 7  # of the tokens of a text one is hidden: the 15 % of BERT
MOST_UNKNOWN = 0.05  # of the tokens of texts that a vocabulary can read

Tokens = tuple[Token, ...]
Way = Literal["next", "masked", "vector"]


@dataclass(frozen=True)
class Habit:
    """The target (one of TARGETS) that gets most of a head's attention, and this share over the texts."""

    layer: int
    head: int
    target: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Habits:
    """The shares of all heads of one kind of attention, in the order of TARGETS; NaN where a text says nothing."""

    shares: Float[ndarray, "n_texts n_targets n_layers n_heads"]

    @cached_property
    def means(self) -> Float[ndarray, "n_targets n_layers n_heads"]:
        """The mean share over the texts that have a value; 0 where none has."""
        return np.nansum(self.shares, axis=0) / np.maximum(np.isfinite(self.shares).sum(0), 1)

    def of(self, layer: int, head: int) -> Habit:
        """The habit of one head: the target with the largest mean share."""
        at = int(self.means[:, layer, head].argmax())
        found = self.shares[:, at, layer, head]
        low, high = float(np.nanmin(found)), float(np.nanmax(found))
        return Habit(layer, head, TARGETS[at], float(self.means[at, layer, head]), low, high)

    def strongest(self) -> tuple[Habit, ...]:
        """The strongest head of every habit that a head has with at least LEAST of its attention, in the order of TARGETS
        without "rest".
        """
        most, (_layers, heads) = self.means.argmax(0), self.means.shape[1:]
        firsts = [int(np.where(most == at, self.means[at], -1.0).argmax()) for at in range(len(TARGETS) - 1)]
        found = [self.of(first // heads, first % heads) for first in firsts]
        return tuple(one for at, one in enumerate(found) if one.target == TARGETS[at] and one.mean >= LEAST)

    @property
    def resting(self) -> int:
        """The number of heads whose habit is "rest", with at least LEAST of their attention."""
        return int(((self.means.argmax(0) == len(TARGETS) - 1) & (self.means[-1] >= LEAST)).sum())


def short_texts(checkpoint: AnyCheckpoint, passages: Sequence[Passage]) -> tuple[Tokens, ...]:
    """The tokens of the TEXTS passages whose lengths are nearest to CHARACTERS, MOST_TOKENS of each at most.

    Empty where the model reads none of them, or more than MOST_UNKNOWN of their tokens are unknown to it.
    """
    reader, most = checkpoint.tokenizer_of("encoder"), min(MOST_TOKENS, checkpoint.shape.max_positions)
    found = list[Tokens]()
    for passage in sorted(passages, key=lambda one: abs(len(one.text) - CHARACTERS))[:TEXTS]:
        try:
            tokens = reader.encode(passage.text)
        except VizformerError:
            return ()
        ended = len(tokens) > most and tokens[-1].special
        found.append((*tokens[: most - 1], tokens[-1]) if ended else tokens[:most])
    read = [token for tokens in found for token in tokens if not token.special or token.id == reader.unknown_id]
    unknown = sum(token.id == reader.unknown_id for token in read)
    return tuple(found) if read and unknown <= MOST_UNKNOWN * len(read) and min(map(len, found)) > 2 else ()


def shares_of(trace: Trace, kind: Kind, tokens: Tokens) -> Float[ndarray, "n_targets n_layers n_heads"]:
    """The shares of all heads of a kind of self-attention in one text, in the order of TARGETS."""
    ids, last = torch.tensor([token.id for token in tokens]), len(tokens) - 1
    marks = torch.tensor([is_delimiter(token) and at < last for at, token in enumerate(tokens)])
    wanted, rows = targets(ids, ids, marks, cross=False, same=True), [MEASURES.index(name) for name in TARGETS[:-1]]
    found = []
    for record in records_of(trace, kind):
        patterns = layer_patterns(record).cpu()
        values = measure_layer(patterns, visible_keys(record).cpu(), wanted).values
        found.append(torch.cat([values[rows], patterns[:, :, [0, last]].sum(-1).mean(-1)[None]]))
    return torch.stack(found, dim=1).numpy()


def way_of(checkpoint: AnyCheckpoint) -> Way | None:
    """How the cost of a head is measured in a model; None for one that writes its target, or predicts nothing."""
    shape = checkpoint.shape
    if shape.architecture == "encoder-only":
        return "masked" if checkpoint.has_head and shape.mask_id is not None else "vector"
    return "next" if checkpoint.has_head and shape.architecture == "decoder-only" else None


def answer(
    checkpoint: AnyCheckpoint,
    tokens: Tokens,
    way: Way,
    pooling: Pooling = "mean",
    *,
    plain: Trace | None = None,
    edit: Edit | None = None,
    heard: Callable[[int, int], None] | None = None,
) -> Float[Tensor, " n"]:
    """The output for one text that ablations are compared by: token losses in nats, or its vector; float64 on the CPU."""
    ids = [token.id for token in tokens]
    hidden = [at for at, token in enumerate(tokens) if way == "masked" and not token.special][EVERY // 2 :: EVERY]
    read = [checkpoint.shape.mask_id or 0 if at in hidden else id for at, id in enumerate(ids)]
    trace = plain if plain is not None and way != "masked" else checkpoint.trace(ids=read, edit=edit, heard=heard)
    if way == "vector":
        return _pooled(trace.residual("encoder.final").double().cpu(), pooling)
    rows, right = (hidden, [ids[at] for at in hidden]) if way == "masked" else (range(len(ids) - 1), ids[1:])
    log_p = trace.logits[list(rows)].double().log_softmax(-1).cpu()
    return -log_p[torch.arange(len(right)), right]


def _pooled(rows: Float[Tensor, "n d_model"], pooling: Pooling) -> Float[Tensor, " d_model"]:
    if pooling == "cls":
        return rows[0]
    if pooling == "max":
        return rows.amax(0)
    return rows.mean(0) if pooling == "mean" else rows.sum(0) / len(rows) ** 0.5


def cost(way: Way, whole: Float[Tensor, " n"], less: Float[Tensor, " n"]) -> float:
    """The mean increase of the loss in nats, or 1 - cosine of the two vectors, on one text; see the module."""
    if way == "vector" and not torch.equal(whole, less):
        return 1.0 - float(torch.cosine_similarity(whole, less, dim=0))
    return float((less - whole).mean())
