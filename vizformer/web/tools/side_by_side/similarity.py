"""How alike an encoder of sentences finds the two texts, and which tokens and parts of the model make it."""

from typing import cast

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Term
from vizformer.analysis.side_by_side import POOLINGS
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling, sentence_pooling
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.choices import BESIDE
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_info, show_markdown

POOLING = "beside.pooling"
BARS = 10
LONGEST = 256  # tokens of a text: of MPNet that takes some seconds, in float64


def draw_similarity(pair: Pair) -> None:
    """The number, the map of the pairs of tokens, and the bars of the parts; nothing where the model predicts tokens."""
    if not pair.compares_sentences:
        return
    sizes = [len(one.tokens) for one in (pair.first, pair.second)]
    if max(sizes) > LONGEST:
        show_info(
            "The texts have {first} and {second} tokens; how alike they are is taken apart for at most {limit} each. "
            "Choose shorter ones.",
            first=sizes[0],
            second=sizes[1],
            limit=LONGEST,
        )
        return
    said = pooling_of(pair.first.model)
    names = {
        "mean": _("mean of all rows"),
        "cls": _("the first row"),
        "max": _("largest number of each dimension"),
        "mean_sqrt_len": _("sum of all rows / √n"),
    }
    pooling = chosen_pooling(pair)
    found = computations.similarity(pair, pooling)
    left, right = st.columns(BESIDE, gap="medium")
    tokens = [labels.texts(one.tokens) for one in (pair.first, pair.second)]
    first, second = (int(at) for at in np.unravel_index(int(found.pairs.argmax()), found.pairs.shape))
    with left:
        chart.show(
            figures.similarity_map(
                found.pairs, *tokens, title=_("Similarity {value}, pair by pair of tokens", value=number(found.cosine))
            ),
            key="side_by_side.similarity",
        )
    with right:
        st.selectbox(
            _("Vector of a text"),
            POOLINGS,
            format_func=names.__getitem__,
            **lesson.setting(POOLING, said or "mean", POOLINGS),
        )
        parts = computations.parts_of_similarity(pair, pooling)
        strongest = next(term for term in parts.sorted if term.part == "head")
        state.suggest(layer=strongest.layer, head=strongest.head)  # for the maps below
        chart.show(
            figures.logit_terms(*bars(parts.sorted), words={"logit_share": _("share of the similarity")}),
            key="side_by_side.similarity.parts",
        )
        proof_badge.show(parts.proof)
    show_markdown(
        "“{first}” and “{second}” add most, {share} of {value}; an even share would be {even}. What the model has "
        "written into the first text, part by part, adds up to the same number.",
        first=tokens[0][first],
        second=tokens[1][second],
        share=number(float(found.pairs[first, second]), 4),
        value=number(found.cosine),
        even=number(found.cosine / found.pairs.size, 4),
    )
    st.caption(
        _("The model's files say how the rows of a text become one vector.")
        if said is not None
        else _("No file of the model says how the rows of a text become one vector: taken is their mean.")
    )


@cached
def pooling_of(model: ModelRef) -> Pooling | None:
    """What the model's files say."""
    with sources.reading(model) as path:
        return sentence_pooling(path) if path.is_dir() else None


def chosen_pooling(pair: Pair) -> Pooling:
    """How the rows of a text become one vector: as chosen, else as the files say, else their mean."""
    return cast(Pooling, lesson.value(POOLING, pooling_of(pair.first.model) or "mean", POOLINGS))


def bars(terms: tuple[Term, ...]) -> tuple[list[str], np.ndarray]:
    """The largest heads and networks; the tokens themselves, all biases and the others as one each."""
    own = [term for term in terms if term.part in ("head", "feedforward")]
    shown = [(name(term), term.value) for term in own[:BARS]]
    groups = {
        _("the words themselves"): [t.value for t in terms if t.part == "token"],
        _("positions and segments"): [t.value for t in terms if t.part in ("position", "segment")],
        _("all biases"): [t.value for t in terms if t.part.endswith("_bias")],
        _("{n} others together", n=len(own[BARS:])): [t.value for t in own[BARS:]],
    }
    shown += [(group, float(sum(values))) for group, values in groups.items() if values]
    return [one for one, __ in shown], np.array([value for __, value in shown])


def name(term: Term) -> str:
    if term.part == "head":
        return _("layer {layer}, head {head}", layer=term.layer, head=term.head)
    return _("layer {layer}, feed-forward", layer=term.layer)


def number(value: float, digits: int = 3) -> str:
    """A share or a cosine, with a minus of its own."""
    return f"{value:.{digits}f}".replace("-", "−")
