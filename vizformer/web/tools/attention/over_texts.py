"""What the head that is shown does over a few short texts, and what taking it out costs: a sentence that comes later.

Only of models that a reader opened.  The picture comes first: nothing is begun before it was looked at for a while.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st
from torch import Tensor

from vizformer.analysis import Kind, site_name
from vizformer.analysis.causes.ablation import Part, edit_without
from vizformer.analysis.corpus_heads import bundled_corpus, habits
from vizformer.analysis.corpus_heads.habits import EVERY, Way
from vizformer.analysis.corpus_heads.one_text import run
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling, sentence_pooling
from vizformer.components.attention import ENGLISH
from vizformer.errors import VizformerError
from vizformer.messages import N_, Message
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import Cached, cached
from vizformer.web.catalogue.long_work import HEARD, LongWork
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.turns import TURNS
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.watched_work import reader
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, translate

MOST_WORK = 2e11  # parameters times tokens that are read without being asked: 10 to 20 seconds of one core
LOOKING = LongWork(away=10.0, at_once=1)  # the looks that go on now
QUIET, PATIENCE = 1.0, 2.0  # seconds without a page before a layer goes on, and for which it waits for them at most
POLL = 2.0  # seconds between two looks
BEGINS = 1.8  # after a head was first shown: who goes through the heads, or types, does not wait for it
_SEEN, _FAILED, _BEGUN = (f"attention.over_texts{which}" for which in ("", ".failed", ".begun"))
About = tuple[ModelRef, Kind, int, int]  # a head
Work = tuple[Cached[..., Any], tuple[Any, ...]]
COSTS: Mapping[Way, Message] = {
    "next": N_("Without it the loss of the next token changes by {mean} nats ({low} to {high})."),
    "masked": N_("Without it the loss of a hidden token changes by {mean} nats ({low} to {high})."),
    "vector": N_("Without it the vector of a text turns by {mean} (1 − cosine; {low} to {high})."),
}
NOT_MEASURED = {
    "unreadable": N_("Not measured over other texts: this model cannot read the bundled ones."),
    "large": N_("Not measured over other texts: that takes too long with a model of this size."),
}


@dataclass(frozen=True)
class Look:
    texts: tuple[habits.Tokens, ...]
    heads: habits.Habits
    way: habits.Way | None
    pooling: Pooling
    answers: tuple[Tensor, ...]


@cached
def look(model: ModelRef, kind: Kind) -> Look | Literal["unreadable", "large"]:
    """The habits of the heads over short texts, or why they are not measured."""
    loaded, language = model_cache.checkpoint(model), model_suggestions.language(model)
    texts = habits.short_texts(loaded, bundled_corpus(language).passages) if language else ()
    if not texts:
        return "unreadable"
    if sum(map(len, texts)) * model_cache.n_parameters(model) > MOST_WORK:
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


def is_looked_at(heads: Heads) -> bool:
    """Whether the heads are measured over texts."""
    both, view = heads.subject.shape.architecture == "encoder-decoder", state.view()
    mine = heads.subject.model.is_from_elsewhere and not heads.subject.edited and view.over == "one"
    return mine and (heads.kind == "encoder" or (heads.kind == "decoder" and not both))


def strip(heads: Heads) -> dict[str, Any] | None:
    """The strongest head of each habit, for the small maps; those of the sentence alone until more is known."""
    model, kind = heads.subject.model, heads.kind
    if not is_looked_at(heads):
        return None
    found = look(model, kind) if look.holds(model, kind) else None
    if not isinstance(found, Look):
        return {"texts": 0, "resting": 0, "heads": []}
    strongest = [asdict(one) for one in found.heads.strongest()]
    return {"texts": len(found.texts), "resting": found.heads.resting, "heads": strongest}


@guarded()
def tell(heads: Heads) -> None:
    """The sentence of the head that is shown; what is missing of it is begun, and watched."""
    begun: Work | None = st.session_state.get(_BEGUN)
    if begun is not None and begun[1][0] != heads.subject.model:  # it would keep that model in memory
        LOOKING.leave(*begun, reader())
    if not is_looked_at(heads):
        return
    about = heads.subject.model, heads.kind, state.view().layer, state.view().head
    words, work = said(*about)
    failed = st.session_state.get(_FAILED)
    if work is None:
        _show(words)
    elif failed is not None and failed[0] == work:
        raise failed[1]
    else:
        st.fragment(guarded()(_watch), run_every=POLL)(about, work)


def said(model: ModelRef, kind: Kind, layer: int, head: int) -> tuple[list[str], Work | None]:
    """The sentence, as far as it is known, and what is to be computed next; None where that is all."""
    if not look.holds(model, kind):
        return [_("Measuring over other texts …")], (look, (model, kind))
    found = look(model, kind)
    if isinstance(found, str):
        return [translate(NOT_MEASURED[found])], None
    habit = found.heads.of(layer, head)
    does = _(
        "Over {n} texts this head attends most to: {target}, {share} of its attention ({low} to {high}).",
        n=len(found.texts),
        target=_(ENGLISH[f"strip_{habit.target}"]),
        share=f"{habit.mean:.2f}",
        low=f"{habit.low:.2f}",
        high=f"{habit.high:.2f}",
    )
    if found.way is None:
        return [does], None
    if not cost.holds(model, kind, layer, head):
        return [does, _("Measuring its effect …")], (cost, (model, kind, layer, head))
    costs = cost(model, kind, layer, head)
    form = "{:.3f}" if found.way == "vector" else "{:+.3f}"
    values = {"mean": sum(costs) / len(costs), "low": min(costs), "high": max(costs)}
    texts = {name: form.format(value).replace("-", "−") for name, value in values.items()}
    return [does, translate(Message(COSTS[found.way].text, texts))], None


def _watch(about: About, first: Work) -> None:
    """What is known by now; drawn again and again until there is more, which the small maps show too."""
    words, work = said(*about)
    if work != first and TURNS.idle(QUIET):  # whoever does something else just now is not held up
        st.rerun()
    _show(words)
    if work != first:
        return
    seen = st.session_state.get(_SEEN)
    if seen is None or seen[0] != about:
        st.session_state[_SEEN] = seen = about, time.monotonic()
        return
    try:
        going = LOOKING.look(*first, reader())
    except Exception as error:  # (said here, it would be gone with the next look)
        st.session_state[_FAILED] = first, error
        st.rerun()
    if going is None and time.monotonic() - seen[1] >= BEGINS:
        st.session_state[_BEGUN] = first
        LOOKING.begin(*first, reader())


def _show(words: list[str]) -> None:
    more = _(
        "The texts come with VizFormer, in the language of the model. A share is a mean over the tokens that "
        "have such a key; in brackets the smallest and the largest of a text. “Without it”: the output of "
        "the head is set to 0. For a model with [MASK] every {n}th token is hidden.",
        n=EVERY,
    )
    st.caption(" ".join(words), help=more if len(words) > 1 else None)
