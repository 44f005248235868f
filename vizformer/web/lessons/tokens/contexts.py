"""A laboratory of the lesson Tokens and embeddings: a static vector, and contextual ones in two sentences."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis.heads.pronouns import minimal_pair
from vizformer.analysis.vectors import contextual
from vizformer.analysis.vectors.contextual import Contexts, SenseGap, sense_gap
from vizformer.analysis.vectors.embeddings import WordVectors, plain_words, read_word_vectors
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.figures.embeddings import Curve
from vizformer.model import Trace
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject, generated
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson, model_suggestions, watched_work
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.widgets.model_input import ask_other_sentence
from vizformer.web.words import labels
from vizformer.word_tables import data_of

# Sentences of the lesson Tokens and embeddings that use one token in two senses, or share tokens with the reader's.


@dataclass(frozen=True)
class Occasion:
    """Sentences that use one token in two senses: the first and the second differ, the third is as the first."""

    token: str
    first: str
    second: str
    third: str


_DATA = data_of(__file__)
OCCASIONS = tuple(Occasion(**one) for one in _DATA["occasions"])
FRAMES = {token: tuple(sentences) for token, sentences in _DATA["frames"].items()}  # the same in two senses
OTHERS: tuple[str, ...] = tuple(_DATA["others"])  # for a sentence of the reader's: the one that shares most with it


@cached
def occasions(model: ModelRef) -> tuple[Occasion, ...]:
    """The examples that the model can read: not where it takes few tokens, or came without a tokenizer."""
    return tuple(o for o in OCCASIONS if all(model_cache.reads(model, text) for text in (o.first, o.second, o.third)))


def beside(subject: Subject) -> tuple[str, str]:
    """A second and a third sentence to hold against the first: of the examples, or the one that shares most with it."""
    for occasion in occasions(subject.model):
        if occasion.first == subject.text.strip():
            return occasion.second, occasion.third
    return _fitting(subject.model, subject.text), ""


@cached
def _fitting(model: ModelRef, text: str) -> str:
    """The sentence that shares most words with the text; where none can be read, the text's own words turned round.

    Words with which both begin do not count: what a decoder makes of them is the same in both.
    """
    tokenizer = model_cache.checkpoint(model).tokenizer_of("encoder")
    others = [other for other in OTHERS if other != text.strip() and model_cache.reads(model, other)]
    if not others:
        turned = " ".join(reversed(text.split()))
        return turned if turned != text.strip() and model_cache.reads(model, turned) else ""

    def words(sentence: str) -> list[int]:
        return [token.id for token in tokenizer.encode(sentence, special=False) if token.text[:1].isalnum()]

    own = words(text)

    def shared(other: str) -> int:
        theirs = words(other)
        begun = next((i for i, (one, two) in enumerate(zip(own, theirs, strict=False)) if one != two), len(theirs))
        return len(set(own[begun:]) & set(theirs[begun:]))

    return max(others, key=shared)


lab = Laboratory("tokens", "context")
FRAMED, LENGTH = 2 * sum(map(len, FRAMES.values())), 16  # sentences of all frames, and tokens of one, about
NEAREST, KNOWN = 8, ("cat", "猫")  # words in the picture of static vectors; shown where the table lacks the token
RARE, CLEAR = 0.05, 0.1  # chance below which it is hardly luck; share from which the senses are told apart
# One row for the layers' input and one after each layer; the last cosine is the one of the formula.
CODE = (
    "same = F.cosine_similarity(x_A, x_B, dim=-1)  # [layers + 1, d_model] each: the last one is after the last layer"
)


def _reading(model: ModelRef, text: str) -> Trace:
    # Only what the encoder makes of it is compared, and that knows nothing of the target: any short one will do.
    target = text.split()[0] if model_cache.reads_target(model) else ""
    return Subject(model, text, target).trace


@cached
def static_vectors() -> WordVectors:
    return read_word_vectors(asset("lessons", "tokens", "word_vectors.safetensors"))


@cached
def shared(model: ModelRef, first: str, second: str) -> tuple[tuple[int, int], ...]:
    """Places of the same token in two texts."""
    return contextual.shared(_reading(model, first), _reading(model, second)) if second else ()


@cached
def compared(model: ModelRef, first: str, second: str, i: int, j: int) -> Contexts:
    """A token of one text beside one of another, from the table through every layer."""
    return contextual.contexts(model_cache.checkpoint(model), _reading(model, first), _reading(model, second), i, j)


@cached
def sense_gaps(model: ModelRef) -> dict[str, SenseGap]:
    """The sense gap of each word whose sentences the model can read."""
    framed = {
        token: frames
        for token, frames in FRAMES.items()
        if all(model_cache.reads(model, one.text) for written in frames for one in minimal_pair(written))
    }
    heard, numbers, n = HEARD.get(), count(), 2 * sum(map(len, framed.values()))

    def read(text: str) -> Trace:
        if heard is not None:
            heard(next(numbers), n)
        return _reading(model, text)

    return {token: sense_gap(read, frames) for token, frames in framed.items()}


@cached
def translated(model: ModelRef, text: str) -> str:
    """The translation of a text."""
    subject = Subject(model, text, "")
    return subject.checkpoint.tokenizer.decode(list(generated(subject).ids)).strip()


@lab.draws
def draw_token_contexts(subject: Subject) -> None:
    _examples(subject)
    defaults = beside(subject)
    second = ask_other_sentence(lab.text("second"), "second", defaults[0], subject.text)
    third = ask_other_sentence(lab.text("third"), "third", defaults[1], subject.text)
    places, again = (dict(shared(subject.model, subject.text, other)) for other in (second, third))
    if not places:
        st.info(lab.text("nothing"))
        return
    tokens = subject.tokens
    i = st.selectbox(
        lab.text("both"),
        list(places),
        index=list(places).index(_expected(subject, places)),
        format_func=labels.numbered(tokens).__getitem__,
        key=f"tokens.both.{subject.model}.{subject.text}.{second}",
    )
    found = compared(subject.model, subject.text, second, i, places[i])
    lesson.ask(token_contexts_question(subject, second, i), folded=True)  # first: the curves below give it away
    curves = [Curve(lab.text("curve.second"), found.curve)]
    if i in again:
        control = compared(subject.model, subject.text, third, i, again[i])
        curves.append(Curve(lab.text("curve.third"), control.curve))
    left, right = st.columns(2)
    _static(tokens[i].text, left)
    chart.show(
        figures.similarity_curves(
            curves,
            found.other,
            found.low,
            found.high,
            added=subject.config.positions in ("sinusoidal", "learned"),
            title=lab.text("picture", token=tokens[i].text),
        ),
        key="tokens.curves",
        on=right,
    )
    last, same, other = len(found.same) - 2, f"{found.same[-1]:.4f}", f"{found.other[-1]:.4f}"
    form = "pairs" if found.others else "alone"
    lab.say("cosine", form=form, layer=last, same=same, other=other, pairs=found.others)
    causal = subject.config.architecture == "decoder-only"
    if causal:
        st.info(lab.text("causal"))
        model_suggestions.offer(reads_both_sides, "tokens")
    lesson.formula(
        r"\cos\left(x^{A}_{l,i},\ x^{B}_{l,j}\right)",
        live=rf"\cos\left(x^{{A}}_{{{last},{i}}},\ x^{{B}}_{{{last},{places[i]}}}\right) = {same}",
        code=CODE,
        given={"x_A": found.first, "x_B": found.second},
    )
    lesson.ask(static(subject))
    if lab.toggle("senses"):
        gaps = watched_work.bounded(
            sense_gaps,
            (subject.model,),
            cost=watched_work.cost(subject, FRAMED, LENGTH),
            too_long=lab.text("large"),
            runs=FRAMED,
            begin=lab.text("measure"),
            key="tokens.senses.measure",
        )
        if gaps is not None:
            _senses(subject, gaps)


@lab.asks("context")
def token_contexts_question(subject: Subject, second: str = "", at: int | None = None) -> lesson.Choice | None:
    second = second or beside(subject)[0]
    places = dict(shared(subject.model, subject.text, second))
    if not places:
        return None
    i = _expected(subject, places) if at is None else at
    found = compared(subject.model, subject.text, second, i, places[i])
    if not found.others:  # there is nothing that the cosine could be held against
        return None
    right = "exactly" if found.identical else "closer" if found.same[-1] > found.high[-1] else "unlike"
    causal = subject.config.architecture == "decoder-only"
    values = {
        "form": "causal" if found.identical and causal else "measured",
        "token": subject.tokens[i].text,
        "same": f"{found.same[-1]:.4f}",
        "other": f"{found.other[-1]:.4f}",
    }
    return lab.choice(
        "context", ("exactly", "closer", "unlike"), right, subject.model, subject.text, second, i, **values
    )


@lab.asks("static")
def static(subject: Subject) -> lesson.Choice:
    return lab.choice("static", ("one", "two", "many"), "one", subject.model)


def _static(token: str, place: DeltaGenerator) -> None:
    """The words whose static vectors are nearest to that of a token: the same in every sentence."""
    found = static_vectors()
    words = [word for word in plain_words(token) if word in found.rows]
    word = words[0] if words else KNOWN[not token.isascii()]
    near = found.nearest(word, NEAREST)
    names, cosines = [name for name, __ in near], np.array([cosine for __, cosine in near])
    title = lab.text("nearest", token=word)
    chart.show(figures.neighbour_bars(names, cosines, found.average, title=title), key="tokens.static", on=place)
    with place:
        if not words:
            lab.note("unknown", token=token, word=word)
        lab.note("learned", count=len(found.words), width=found.unit.shape[1])


def _examples(subject: Subject) -> None:
    """Sentences with a token of two senses, to be taken."""
    if found := occasions(subject.model):
        with st.popover(lab.text("examples")):
            lab.note("take")
            for one in found:
                key, taken = f"tokens.take.{one.token}", subject.text == one.first
                if presses.button(one.token, help=one.first, key=key, disabled=taken):
                    state.update(text=one.first)
                    st.rerun()  # the whole page, not this fragment alone


def _expected(subject: Subject, places: dict[int, int]) -> int:
    """The shared token to begin with: that of the example, or the rarest word (learned last: it has the largest id)."""
    tokens = subject.tokens
    wanted = [one.token for one in OCCASIONS if one.first == subject.text.strip()]
    return max(places, key=lambda i: (tokens[i].text in wanted, tokens[i].text[:1].isalnum(), tokens[i].id))


def _senses(subject: Subject, found: dict[str, SenseGap]) -> None:
    """Does the model tell the senses apart?  A table of the words that it can read in frames."""
    if not found:
        st.info(lab.text("large"))
        return
    rows = []
    for token, gap in found.items():
        same, different, chance, share = (float(of[-1]) for of in (gap.same, gap.different, gap.chance, gap.share))
        apart = chance <= RARE and share >= CLEAR
        cosines, said = numbers(".3f", same, different), lab.text("apart", form="yes" if apart else "no")
        shares = Number(share, labels.percent(max(share, 0.0))), Number(chance, labels.percent(chance))
        both = (
            [" / ".join(translated(subject.model, one.text) for one in gap.sentences[0])]
            if subject.writes_its_target
            else []
        )
        rows.append(Row(token, *cosines, *shares, said, *both, kind="marked" if apart else ""))
    columns = lab.columns(
        "token", "same", "two", "share", "chance", "apart", *["translated"] * subject.writes_its_target
    )
    caption = lab.text("measured", n=len(gap.sentences))
    st.html(table.style() + table.to_html(list(columns), rows, caption=caption))
    lab.note("frame", clear=labels.percent(CLEAR))
    with st.expander(lab.text("frames")):
        bare = str.maketrans("", "", "[]{}")
        st.text("\n".join(f"{token}: {' · '.join(FRAMES[token])}".translate(bare) for token in found))
    if subject.config.architecture == "decoder-only":
        st.info(lab.text("after"))


def reads_both_sides(model: ModelRef) -> bool:
    """Whether a vector of the model depends on what follows its token as well."""
    return model_cache.shape(model).architecture == "encoder-only"
