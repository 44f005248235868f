"""Neighbours, in the lesson Tokens and embeddings: the nearest rows of the table, and the sentence among them."""

import streamlit as st

from vizformer import figures
from vizformer.figures.neighbours import ENGLISH
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.lessons.tokens.token_choice import choose_token, rarest
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

CODE = "cosines = F.normalize(E, dim=-1) @ F.normalize(E[id], dim=-1)  # [vocab_size]"


@laboratory
def neighbours(subject: Subject) -> None:
    """The nearest rows of the table, and the sentence with its neighbours on a plane."""
    at = choose_token(subject, _("Token"))
    st.toggle(_("Take the mean of all rows off first"), **lesson.setting("tokens.centred", False))
    centred = lesson.value("tokens.centred", False)
    tokens = subject.tokens
    chosen = tokens[at]
    nearest = computations.neighbours(subject.model, chosen.id, centred)
    average = computations.average_cosine(subject.model, centred)
    shown, plane = computations.near(subject.model, tuple(token.id for token in tokens), chosen.id, centred)
    named = computations.names(subject.model, shown)
    own = {token.id for token in tokens}
    kinds = [0 if id in own else 1 if id in nearest.ids else 2 for id in shown]
    said = words(ENGLISH)
    left, right = st.columns([2, 3])
    chart.show(
        figures.neighbour_bars(
            computations.names(subject.model, nearest.ids, beside=(chosen.id,)),
            nearest.cosines,
            average,
            title=_("Nearest to “{token}”", token=chosen.text),
            words=said,
        ),
        key="tokens.bars",
        on=left,
    )
    chart.show(
        figures.embedding_map(
            plane.points,
            named,
            kinds,
            plane.shares,
            chosen=shown.index(chosen.id),
            title=_("The sentence and its neighbours, on a plane"),
            words=said,
        ),
        key="tokens.map",
        on=right,
    )
    st.caption(
        _(
            "Searched: all {count:,} rows. The plane keeps {percent} of the variance of these {shown} directions; what "
            "looks close on it may be far apart.",
            count=subject.config.input_vocab_size,
            percent=labels.percent(sum(plane.shares)),
            shown=len(shown),
        )
    )
    lesson.ask(nearest_question(subject, centred))
    lesson.formula(
        r"\cos(E_a, E_b) = \frac{E_a \cdot E_b}{\lVert E_a \rVert\, \lVert E_b \rVert}",
        live=rf"\cos(E_{{{chosen.id}}}, E_{{{nearest.ids[0]}}}) = {nearest.cosines[0]:.4f}",
        code=CODE,
        given={"id": chosen.id, "E": computations.embedding_table(subject.model)},
    )


def nearest_question(subject: Subject, centred: bool) -> lesson.Choice | None:
    """Which row of the table is nearest to that of a token that the pictures do not begin with?"""
    first, *others = rarest(subject.tokens)
    chosen = next((token for token in others if token.id != first.id), first)
    nearest = computations.neighbours(subject.model, chosen.id, centred)
    near = nearest.ids[:: max(len(nearest.ids) - 1, 1)]  # the first of the list and the last one
    own = [token.id for token in subject.tokens if token.id not in (chosen.id, *nearest.ids) and not token.special]
    ids = sorted({*near, *own[:2]})
    if len(ids) < 2:
        return None
    name, *names = computations.names(subject.model, (chosen.id, *ids))
    return lesson.Choice(
        "tokens",
        "nearest",
        _("Which of these rows of the table points most nearly in the direction of the row of “{token}”?", token=name),
        names,
        ids.index(nearest.ids[0]),
        _(
            "“{nearest}”, with a cosine of {cosine}: choose “{token}” above and see. Rows come near each other where "
            "training has used their tokens alike, whether these look alike or not.",
            nearest=names[ids.index(nearest.ids[0])],
            cosine=f"{nearest.cosines[0]:.2f}",
            token=name,
        ),
        about=f"{subject.model} {chosen.id} {centred}",
    )
