"""What is said of a head of the kind that is looked at: what it does over other texts, and why it attends there."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st
from torch import Tensor

from vizformer import figures
from vizformer.analysis import Kind, ScoreSplit, SignedRole, Writer, circuits, score_split, site_name, writer_tokens
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.causes.ablation import Part, edit_without
from vizformer.analysis.corpus_heads import bundled_corpus, habits
from vizformer.analysis.corpus_heads.habits import EVERY, Way
from vizformer.analysis.corpus_heads.one_text import run
from vizformer.analysis.scores.score_writers import Side
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling, sentence_pooling
from vizformer.components.attention import ENGLISH, ByWord
from vizformer.errors import TraceError, VizformerError
from vizformer.messages import N_, Message
from vizformer.text import Token
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import Cached, cached
from vizformer.web.catalogue.long_work import HEARD, LongWork
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_model
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.turns import TURNS
from vizformer.web.widgets import chart, map_words, model_suggestions, proof_badge
from vizformer.web.widgets.in_python import opening
from vizformer.web.widgets.laboratories import folded
from vizformer.web.widgets.watched_work import reader
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_info, show_markdown, show_note, translate
from vizformer.web.words.part_names import part_name, role_or_none, role_said


@dataclass(frozen=True)
class Heads:
    """The heads of the chosen kind of attention, and the tokens between which they attend."""

    subject: Subject
    kind: Kind
    shape: tuple[int, int, int, int]  # layers, heads, queries, keys
    queries: Sequence[Token]
    keys: Sequence[Token]

    @property
    def query_tokens(self) -> list[str]:
        if state.view().level == "words" and state.view().picture == "map":
            return labels.texts(self.queries)  # a word of several rows has no one token that it chooses
        return map_words.queries(self.subject, self.kind)

    @property
    def by_word(self) -> ByWord | None:
        """The words of queries and keys, where the reader wants words."""
        if state.view().level != "words":
            return None
        return [token.word for token in self.queries], [token.word for token in self.keys]

    @property
    def key_tokens(self) -> list[str]:
        return labels.texts(self.keys)


# What the head that is shown does over a few short texts, and what taking it out costs: a sentence that comes later.
#
# Only of models that a reader opened.  The picture comes first: nothing is begun before it was looked at for a while.

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
    loaded, language = model_cache.checkpoint(model), model_suggestions.language_of(model)
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
        return {"texts": 0, "resting": 0, "heads": [], "waits": found is None}
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
        _show_sentence(words)
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
    _show_sentence(words)
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


def _show_sentence(words: list[str]) -> None:
    more = _(
        "The texts come with VizFormer, in the language of the model. A share is a mean over the tokens that "
        "have such a key; in brackets the smallest and the largest of a text. “Without it”: the output of "
        "the head is set to 0. For a model with [MASK] every {n}th token is hidden.",
        n=EVERY,
    )
    st.caption(" ".join(words), help=more if len(words) > 1 else None)


# Why a head looks there: the score of one query and key as a sum over what was written into their rows.

BARS, FOLLOWED, TOKENS, READ = 8, 3, 3, 5
_LONGEST = 512  # tokens: the mean over keys asks for a way back from each


@cached
def split_of(subject: Subject, site: str, head: int, query: int, key: int) -> ScoreSplit:
    return score_split(subject.checkpoint, subject.trace, site, head, query, key, against_mean=True)


@cached
def came_from(subject: Subject, at: tuple[str, int, int, int], side: Side, writer: Writer) -> np.ndarray:
    return writer_tokens(subject.checkpoint, subject.trace, split_of(subject, *at), side, writer)


token_scores = of_model(circuits.token_scores)


@cached
def role_of(subject: Subject, site: str, head: int) -> SignedRole | None:
    return role_or_none(subject.checkpoint, [subject.trace], site, head)


def draw_reasons(here: Heads) -> None:
    view = state.view()
    query = view.query_of(here.queries)
    if max(len(here.queries), len(here.keys)) > _LONGEST:
        return
    with folded(_("Why does this head attend there?"), key="attention.why") as is_open:
        if is_open:
            guarded()(_draw_score_reasons)(here, site_name(here.kind, view.layer), view.head, query)


def _draw_score_reasons(here: Heads, site: str, head: int, query: int) -> None:
    subject, record = here.subject, here.subject.trace[site]
    weights = record.pattern(head)[query].float().cpu().numpy()
    key = state.view().key
    key = int(weights.argmax()) if key is None else key
    if record.reason(head)[query, key]:
        show_info("The mask blocks this key, whatever the score. Choose another one.")
        return
    split = split_of(subject, site, head, query, key)
    asks, answers = here.queries[query].text, here.keys[key].text
    show_markdown(
        "“{query}” gives “{key}” a weight of **{weight}**: its score is **{score}** above the mean of the "
        "keys that it sees. This is a sum over all parts that wrote into the two rows, of the query and of "
        "the key:",
        query=asks,
        key=answers,
        weight=f"{weights[key]:.3f}",
        score=f"{split.score:.3f}".replace("-", "−"),
    )
    texts = {"logit_share": _("share of the score")}
    sides: tuple[tuple[Side, str], ...] = (
        ("query", _("In the query “{token}”", token=asks)),
        ("key", _("In the key “{token}”", token=answers)),
    )
    for column, (side, title) in zip(st.columns(2), sides, strict=True):
        names, values = _bars(subject, split, side, asks if side == "query" else answers)
        with column:
            chart.show(figures.logit_terms(names, values, title=title, words=texts), key=f"attention.why.{side}")
    for said in _chains(here, split):
        st.text(said)
    for said in _by_weights(here, split):
        st.text(said)
    done = role_of(subject, site, head) if model_cache.predicts(subject.model) else None
    if done is not None:
        st.text(role_said(done))
    proof_badge.show(split.proof, edited=bool(subject.edited))
    show_note(
        "The divisors of norms are kept. These are shares of a sum, not effects: without a part, later "
        "layers would change too."
    )
    call = f"vf.analysis.score_split(checkpoint, trace, {site!r}, {head}, {query}, {key}, against_mean=True)"
    st.code(
        "\n".join([*opening(subject), f"split = {call}", "print(split.score, split.ranked[:5])"]), language="python"
    )


def _bars(subject: Subject, split: ScoreSplit, side: Side, token: str) -> tuple[list[str], np.ndarray]:
    """The largest writers of a side, each with all of the other side, and the others as one."""
    writers, shares = split.queries if side == "query" else split.keys, split.of(side)
    order = np.argsort(-np.abs(shares), kind="stable")
    names = [_name(subject, split, writers[i], token) for i in order[:BARS]]
    values = [float(shares[i]) for i in order[:BARS]]
    if len(order) > BARS:
        names.append(_("{n} others together", n=len(order) - BARS))
        values.append(float(shares[order[BARS:]].sum()))
    if split.position:
        names.append(_("what is added for the distance"))
        values.append(split.position)
    return names, np.array(values)


def _name(subject: Subject, split: ScoreSplit, writer: Writer, token: str) -> str:
    if writer.place == split.site:
        return _("bias of the queries and keys")
    return part_name(subject.config, writer.part, writer.place, writer.head, token)


def _chains(here: Heads, split: ScoreSplit) -> Iterator[str]:
    """The heads among the strongest writers: from which tokens they took what they wrote."""
    sides: tuple[tuple[Side, tuple[Writer, ...]], ...] = (("query", split.queries), ("key", split.keys))
    found = [
        (float(split.of(side)[index]), side, writer)
        for side, writers in sides
        for index, writer in enumerate(writers)
        if writer.head is not None
    ]
    at = split.site, split.head, split.query, split.key
    for share, side, writer in sorted(found, key=lambda one: -abs(one[0]))[:FOLLOWED]:
        shares = came_from(here.subject, at, side, writer)
        stack, __, kind = writer.place.split(".")
        read = here.subject.trace.tokens["encoder" if kind == "cross" else stack]
        best = sorted(range(len(shares)), key=lambda i: -abs(shares[i]))[:TOKENS]
        tokens = labels.texts(read)
        row = here.queries[split.query].text if side == "query" else here.keys[split.key].text
        yield _(
            "The output of {writer} in “{row}” contributes {share} to the score, mostly from {tokens}.",
            writer=_name(here.subject, split, writer, row),
            row=row,
            share=f"{share:+.3f}".replace("-", "−"),
            tokens=_("; ").join(
                _("“{token}” {value}", token=tokens[i], value=f"{shares[i]:+.3f}".replace("-", "−")) for i in best
            ),
        )


def _by_weights(here: Heads, split: ScoreSplit) -> Iterator[str]:
    """What the weights alone say of the two tokens: which keys the query likes, and what the head says of the key."""
    subject, layer = here.subject, state.view().layer
    stack = predicting_stack(subject.checkpoint)
    if here.kind != stack:
        return
    query, key = here.queries[split.query], here.keys[split.key]
    try:
        likes = token_scores(subject.model, "qk", layer, split.head, query.id, split.query - split.key)
        writes = token_scores(subject.model, "ov", layer, split.head, key.id)
    except TraceError:  # a head that no one matrix describes
        return
    tokenizer = subject.checkpoint.tokenizer_of(stack)

    def listed(scores: np.ndarray) -> str:
        best = [int(at) for at in np.argsort(-scores, kind="stable")[:READ]]
        return _("; ").join(_("“{token}”", token=token.text) for token in tokenizer.tokens(best))

    def place(scores: np.ndarray, id: int) -> str:
        return _("{n} of {of}", n=f"{1 + int((scores > scores[id]).sum()):,}", of=f"{len(scores):,}")

    yield _(
        "By its weights alone, with embeddings as rows: the query “{query}” has the largest scores for "
        "{tokens}; “{key}” has rank {place}.",
        query=query.text,
        key=key.text,
        tokens=listed(likes),
        place=place(likes, key.id),
    )
    if model_cache.predicts(subject.model):
        yield _(
            "If the head attends to “{key}”, it raises the logits of {tokens} most and lowers those of "
            "{lowered} most; “{key}” itself has rank {place}.",
            key=key.text,
            tokens=listed(writes),
            lowered=listed(-writes),
            place=place(writes, key.id),
        )
