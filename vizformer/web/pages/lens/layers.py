"""The logit lens as a table: what the model would say after every layer, at positions around the chosen one."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer import figures
from vizformer.components import cells
from vizformer.figures import style
from vizformer.figures.figure import Figure
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.pages.lens import token_choice
from vizformer.web.pages.lens.token_choice import Asked
from vizformer.web.widgets import data_table, position_choice, proof_badge
from vizformer.web.widgets.chart import Picture, caption, take_away
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, translate

GRID, ROW = "lens.cells", "lens.row"
COLUMNS = 12  # positions that are shown at once


def follow(subject: Subject) -> None:
    """Takes over the position of a cell that was clicked; before anything is drawn of it."""
    sequence = subject.trace.tokens[position_choice.stack(subject)]
    chosen, usual = state.fit(position=len(sequence)).position, position_choice.usual_position(subject)
    position = usual if chosen is None else chosen
    first = window(position, len(sequence))
    rows = len(some_rows(len(token_choice.lens(subject, (position,)).points)))
    wanted = (min(st.session_state.get(ROW, rows - 1), rows - 1), position - first)
    clicked = cells.peek(key=f"{GRID}.{first}", selected=wanted)
    if clicked is None or clicked == wanted or first + clicked[1] >= len(sequence):
        return
    st.session_state[ROW] = clicked[0]
    position = first + clicked[1]
    state.update(position=None if position == usual else position)


def window(position: int, n: int) -> int:
    """The first of the positions that are shown with this one."""
    return min(position // COLUMNS * COLUMNS, max(0, n - COLUMNS))


def in_words(subject: Subject, asked: Asked) -> None:
    """Says from which layer on the answer is most probable, and what the table shows."""
    st.markdown(first_after(subject, asked))
    show_note(
        "Each cell is the model's prediction if it ended there, the colour its probability: the output layer "
        "reads this row of the residual stream. A click chooses a position."
    )


def draw_layers(subject: Subject, asked: Asked) -> None:
    """The table, the chosen position layer by layer, and what the lens takes for granted."""
    sequence = subject.trace.tokens[position_choice.stack(subject)]
    first = window(asked.position, len(sequence))
    positions = tuple(range(first, min(first + COLUMNS, len(sequence))))
    found = token_choice.lens(subject, positions)
    shown = some_rows(len(found.points))
    ids = tuple(int(id) for id in found.top[shown, :, 0].ravel())
    texts = np.array(token_choice.token_texts(subject, ids), dtype=object).reshape(len(shown), len(positions))
    tied = found.first_tied[shown]
    texts = np.where(tied > 1, [[_("{n} tied", n=n) for n in row] for row in tied.tolist()], texts)
    said = {
        "grid_label": _(
            "Rows are layers, columns are positions. The arrow keys move from cell to cell, Enter chooses one."
        ),
        "cell": _("{row_token}, position {column_token}"),
        "none": _("No position is chosen."),
    }
    cells.mount(
        [row_name(point) for point in shown],
        [f"{position} {sequence[position].text}" for position in positions],
        values=found.probabilities[shown, :, 0],
        texts=texts.tolist(),
        selected=(min(st.session_state.get(ROW, len(shown) - 1), len(shown) - 1), asked.position - first),
        words=said,
        key=f"{GRID}.{first}",
    )
    names = [row_name(point) for point in shown]
    take_away(
        Picture(
            "lens",
            caption(_("Logit lens")),
            lambda: _as_figure(found.probabilities[shown, :, 0], texts, names, labels.numbered(sequence)[first:]),
        ),
        key=GRID,
    )
    if len(sequence) > COLUMNS:
        show_note("{n} positions at a time; the tokens above choose others.", n=COLUMNS)
    one_position(subject, asked)
    for message in token_choice.inexact(subject):
        st.caption(translate(message))
    difference = f"{found.proof.difference:.1g}"
    agrees = _(
        "After the last layer the lens is the model's own prediction: agrees to {difference}.", difference=difference
    )
    proof_badge.show(found.proof, agrees, edited=bool(subject.edited))


def _as_figure(
    probabilities: NDArray[np.floating], texts: NDArray[np.object_], rows: list[str], columns: Sequence[str]
) -> Figure:
    """The most probable token of each layer at each position, as a map of its probability."""
    shown = columns[: probabilities.shape[1]]
    figure = figures.matrix_heatmap(probabilities, rows, shown, title=_("Logit lens"))
    hover = _("{row}, position {column}: “{token}” with probability {value}")
    places = {"row": "%{y}", "column": "%{x}", "token": "%{customdata}", "value": "%{z:.4f}"}
    figure.update_traces(
        customdata=[[style.safe(text) for text in line] for line in texts], hovertemplate=style.fill(hover, **places)
    )
    return figure


def some_rows(points: int) -> list[int]:
    """Which points are shown: all, or as many as can be drawn, evenly, with the first and the last."""
    if points <= cells.LARGEST:
        return list(range(points))
    return sorted({round(float(at)) for at in np.linspace(0, points - 1, cells.LARGEST)})


def row_name(point: int) -> str:
    """Point 0 are the embeddings, point l + 1 is what layer l ends with."""
    return _("embeddings") if point == 0 else _("layer {layer}", layer=point - 1)


def first_after(subject: Subject, asked: Asked) -> str:
    """After which layer the answer comes to the top (Markdown)."""
    found = token_choice.lens(subject, (asked.position,), targets=(asked.token,))
    answer = plain(asked.text)
    settled, appears = found.settled(0), found.appears(0)
    if settled is not None and settled > 0:
        return _("“{answer}” is first from layer {layer} on, and stays so.", answer=answer, layer=settled - 1)
    if settled == 0:
        return _("“{answer}” is first from the embeddings on.", answer=answer)
    if appears is not None:
        return _("“{answer}” is first after some layer, but does not stay so.", answer=answer)
    at = int(found.rank[:, 0].argmin())
    best, tied = f"{found.rank[at, 0]:,}", int(found.tied[at, 0])
    if tied > 1:
        return _(
            "“{answer}” is never first alone; its best rank is {rank}, which {n} tokens share.",
            answer=answer,
            n=tied,
            rank=best,
        )
    return _("“{answer}” is never first; its best rank is {rank}.", answer=answer, rank=best)


def one_position(subject: Subject, asked: Asked) -> None:
    found = token_choice.lens(subject, (asked.position,), targets=(asked.token,))
    names = token_choice.token_texts(subject, tuple(int(id) for id in found.top[:, 0].ravel()))
    count = found.top.shape[2]
    table: dict[str, list[object]] = {_("Ended after"): [row_name(point) for point in range(len(found.points))]}
    for place in range(count):
        own = names[place::count]
        table[_("Number {n}", n=place + 1)] = [
            f"{text}  {labels.percent(float(p))}{' =' if place < tied > 1 else ''}"
            for text, p, tied in zip(own, found.probabilities[:, 0, place], found.first_tied[:, 0], strict=True)
        ]
    table[_("Entropy (nats)")] = [round(float(value), 2) for value in found.entropy[:, 0]]
    table[_("Rank of “{answer}”", answer=asked.text)] = [int(rank) for rank in found.rank[:, 0]]
    if (found.tied[:, 0] > 1).any():
        table[_("Tokens that share this rank")] = [int(n) for n in found.tied[:, 0]]
    table[_("Its probability")] = [labels.percent(float(p)) for p in found.target_probability[:, 0]]
    data_table.show(table, hide_index=True, key="lens.table")
    if (found.first_tied > 1).any():
        show_note("=: tied, with the same logit; their order means nothing.")
