"""Lengths, in the lesson Tokens and embeddings: what is added up before the first layer, and the factor sqrt(d_model)."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from vizformer import figures
from vizformer.config import ModelConfig
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computed
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.explain.snippet import Given

SOME = 64  # tokens whose ids are written into the code


@laboratory
def norms(subject: Subject) -> None:
    """How long the token and the position vectors are, with and without the factor sqrt(d_model)."""
    from vizformer.figures.embeddings import ENGLISH  # as above

    config = subject.config
    tokens = subject.tokens
    found = computed.norms(subject.model, tuple(token.id for token in tokens))
    st.toggle(
        _("Multiply the token vectors by {factor}", factor=r"$\sqrt{d_\text{model}}$"),
        **lesson.setting("tokens.scale", found.scaled),
    )
    scaled = lesson.value("tokens.scale", found.scaled)
    lengths = found.entering(scaled)
    st.caption(
        _("This model was trained with the factor.")
        if found.scaled
        else _("This model was trained without the factor.")
    )
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
    if found.positions is None:
        st.info(
            _(
                "This model adds no position vectors (it uses {positions}): there is nothing that the token vectors "
                "could be too short for. zh-en adds waves, cloze a learned table.",
                positions=labels.positions(config.positions),
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
        both = {flag: computed.written(subject.model, subject.text, flag) for flag in (found.scaled, not found.scaled)}
        with st.container(border=True):
            st.caption(_("What the trained model writes as it was trained"))
            st.text(both[found.scaled])
            st.caption(_("and with the factor switched, all weights as they are"))
            st.text(both[not found.scaled])
    formula_of_lengths(config, scaled, computed.added(subject.model, tuple(token.id for token in tokens[:SOME])))
    if config.n_segments or config.embedding_norm:
        st.caption(
            _("In this model a segment vector, the same for the whole sentence, is added as well, and a norm follows.")
        )


def formula_of_lengths(config: ModelConfig, scaled: bool, given: "Mapping[str, Given]") -> None:
    """What enters the first layer, as this model computes it with the factor as it is switched."""
    positions, d_model = config.positions, config.d_model
    root = math.sqrt(d_model)
    symbols, live = r"x_0 = ", []
    if scaled:
        symbols += r"\sqrt{d_\text{model}}\; "
        live.append(rf"\sqrt{{{d_model}}} = {root:.2f}")
    symbols += r"E_\text{id}"
    if positions in ("sinusoidal", "learned"):
        symbols += r" + P_\text{pos}"
    if positions == "sinusoidal":
        symbols += r" \\ \lVert P_\text{pos} \rVert = \sqrt{d_\text{model} / 2}"
        live.append(rf"\sqrt{{{d_model} / 2}} = {root / math.sqrt(2):.2f}")
    symbols = rf"\begin{{gathered}} {symbols} \end{{gathered}}"  # one below the other: both fit a phone
    lesson.formula(symbols, live=r",\quad ".join(live), code=input_code(positions, scaled), given=given)


def input_code(positions: str, scaled: bool) -> str:
    """The line that computes what is added up before the first layer."""
    added = " + P" if positions in ("sinusoidal", "learned") else ""
    return f"x_0 = E[ids]{' * d_model**0.5' if scaled else ''}{added}"
