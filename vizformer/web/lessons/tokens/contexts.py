"""How the lesson Tokens and embeddings draws one token in several sentences, from the table through every layer."""

import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors.contextual import Contexts
from vizformer.figures.embeddings import ENGLISH, Curve
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.lessons.tokens import computations
from vizformer.web.lessons.tokens.sense_table import senses_in_frames
from vizformer.web.lessons.tokens.sentences import OCCASIONS
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson, model_suggestions
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.other_sentence import other_sentence
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

# One row for the layers' input and one after each layer; the last cosine is the one of the formula.
CODE = (
    "same = F.cosine_similarity(x_A, x_B, dim=-1)  # [layers + 1, d_model] each: the last one is after the last layer"
)


@laboratory
def context(subject: Subject) -> None:
    """One token in two sentences and in a third, from the table through every layer."""
    if occasions := computations.occasions(subject.model):
        with st.popover(_("Examples")):
            st.caption(_("The first sentence becomes the sentence of the page."))
            for occasion in occasions:
                if presses.button(
                    occasion.token,
                    help=occasion.first,
                    key=f"tokens.take.{occasion.token}",
                    disabled=subject.text == occasion.first,
                ):
                    state.update(text=occasion.first)
                    st.rerun()  # the whole page, not this fragment alone
    defaults = computations.seconds(subject)
    second = other_sentence(_("Second sentence"), "second", defaults[0], subject.text)
    third = other_sentence(_("Third: the same sense as the first"), "third", defaults[1], subject.text)
    pairs = computations.shared(subject.model, subject.text, second) if second else ()
    if not pairs:
        st.info(_("The two sentences have no token in common. Write a second one that uses a word of the first."))
        return
    tokens = subject.tokens
    names = {i: f"{i} · {tokens[i].text}" for i, __ in pairs}
    i = st.selectbox(
        _("Token in both"),
        list(names),
        index=list(names).index(expected(subject, pairs)),
        format_func=names.__getitem__,
        key=f"tokens.both.{subject.model}.{subject.text}.{second}",
    )
    j = dict(pairs)[i]
    found = computations.contexts(subject.model, subject.text, second, i, j)
    if found.others:  # else there is nothing that the cosine could be held against
        lesson.ask(context_question(subject, second, i, found))
    curves = [(_("first and second"), found)]
    if third and (again := dict(computations.shared(subject.model, subject.text, third))).get(i) is not None:
        control = computations.contexts(subject.model, subject.text, third, i, again[i])
        curves.append((_("first and third"), control))
    chart.show(
        figures.similarity_curves(
            [Curve(name, one.curve) for name, one in curves],
            found.other,
            found.low,
            found.high,
            added=subject.config.positions in ("sinusoidal", "learned"),
            title=_("“{token}” in two sentences", token=tokens[i].text),
            words=words(ENGLISH),
        ),
        key="tokens.curves",
    )
    last = len(found.same) - 2
    st.text(
        _(
            "After layer {layer}: cosine {same}; two different tokens have {other} on average ({pairs} pairs).",
            layer=last,
            same=f"{found.same[-1]:.4f}",
            other=f"{found.other[-1]:.4f}",
            pairs=found.others,
        )
        if found.others
        else _(
            "After layer {layer}: cosine {same}. The two sentences have no different tokens to compare it with.",
            layer=last,
            same=f"{found.same[-1]:.4f}",
        )
    )
    if subject.config.architecture == "decoder-only":
        st.info(
            _(
                "This model reads from left to right: a vector depends on what stands before its token, never on what "
                "follows. Where two sentences begin alike, the vectors are exactly the same, but for rounding."
            )
        )
        model_suggestions.offer(reads_both_sides, "tokens")
    lesson.formula(
        r"\cos\left(x^{A}_{l,i},\ x^{B}_{l,j}\right)",
        live=rf"\cos\left(x^{{A}}_{{{last},{i}}},\ x^{{B}}_{{{last},{j}}}\right) = {found.same[-1]:.4f}",
        code=CODE,
        given={"x_A": found.first, "x_B": found.second},
    )
    senses_in_frames(subject)


def expected(subject: Subject, pairs: tuple[tuple[int, int], ...]) -> int:
    """The shared token to begin with: that of the example, or the rarest word (learned last: it has the largest id)."""
    tokens = subject.tokens
    wanted = [occasion.token for occasion in OCCASIONS if occasion.first == subject.text.strip()]
    return max(
        (i for i, __ in pairs), key=lambda i: (tokens[i].text in wanted, tokens[i].text[:1].isalnum(), tokens[i].id)
    )


def context_question(subject: Subject, second: str, i: int, found: Contexts) -> lesson.Choice:
    """Whether one layer is enough to make the vectors of one token differ."""
    choices = [
        _("Exactly the same, but for rounding"),
        _("Different, but still closer than two different tokens are"),
        _("No closer than two different tokens are"),
    ]
    token = subject.tokens[i].text
    same, other = float(found.same[-1]), float(found.other[-1])
    exactly = found.identical
    answer = 0 if exactly else 1 if same > found.high[-1] else 2
    causal = subject.config.architecture == "decoder-only"
    if exactly and causal:
        why = _("Everything up to this token is the same in both sentences, and this model sees nothing else.")
    else:
        why = _(
            "The cosine is {same} after the last layer; two different tokens have {other} on average.",
            same=f"{same:.4f}",
            other=f"{other:.4f}",
        )
    return lesson.Choice(
        "tokens",
        "context",
        _(
            "The token “{token}” has one row in the table, so it enters both sentences with the same vector (positions "
            "aside). And after the last layer?",
            token=token,
        ),
        choices,
        answer,
        why,
        about=f"{subject.model}.{subject.text}.{second}.{i}",
    )


def reads_both_sides(model: ModelRef) -> bool:
    return model_cache.options(model).architecture == "encoder-only"
