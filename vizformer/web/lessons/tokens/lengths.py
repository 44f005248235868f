"""A laboratory of the lesson Tokens and embeddings: what is added up before the first layer, and sqrt(d_model)."""

import math
from collections.abc import Mapping

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors import embeddings
from vizformer.analysis.vectors.embeddings import Norms
from vizformer.config import ModelConfig
from vizformer.explain.snippets import Given
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, wrong_line
from vizformer.web.words import labels

lab = Laboratory("tokens", "norms")
SOME = 64  # tokens whose ids are written into the code
TRIED = 12  # tokens that a model generates with the factor switched
BORDERS = {"tenth": 0.0, "half": 0.1, "nine": 0.5, "more": 0.9}  # of the shares that are to choose from


@cached
def norms(model: ModelRef, ids: tuple[int, ...]) -> Norms:
    """How long the vectors of the tokens and of their positions are."""
    return embeddings.norms(model_cache.checkpoint(model), np.array(ids))


@cached
def written(model: ModelRef, text: str, scaled: bool) -> str:
    """The first tokens that the model generates for the text with or without the factor sqrt(d_model)."""
    return embeddings.with_scale(model_cache.checkpoint(model), scaled).generate(text, max_new=TRIED).text


@lab.draws
def draw_vector_lengths(subject: Subject) -> None:
    model, config, tokens = subject.model, subject.config, subject.tokens
    ids = tuple(token.id for token in tokens)
    found = norms(model, ids)
    lesson.ask(vector_lengths_question(subject), folded=found.positions is None)
    scaled = lab.toggle("scale", found.scaled, factor=r"$\sqrt{d_\text{model}}$")
    chart.show(
        figures.norm_bars(labels.texts(tokens), found.entering(scaled), found.positions, title=lab.text("picture")),
        key="tokens.norms",
    )
    lab.note("trained", form="scaled" if found.scaled else "plain")
    if found.positions is None:
        st.info(lab.text("none"))
    else:
        lab.say("average", **_compared(found, scaled))
    if scaled != found.scaled and config.architecture != "encoder-only" and model_cache.predicts(model):
        with st.container(border=True):
            for name, factor in (("usual", found.scaled), ("switched", scaled)):
                lab.note(name)
                st.text(written(model, subject.text, factor))
    _formula(config, scaled, embeddings.input_parts(subject.checkpoint, ids[:SOME]))
    if config.n_segments or config.embedding_norm:
        both = config.n_segments and config.embedding_norm
        lab.note("further", form="both" if both else "segment" if config.n_segments else "norm")
    lesson.ask(line(subject), folded=True)


@lab.asks("lengths")
def vector_lengths_question(subject: Subject) -> lesson.Choice | None:
    """How much of the sum would be positions with the factor the other way round, or else: which row is longest?"""
    tokens, found = subject.tokens, norms(subject.model, tuple(token.id for token in subject.tokens))
    about = (subject.model, subject.text)
    if found.positions is not None:
        values = {"factor": f"{found.factor:g}", **_compared(found, not found.scaled)}
        share = found.compared(not found.scaled)[2]
        right = [name for name, border in BORDERS.items() if share >= border][-1]
        return lab.choice(
            "lengths", tuple(BORDERS), right, *about, form="scaled" if found.scaled else "plain", **values
        )
    lengths, names = found.tokens.tolist(), labels.numbered(tokens)
    order = sorted(range(len(tokens)), key=lambda i: -lengths[i])
    once = list({tokens[i].id: i for i in reversed(order)}.values())[::-1]  # longest first, each token once
    places = sorted({*once[:2], *once[-2:]})
    if len(places) < 2:
        return None
    wrong = [
        lab.mistake("lengths", "row", index, length=f"{lengths[i]:.2f}", best=f"{lengths[once[0]]:.2f}")
        for index, i in enumerate(places)
        if i != once[0]
    ]
    said = lab.asked(
        "lengths", *about, wrong=wrong, form="row", lengths=", ".join(f"{names[i]}: {lengths[i]:.2f}" for i in places)
    )
    return lesson.Choice(choices=[names[i] for i in places], answer=places.index(once[0]), **said)


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "embedding")


def _compared(found: Norms, scaled: bool) -> dict[str, str]:
    """The mean lengths of both vectors, and the share of the positions, as they are said."""
    token, position, share = found.compared(scaled)
    return {"token": f"{token:.2f}", "position": f"{position:.2f}", "share": labels.percent(share)}


def _formula(config: ModelConfig, scaled: bool, given: Mapping[str, Given]) -> None:
    """Draws the formula of the first layer's input x_0, with or without the factor sqrt(d_model)."""
    root = math.sqrt(config.d_model)
    waves, added = config.positions == "sinusoidal", config.positions in ("sinusoidal", "learned")
    symbols = (
        (r"x_0 = \sqrt{d_\text{model}}\; " if scaled else "x_0 = ")
        + r"E_\text{id}"
        + (r" + P_\text{pos}" if added else "")
        + (r" \\ \lVert P_\text{pos} \rVert = \sqrt{d_\text{model} / 2}" if waves else "")
    )
    live = [rf"\sqrt{{{config.d_model}}} = {root:.2f}"] * scaled
    live += [rf"\sqrt{{{config.d_model} / 2}} = {root / math.sqrt(2):.2f}"] * waves
    factors = " * d_model**0.5" if scaled else ""
    lesson.formula(
        rf"\begin{{gathered}} {symbols} \end{{gathered}}",  # one below the other: both fit a phone
        live=r",\quad ".join(live),
        code=f"x_0 = E[ids]{factors}{' + P' if added else ''}",
        given=given,
    )
