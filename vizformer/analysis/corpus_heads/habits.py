"""What the heads of a model do over a few short texts, and what taking one of them out costs there: a quick look.

Of each text the share that the queries of a head give to a target, a mean over those that have one:

    previous, own, next    the token before, the token itself, the one after (`vizformer.analysis.heads.measures`)
    rest                   the first and the last token together, where heads rest that have nothing to do
    delimiter              punctuation and marks between the first and the last token
    duplicate              earlier tokens that are the query's own
    induction              what followed an earlier token that is the query's own

The last three are those of `vizformer.analysis.corpus_heads.measures`; a text without such a token says nothing of them.

What a head costs is what changes where its output is set to 0 (`vizformer.analysis.causes.ablation`):

    next      the loss of each next token, mean of -ln P(next token) in nats
    masked    the same of every EVERYth token of the text, all of which are hidden by [MASK] at once
    vector    1 - cos(u, u') of the pooled vector u of a text and u' without the head

Sources: Clark et al. 2019, "What Does BERT Look At?"; Olsson et al. 2022, "In-context Learning and Induction Heads";
Michel et al. 2019, "Are Sixteen Heads Really Better than One?".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.ablation import Part, edit_without
from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.corpus_heads.measures import MEASURES, layer_patterns, measure_layer, targets, visible_keys
from vizformer.analysis.corpus_heads.one_text import is_delimiter
from vizformer.analysis.heads.maps import Kind, records_of, site_name
from vizformer.analysis.heads.small_maps import head_overview
from vizformer.analysis.side_by_side.similarity import pooled
from vizformer.checkpoints import Checkpoint
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling
from vizformer.errors import VizformerError
from vizformer.model import Edit, Trace
from vizformer.text import Token

Target = Literal["previous", "own", "next", "delimiter", "duplicate", "induction", "rest"]
TARGETS: tuple[Target, ...] = ("previous", "own", "next", "delimiter", "duplicate", "induction", "rest")
LEAST = 0.3
"""A target that gets less is no habit of a head; more than this much makes a key a sink (`heads.measures`)."""
TEXTS, CHARACTERS = 8, 160  # how many, and about how long
MOST_TOKENS = 64  # of a text that are read
EVERY = 7  # of the tokens of a text one is hidden: the 15 % of BERT
MOST_UNKNOWN = 0.05  # of the tokens of texts that a vocabulary can read

Tokens = tuple[Token, ...]
Way = Literal["next", "masked", "vector"]


@dataclass(frozen=True)
class Habit:
    """What a head gives most of its attention to.

    Attributes:
        mean, low, high: that share, over the texts.
    """

    layer: int
    head: int
    target: Target
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Habits:
    """The shares of all heads of one kind of attention; see the module.

    Attributes:
        shares: in the order of TARGETS; NaN where a text says nothing.
    """

    shares: Float[ndarray, "n_texts n_targets n_layers n_heads"]

    @cached_property
    def means(self) -> Float[ndarray, "n_targets n_layers n_heads"]:
        """Over the texts that say something; 0 where none does."""
        known = np.isfinite(self.shares)
        means: ndarray = np.where(known, self.shares, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        return means

    def of(self, layer: int, head: int) -> Habit:
        """What one head gives most to."""
        at = int(self.means[:, layer, head].argmax())
        found = self.shares[:, at, layer, head]
        found = found[np.isfinite(found)]
        return Habit(layer, head, TARGETS[at], float(found.mean()), float(found.min()), float(found.max()))

    def strongest(self) -> tuple[Habit, ...]:
        """Of every habit the head that has it most, in the order of TARGETS; those that rest are left out."""
        most = self.means.argmax(0)
        found = []
        for at, target in enumerate(TARGETS):
            own = np.where(most == at, self.means[at], 0.0)
            if target != "rest" and own.max() >= LEAST:
                found.append(self.of(*(int(place) for place in np.unravel_index(int(own.argmax()), own.shape))))
        return tuple(found)

    @property
    def resting(self) -> int:
        """How many heads rest on the first and the last token."""
        rest = TARGETS.index("rest")
        return int(((self.means.argmax(0) == rest) & (self.means[rest] >= LEAST)).sum())


def short_texts(checkpoint: Checkpoint, passages: Sequence[Passage]) -> tuple[Tokens, ...]:
    """The tokens of the TEXTS passages whose lengths are nearest to CHARACTERS, MOST_TOKENS of each at most.

    Empty where the model reads none of them, or more than MOST_UNKNOWN of their tokens are unknown to it.
    """
    reader, most = checkpoint.tokenizer_of("encoder"), min(MOST_TOKENS, checkpoint.model.config.max_positions)
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
    """What one text says of the heads of a kind of self-attention, in the order of TARGETS."""
    whole = np.zeros(1, dtype=int)
    places = head_overview(trace, kind, whole, whole).measures
    ids, last = torch.tensor([token.id for token in tokens]), len(tokens) - 1
    marks = torch.tensor([is_delimiter(token) and at < last for at, token in enumerate(tokens)])
    wanted = targets(ids, ids, marks, cross=False, same=True)
    rows = [MEASURES.index(name) for name in ("delimiter", "duplicate_token", "induction")]
    found = [
        measure_layer(layer_patterns(record).cpu(), visible_keys(record).cpu(), wanted).values[rows]
        for record in records_of(trace, kind)
    ]
    words = torch.stack(found, dim=1).numpy()
    assert places.previous is not None  # of self-attention
    assert places.own is not None
    assert places.next is not None
    shares = np.stack([places.previous, places.own, places.next, *words, places.first + places.last])
    return shares.astype(np.float32)


def way_of(checkpoint: Checkpoint) -> Way | None:
    """How the cost of a head is measured in a model; None for one that writes its target."""
    config = checkpoint.model.config
    if config.architecture == "encoder-decoder":
        return None
    if not checkpoint.has_head:
        return "vector" if config.architecture == "encoder-only" else None
    return "next" if config.architecture == "decoder-only" else "vector" if config.mask_id is None else "masked"


def answer(
    checkpoint: Checkpoint,
    tokens: Tokens,
    way: Way,
    pooling: Pooling = "mean",
    *,
    plain: Trace | None = None,
    edit: Edit | None = None,
) -> Float[Tensor, " n"]:
    """What a head is held against on one text: the losses of its tokens, or its vector; float64, on the processor.

    Args:
        plain: the forward over the text, where there is one already.
    """
    ids = [token.id for token in tokens]
    hidden = [at for at, token in enumerate(tokens) if not token.special][EVERY // 2 :: EVERY]
    config = checkpoint.model.config
    read = [config.mask_id or 0 if way == "masked" and at in hidden else id for at, id in enumerate(ids)]
    trace = plain if plain is not None and way != "masked" else checkpoint.trace(ids=read, edit=edit)
    if way == "vector":
        return pooled(trace.residual("encoder.final").double().cpu(), pooling)
    rows, right = (hidden, [ids[at] for at in hidden]) if way == "masked" else (range(len(ids) - 1), ids[1:])
    log_p = trace.logits[list(rows)].double().log_softmax(-1).cpu()
    return -log_p[torch.arange(len(right)), right]


def cost(
    checkpoint: Checkpoint,
    texts: Sequence[Tokens],
    answers: Sequence[Tensor],
    kind: Kind,
    layer: int,
    head: int,
    way: Way,
    pooling: Pooling = "mean",
) -> Iterator[float]:
    """What taking a head out changes, text by text; see the module.

    Args:
        answers: of the whole model, as `answer` gives them.
    """
    edit = edit_without([Part(site_name(kind, layer), head)])
    for tokens, whole in zip(texts, answers, strict=True):
        less = answer(checkpoint, tokens, way, pooling, edit=edit)
        same = torch.equal(less, whole)
        turned = 0.0 if same else 1.0 - float(torch.cosine_similarity(whole, less, dim=0))
        yield turned if way == "vector" else float((less - whole).mean())
