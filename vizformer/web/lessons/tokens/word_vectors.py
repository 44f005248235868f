"""Word vectors, in the lesson Tokens and embeddings: a static table beside the contextual vectors of the model."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.figures.neighbours import ENGLISH
from vizformer.text.word_splitting import plain_words
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

SHOWN = 8  # neighbours in a picture
SUMS = (  # start - less + more
    ("brother", "he", "she"),
    ("king", "man", "woman"),
    ("father", "man", "woman"),
    ("went", "go", "come"),
    ("bigger", "big", "small"),
)
CODE = "direction = a - b + c  # rows of length 1\ncosine = F.cosine_similarity(direction, nearest, dim=0)"


@laboratory
def word_vectors(subject: Subject) -> None:
    """The nearest words of a static table, a sum of its rows, and senses that it cannot tell apart."""
    st.html(table.style())
    found = computations.word_vectors()
    own = list(dict.fromkeys(word for word in plain_words(subject.text) if word in found.rows))
    if not own:
        st.caption(_("No word of the sentence is in the table; here are words that are."))
    offered = own or ["cat", "red", "three", "猫", "水"]
    rarest = max(offered, key=found.rows.__getitem__)
    word = st.selectbox(_("Word"), offered, **lesson.setting("tokens.word", rarest, offered))
    near = found.nearest(word, SHOWN)
    lesson.ask(static_question(f"{subject.model} {len(offered)}"))
    left, right = st.columns(2)
    chart.show(
        figures.neighbour_bars(
            [name for name, __ in near],
            np.array([cosine for __, cosine in near]),
            found.average,
            title=_("Nearest to “{token}”", token=word),
            words=words(ENGLISH),
        ),
        key="tokens.static",
        on=left,
    )
    with right:
        names = {index: f"{start} − {less} + {more}" for index, (start, less, more) in enumerate(SUMS)}
        chosen = st.selectbox(
            _("A sum of three rows"),
            list(names),
            format_func=names.__getitem__,
            **lesson.setting("tokens.sum", 0, list(names)),
        )
        results = found.analogy(*SUMS[chosen], SHOWN)
        rows = [Row((name, Number(cosine, f"{cosine:.3f}"))) for name, cosine in results[:5]]
        st.html(table.to_html((_("nearest word"), _("cosine")), rows, bar=1, caption=f"{names[chosen]} ≈"))
    senses(subject)
    st.caption(
        _(
            "{count:,} words of {width} numbers, learned by skip-gram with negative sampling (word2vec) from the texts that "
            "the bundled models learned from: words in lower case, Chinese character by character. Each row less the mean "
            "of all.",
            count=len(found.words),
            width=found.unit.shape[1],
        )
    )
    a, b, c, first = (found.unit[found.rows[name]] for name in (*SUMS[chosen], results[0][0]))
    lesson.formula(
        r"\cos\big(v_a - v_b + v_c,\; v_w\big)",
        live=rf"\cos\big(v_{{\text{{{SUMS[chosen][0]}}}}} - v_{{\text{{{SUMS[chosen][1]}}}}} + "
        rf"v_{{\text{{{SUMS[chosen][2]}}}}},\; v_{{\text{{{results[0][0]}}}}}\big) = {results[0][1]:.4f}",
        code=CODE,
        given={"a": a, "b": b, "c": c, "nearest": first},
    )


def senses(subject: Subject) -> None:
    """One token in two senses: the static row is the same one, the contextual vectors are not."""
    found = computations.senses(subject.model)
    if not found:
        return
    rows = [
        Row((occasion.token, occasion.first, occasion.second, "1", Number(cosine, f"{cosine:.2f}")))
        for occasion, cosine in found
    ]
    columns = (_("token"), _("in one sentence"), _("in another"), _("cosine, static"), _("cosine, last layer"))
    st.html(table.to_html(columns, rows, caption=_("One token, two senses: static beside contextual")))


def static_question(about: str = "") -> lesson.Choice:
    """What can a static table not do for a word with two senses?"""
    return lesson.Choice(
        "tokens",
        "static",
        _("“bank” of a river and “bank” with money: how many rows does a static table have for them?"),
        [
            _("one, which lies between the two senses"),
            _("two, one for each sense"),
            _("as many as there are sentences with it"),
        ],
        0,
        _(
            "The row belongs to the spelling. All sentences with the word have pulled at the same row, so it holds a "
            "mixture of its senses; the last column of the lower table shows what the layers make of it."
        ),
        about=about,
    )
