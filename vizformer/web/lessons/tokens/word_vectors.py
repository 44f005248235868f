"""A laboratory of the lesson Tokens and embeddings: a table of static word vectors beside the vectors of the model."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors.word_vectors import WordVectors, plain_words, read_word_vectors
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens.contexts import compared, shared
from vizformer.web.lessons.tokens.sentences import Occasion, occasions
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("tokens", "vectors")
SHOWN = 8  # neighbours in a picture
KNOWN = ("cat", "red", "three", "猫", "水")  # offered where the table has no word of the sentence
SUMS = (  # start - less + more
    ("brother", "he", "she"),
    ("king", "man", "woman"),
    ("father", "man", "woman"),
    ("went", "go", "come"),
    ("bigger", "big", "small"),
)
CODE = "direction = a - b + c  # rows of length 1\ncosine = F.cosine_similarity(direction, nearest, dim=0)"


@cached
def bundled_word_vectors() -> WordVectors:
    return read_word_vectors(asset("lessons", "tokens", "word_vectors.safetensors"))


@cached
def senses(model: ModelRef) -> tuple[tuple[Occasion, float], ...]:
    """Of each example that the model can read: the cosine of the token's two vectors after the last layer."""
    found = []
    for occasion in occasions(model):
        tokens = model_cache.checkpoint(model).tokenizer_of("encoder").encode(occasion.first)
        for i, j in shared(model, occasion.first, occasion.second):
            if tokens[i].text.strip() == occasion.token:
                found.append((occasion, float(compared(model, occasion.first, occasion.second, i, j).same[-1])))
                break
    return tuple(found)


@lab.draws
def draw(subject: Subject) -> None:
    """The nearest words of a static table, a sum of its rows, and senses that it cannot tell apart."""
    found = bundled_word_vectors()
    offered = list(dict.fromkeys(word for word in plain_words(subject.text) if word in found.rows))
    if not offered:
        lab.note("none")
        offered = list(KNOWN)
    with controls():
        word = lab.box("word", {one: one for one in offered}, max(offered, key=found.rows.__getitem__))
        chosen = lab.box("sum", [f"{start} − {less} + {more}" for start, less, more in SUMS], 0)
    near, (start, less, more) = found.nearest(word, SHOWN), SUMS[chosen]
    lesson.ask(question(subject))
    left, right = st.columns(2)
    chart.show(
        figures.neighbour_bars(
            [name for name, __ in near],
            np.array([cosine for __, cosine in near]),
            found.average,
            title=lab.text("nearest", token=word),
        ),
        key="tokens.static",
        on=left,
    )
    results = found.analogy(start, less, more, SHOWN)
    rows = [Row(name, *numbers(".3f", cosine)) for name, cosine in results[:5]]
    columns, caption = lab.columns("nearest", "cosine"), f"{start} − {less} + {more} ≈"
    right.html(table.style() + table.to_html(list(columns), rows, bar=1, caption=caption))
    _senses(subject.model)
    lab.note("learned", count=len(found.words), width=found.unit.shape[1])
    best, cosine = results[0]
    a, b, c, nearest = (found.unit[found.rows[name]] for name in (start, less, more, best))
    lesson.formula(
        r"\cos\big(v_a - v_b + v_c,\; v_w\big)",
        live=rf"\cos\big(v_{{\text{{{start}}}}} - v_{{\text{{{less}}}}} + v_{{\text{{{more}}}}},\; "
        rf"v_{{\text{{{best}}}}}\big) = {cosine:.4f}",
        code=CODE,
        given={"a": a, "b": b, "c": c, "nearest": nearest},
    )


@lab.asks("static")
def question(subject: Subject) -> lesson.Choice:
    return lab.choice("static", ("one", "two", "many"), "one", subject.model)


def _senses(model: ModelRef) -> None:
    """One token in two senses: the static row is the same one, the contextual vectors are not."""
    rows = [Row(one.token, one.first, one.second, "1", *numbers(".2f", cosine)) for one, cosine in senses(model)]
    if rows:
        columns = lab.columns("token", "sentence", "other", "static", "last")
        st.html(table.to_html(list(columns), rows, caption=lab.text("senses")))
