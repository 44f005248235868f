"""A quick look at all heads of a model that a reader opened, over a few short texts; in the background, for all readers.

It says of each head what it does and, of the one that is shown, what taking it out costs
(`vizformer.analysis.corpus_heads.habits`).  One text after the other: between two the work can end, or pause.
"""

import math
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD, LongWork
from vizformer.web.link.beginnings import CHINESE, ENGLISH
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from torch import Tensor

    from vizformer.analysis import Kind
    from vizformer.analysis.corpus_heads.habits import Habits, Tokens, Way
    from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling

MOST_PIECES = 1.5  # for a Chinese character, of a model that reads Chinese
MOST_WORK = 2e11  # parameters times tokens that are read without being asked: 10 to 20 seconds of one core
AWAY = 10.0  # seconds without a look after which nobody wants it any more

LOOKING = LongWork(AWAY, at_once=1)
"""The looks that go on now."""

Reason = Literal["unreadable", "large"]


@dataclass(frozen=True)
class Texts:
    """What is read.

    Attributes:
        language: of the texts; "" where the model reads none.
        tokens: of each text.
        refused: why nothing is measured.
        way, pooling: how the cost of a head is measured, where it can be.
    """

    language: Literal["", "en", "zh"]
    tokens: "tuple[Tokens, ...]"
    refused: Reason | None
    way: "Way | None"
    pooling: "Pooling"


@dataclass(frozen=True)
class Look:
    """What all heads of one kind of attention do, and what the whole model answers, text by text."""

    habits: "Habits"
    answers: "tuple[Tensor, ...]"


def language(model: ModelRef) -> Literal["", "en", "zh"]:
    """The language of the sentence that a model reads best; "" where it reads neither."""
    chinese, english = (model_cache.pieces_per_word(model, one.text) for one in (CHINESE, ENGLISH))
    if chinese > MOST_PIECES and english < chinese:
        return "en"
    return "zh" if chinese < math.inf else ""


@cached
def texts(model: ModelRef) -> Texts:
    """The short texts in the language of the model."""
    from vizformer.analysis.corpus_heads import bundled_corpus
    from vizformer.analysis.corpus_heads.habits import short_texts, way_of
    from vizformer.checkpoints.hugging_face.sentence_vectors import sentence_pooling
    from vizformer.model import count_parameters

    loaded, spoken = model_cache.checkpoint(model), language(model)
    tokens = short_texts(loaded, bundled_corpus(spoken).passages) if spoken else ()
    way, pooling = way_of(loaded), None
    try:
        with sources.reading(model) as path:
            pooling = sentence_pooling(path) if way == "vector" and path.is_dir() else None
    except VizformerError:  # its vector is made in another way, which is not computed here
        way = None
    work = sum(map(len, tokens)) * count_parameters(loaded.model.config)
    refused: Reason | None = None if tokens else "unreadable"
    return Texts(spoken, tokens, "large" if work > MOST_WORK else refused, way, pooling or "mean")


@cached
def look(model: ModelRef, kind: "Kind") -> Look | None:
    """What the heads do; None where nothing is measured.  Who listens is told how many texts are read."""
    import numpy as np

    from vizformer.analysis.corpus_heads.habits import Habits, answer, shares_of
    from vizformer.analysis.corpus_heads.one_text import run

    loaded, given = model_cache.checkpoint(model), texts(model)
    if given.refused is not None:
        return None
    tell, shares, answers = _heard(len(given.tokens)), [], []
    for done, tokens in enumerate(given.tokens, 1):
        if given.way is None:
            trace = run(loaded, {kind: tokens})
        else:
            trace = loaded.trace(ids=[token.id for token in tokens])
            answers.append(answer(loaded, tokens, given.way, given.pooling, plain=trace))
        shares.append(shares_of(trace, kind, tokens))
        tell(done)
    return Look(Habits(np.stack(shares)), tuple(answers))


@cached
def cost(model: ModelRef, kind: "Kind", layer: int, head: int) -> tuple[float, ...]:
    """What taking one head out costs, text by text; who listens is told how many are done."""
    from vizformer.analysis.corpus_heads import habits

    given, known, loaded = texts(model), look(model, kind), model_cache.checkpoint(model)
    assert known is not None
    assert given.way is not None
    tell, found = _heard(len(given.tokens)), list[float]()
    for one in habits.cost(loaded, given.tokens, known.answers, kind, layer, head, given.way, given.pooling):
        found.append(one)
        tell(len(found))
    return tuple(found)


def _heard(n: int) -> Callable[[int], None]:
    """Tells who listens how far it is; this thread has a low priority from now on, where it is one of the background."""
    heard = HEARD.get()
    if heard is None:
        return lambda done: None
    with suppress(AttributeError, OSError):  # where a system knows no priority of a thread
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    return lambda done: heard(done, n)
