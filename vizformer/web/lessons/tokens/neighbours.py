"""A laboratory of the lesson Tokens and embeddings: the nearest rows of the table, and the sentence among them."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer import figures
from vizformer.analysis.vectors import embeddings
from vizformer.analysis.vectors.embeddings import Neighbours, Projection
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens.embedding_rows import choose_token, embedding_table, names, rarest
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("tokens", "neighbours")
NEAREST = 8  # neighbours of the chosen token
NEAR = 3  # neighbours of every other token, on the map
CODE = "cosines = F.normalize(E, dim=-1) @ F.normalize(E[id], dim=-1)  # [vocab_size]"


@cached
def directions(model: ModelRef, centred: bool) -> tuple[Float[np.ndarray, "vocab_size d_model"], float]:
    """The rows of the table at length 1, and the mean cosine of two of them."""
    unit = embeddings.directions(model_cache.checkpoint(model), centred=centred)
    return unit, embeddings.average_cosine(unit)


@cached
def nearest_to(model: ModelRef, id: int, centred: bool) -> Neighbours:
    return embeddings.neighbours(directions(model, centred)[0], id, NEAREST)


@cached
def near(model: ModelRef, ids: tuple[int, ...], chosen: int, centred: bool) -> tuple[tuple[int, ...], Projection]:
    """The distinct tokens of a text, the neighbours of `chosen`, some of every other's; and all of them on a plane."""
    own = list(dict.fromkeys(ids))
    rest = [other for id in own if id != chosen for other in nearest_to(model, id, centred).ids[:NEAR]]
    shown = tuple(dict.fromkeys([*own, *nearest_to(model, chosen, centred).ids, *rest]))
    return shown, embeddings.project(directions(model, centred)[0][list(shown)])


@lab.draws
def draw_neighbours(subject: Subject) -> None:
    with controls():
        chosen = subject.tokens[choose_token(lab, subject)]
        centred = lab.toggle("centred")
    nearest = nearest_to(subject.model, chosen.id, centred)
    own = tuple(token.id for token in subject.tokens)
    shown, plane = near(subject.model, own, chosen.id, centred)
    left, right = st.columns([2, 3])
    chart.show(
        figures.neighbour_bars(
            names(subject.model, nearest.ids, beside=(chosen.id,)),
            nearest.cosines,
            directions(subject.model, centred)[1],
            title=lab.text("nearest", token=chosen.text),
        ),
        key="tokens.bars",
        on=left,
    )
    chart.show(
        figures.embedding_map(
            plane.points,
            names(subject.model, shown),
            [0 if id in own else 1 if id in nearest.ids else 2 for id in shown],
            plane.shares,
            chosen=shown.index(chosen.id),
            title=lab.text("map"),
        ),
        key="tokens.map",
        on=right,
    )
    percent = labels.percent(sum(plane.shares))
    lab.note("searched", count=subject.config.input_vocab_size, percent=percent, shown=len(shown))
    lesson.ask(neighbours_question(subject, centred))
    lesson.formula(
        r"\cos(E_a, E_b) = \frac{E_a \cdot E_b}{\lVert E_a \rVert\, \lVert E_b \rVert}",
        live=rf"\cos(E_{{{chosen.id}}}, E_{{{nearest.ids[0]}}}) = {nearest.cosines[0]:.4f}",
        code=CODE,
        given={"id": chosen.id, "E": embedding_table(subject.model)},
    )


@lab.asks("nearest")
def neighbours_question(subject: Subject, centred: bool = False) -> lesson.Choice | None:
    first, *others = rarest(subject.tokens)
    chosen = next((token for token in others if token.id != first.id), first)
    nearest = nearest_to(subject.model, chosen.id, centred)
    near = nearest.ids[:: max(len(nearest.ids) - 1, 1)]  # the first of the list and the last one
    own = [token.id for token in subject.tokens if token.id not in (chosen.id, *nearest.ids) and not token.special]
    ids = sorted({*near, *own[:2]})
    if len(ids) < 2:
        return None
    answer, (name, *choices) = ids.index(nearest.ids[0]), names(subject.model, (chosen.id, *ids))
    values = {"token": name, "nearest": choices[answer], "cosine": f"{nearest.cosines[0]:.2f}"}
    far = dict(zip(nearest.ids, nearest.cosines, strict=True))
    wrong = [
        lab.mistake("nearest", "last", index, own=f"{far[id]:.2f}", **values)
        if id in far
        else lab.mistake("nearest", "beside", index, **values)
        for index, id in enumerate(ids)
        if index != answer
    ]
    said = lab.asked("nearest", subject.model, chosen.id, centred, wrong=wrong, **values)
    return lesson.Choice(choices=choices, answer=answer, **said)
