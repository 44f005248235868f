"""A quick look at all heads of a model over a few short texts, in the background and for all readers.

It says what each head does and, of the one that is shown, what taking it out costs.  One text after the other: between two
layers the work can end, or pause.
"""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from vizformer.analysis import Kind, site_name
from vizformer.analysis.causes.ablation import Part, edit_without
from vizformer.analysis.corpus_heads import bundled_corpus, habits
from vizformer.analysis.corpus_heads.one_text import run
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling, sentence_pooling
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD, LongWork
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.turns import TURNS
from vizformer.web.widgets import model_suggestions

MOST_WORK = 2e11  # parameters times tokens that are read without being asked: 10 to 20 seconds of one core
LOOKING = LongWork(away=10.0, at_once=1)  # the looks that go on now
QUIET, PATIENCE = 1.0, 2.0  # seconds without a page before a layer goes on, and for which it waits for them at most


@dataclass(frozen=True)
class Look:
    texts: tuple[habits.Tokens, ...]
    heads: habits.Habits
    way: habits.Way | None
    pooling: Pooling
    answers: tuple[Tensor, ...]


@cached
def look(model: ModelRef, kind: Kind) -> Look | Literal["unreadable", "large"]:
    """What the heads do, or why it is not measured."""
    loaded, language = model_cache.checkpoint(model), model_suggestions.language(model)
    texts = habits.short_texts(loaded, bundled_corpus(language).passages) if language else ()
    if not texts:
        return "unreadable"
    if sum(map(len, texts)) * loaded.report.n_parameters > MOST_WORK:
        return "large"
    way, pooling = habits.way_of(loaded), None
    try:
        with sources.reading(model) as path:
            pooling = sentence_pooling(path) if way == "vector" and path.is_dir() else None
    except VizformerError:  # its vector is made in another way, which is not computed here
        way = None
    shares, answers = [], []
    for tokens in texts:
        _give_way()
        ids = [token.id for token in tokens]
        trace = run(loaded, {kind: tokens}) if way is None else loaded.trace(ids=ids, heard=_give_way)
        shares.append(habits.shares_of(trace, kind, tokens))
        if way is not None:
            answers.append(habits.answer(loaded, tokens, way, pooling or "mean", plain=trace, heard=_give_way))
    return Look(texts, habits.Habits(np.stack(shares)), way, pooling or "mean", tuple(answers))


@cached
def cost(model: ModelRef, kind: Kind, layer: int, head: int) -> tuple[float, ...]:
    """What taking one head out costs, text by text; nothing where that is not measured."""
    known, loaded = look(model, kind), model_cache.checkpoint(model)
    if isinstance(known, str) or known.way is None:
        return ()
    edit, found = edit_without([Part(site_name(kind, layer), head)]), list[float]()
    for tokens, whole in zip(known.texts, known.answers, strict=True):
        less = habits.answer(loaded, tokens, known.way, known.pooling, edit=edit, heard=_give_way)
        found.append(habits.cost(known.way, whole, less))
    return tuple(found)


def _give_way(done: int = 0, layers: int = 1) -> None:
    """Between two layers, in the background: ends where nobody wants it any more, and waits while pages are drawn."""
    if (heard := HEARD.get()) is None:
        return
    heard(done, layers)
    until = time.monotonic() + PATIENCE
    while not TURNS.idle(QUIET) and time.monotonic() < until:
        time.sleep(0.02)
