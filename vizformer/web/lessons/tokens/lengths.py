"""Lengths, in the lesson Tokens and embeddings: what is added up before the first layer, and the factor sqrt(d_model)."""

import math
from collections.abc import Mapping

import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors.embeddings import Norms
from vizformer.config import ModelConfig
from vizformer.explain.snippets import Given
from vizformer.figures.embeddings import ENGLISH
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

SOME = 64  # tokens whose ids are written into the code


@laboratory
def norms(subject: Subject) -> None:
    """How long the token and the position vectors are, with and without the factor sqrt(d_model)."""
    config = subject.config
    tokens = subject.tokens
    found = computations.norms(subject.model, tuple(token.id for token in tokens))
    if found.positions is None:
        lesson.ask(longest_question(subject, found), folded=True)
    else:
        lesson.ask(forgotten_question(subject, found))
    st.toggle(
        _("Multiply the token vectors by {factor}", factor=r"$\sqrt{d_\text{model}}$"),
        **lesson.setting("tokens.scale", found.scaled),
    )
    scaled = lesson.value("tokens.scale", found.scaled)
    lengths = found.entering(scaled)
    chart.show(
        figures.norm_bars(
            labels.texts(tokens),
            lengths,
            found.positions,
            title=_("What is added up before layer 0"),
            words=words(ENGLISH),
        ),
        key="tokens.norms",
    )
    st.caption(
        _("This model was trained with the factor.")
        if found.scaled
        else _("This model was trained without the factor.")
    )
    if found.positions is None:
        st.info(
            _(
                "This model adds no position vectors (it uses {positions}): there is nothing that the token vectors "
                "could be too short for. zh-en adds waves, cloze a learned table.",
                positions=labels.places(config),
            )
        )
    else:
        token, position, share = found.compared(scaled)
        st.text(
            _(
                "Average length: tokens {token}, positions {position}. Positions make up {share} of the squared length.",
                token=f"{token:.2f}",
                position=f"{position:.2f}",
                share=labels.percent(share),
            )
        )
    if scaled != found.scaled and config.architecture != "encoder-only" and model_cache.predicts(subject.model):
        both = {
            flag: computations.written(subject.model, subject.text, flag) for flag in (found.scaled, not found.scaled)
        }
        with st.container(border=True):
            st.caption(_("What the trained model writes as it was trained"))
            st.text(both[found.scaled])
            st.caption(_("and with the factor switched, all weights as they are"))
            st.text(both[not found.scaled])
    formula_of_lengths(config, scaled, computations.added(subject.model, tuple(token.id for token in tokens[:SOME])))
    if config.n_segments or config.embedding_norm:
        st.caption(
            _("In this model a segment vector, the same for the whole sentence, is added as well, and a norm follows.")
        )


def formula_of_lengths(config: ModelConfig, scaled: bool, given: Mapping[str, Given]) -> None:
    """What enters the first layer, as this model computes it with the factor as it is switched."""
    positions, d_model = config.positions, config.d_model
    root = math.sqrt(d_model)
    symbols, live = r"x_0 = ", []
    if scaled:
        symbols += r"\sqrt{d_\text{model}}\; "
        live.append(rf"\sqrt{{{d_model}}} = {root:.2f}")
    if config.embedding_scale != 1:
        symbols += rf"{config.embedding_scale:g}\; "
    symbols += r"E_\text{id}"
    projected = config.embedding_projection == "tokens"
    symbols += r"\, W" if projected else ""
    if positions in ("sinusoidal", "learned"):
        symbols += r" + P_\text{pos}"
    if positions == "sinusoidal":
        symbols += r" \\ \lVert P_\text{pos} \rVert = \sqrt{d_\text{model} / 2}"
        live.append(rf"\sqrt{{{d_model} / 2}} = {root / math.sqrt(2):.2f}")
    symbols = rf"\begin{{gathered}} {symbols} \end{{gathered}}"  # one below the other: both fit a phone
    lesson.formula(
        symbols,
        live=r",\quad ".join(live),
        code=input_code(positions, scaled, config.embedding_scale, projected=projected),
        given=given,
    )


def input_code(positions: str, scaled: bool, times: float = 1.0, *, projected: bool = False) -> str:
    """The line that computes what is added up before the first layer."""
    added = " + P" if positions in ("sinusoidal", "learned") else ""
    factors = (" * d_model**0.5" if scaled else "") + ("" if times == 1 else f" * {times!r}")
    return f"x_0 = E[ids]{factors}{' @ W' if projected else ''}{added}"


def forgotten_question(subject: Subject, found: Norms) -> lesson.Choice:
    """How much of what is added up would be positions with the factor the other way round?"""
    token, position, share = found.compared(not found.scaled)
    shares = [_("less than a tenth"), _("between a tenth and a half"), _("between a half and nine tenths")]
    choices = [*shares, _("more than nine tenths")]
    return lesson.Choice(
        "tokens",
        "lengths",
        _(
            "This model multiplies the rows of its tokens by √d_model = {factor} before it adds the positions. If that is "
            "forgotten, how much of the squared length of what enters do the positions make up?",
            factor=f"{found.factor:g}",
        )
        if found.scaled
        else _(
            "This model adds the positions to the rows of its tokens as they are. If the rows were multiplied by √d_model = "
            "{factor} before that, how much of the squared length of what enters would the positions make up?",
            factor=f"{found.factor:g}",
        ),
        choices,
        sum(share >= border for border in (0.1, 0.5, 0.9)),
        _(
            "{share}: the tokens would have a length of {token} on average, the positions of {position}. Switch the factor "
            "below and see.",
            share=labels.percent(share),
            token=f"{token:.2f}",
            position=f"{position:.2f}",
        ),
        about=f"{subject.model} {subject.text}",
    )


def longest_question(subject: Subject, found: Norms) -> lesson.Choice | None:
    """Where no positions are added: which token has the longest row?"""
    tokens, lengths = subject.tokens, found.tokens.tolist()
    order = sorted(range(len(tokens)), key=lambda i: -lengths[i])
    once = list({tokens[place].id: place for place in reversed(order)}.values())[::-1]  # longest first, each token once
    places = sorted({*once[:2], *once[-2:]})
    if len(places) < 2:
        return None
    names = labels.numbered(tokens)
    return lesson.Choice(
        "tokens",
        "lengths",
        _("Which of these tokens has the longest row in the table?"),
        [names[place] for place in places],
        places.index(once[0]),
        _(
            "The lengths: {lengths}. They are learned, like every other number of the table.",
            lengths=", ".join(f"{names[place]}: {lengths[place]:.2f}" for place in places),
        ),
        about=f"{subject.model} {subject.text}",
    )
