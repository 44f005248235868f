"""All heads by how far apart their rows are in the two runs: a picture, and a table, most different first."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.components import cells
from vizformer.figures import head_report as head_figures
from vizformer.web.link import state
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.widgets import chart, data_table, lesson, watched_work
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

FIRST = "beside.first"
"""Set where head 0 of layer 0 was chosen: a link leaves both out, as if nothing was."""
TABLE = "side_by_side.table"
ROW, MOST_ROWS = 35, 8  # px, and rows of the table before it scrolls
PER_CELL = 300  # multiplications, about, that the divergence of a cell takes the time of

Place = tuple[int, int]


def heads(pair: Pair) -> None:
    """The choice of the attention, the picture and the table."""
    st.subheader(_("Which heads differ"), anchor=False)
    kind = chosen_kind(pair)
    runs = pair.runs
    if not runs.whole_shape(kind):
        layers, n_heads = runs.shape(kind)
        st.caption(
            _(
                "The models have other numbers of layers or heads: the first {layers} layers and {heads} heads, which both "
                "have, are compared by their numbers. Nothing says that they correspond.",
                layers=layers,
                heads=n_heads,
            )
        )
    if not runs.of_equal_length(kind):
        rows, __ = runs.rows_and_keys(kind)  # or says why there is nothing to compare
        st.caption(
            _(
                "The texts are not equally long: only the first {n} rows are compared, which look at nothing that only one "
                "of the texts has.",
                n=rows,
            )
        )
    found = divergences(pair, kind)
    if found is None:
        return
    if not np.isfinite(found).any():
        st.text(_("No row has a choice: each sees one key only."))
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        picture(found, place(found))
    with right:
        table(found)
    st.caption(
        _(
            "Jensen-Shannon divergence of a head's rows in the two runs, in bits, averaged over the rows that have a "
            "choice: 0 where both runs look at the same keys alike, 1 where they look at none in common. A click chooses a "
            "head."
        )
    )


def chosen_kind(pair: Pair) -> Kind:
    """The kind of attention."""
    kinds = pair.runs.kinds
    kind = state.fit(kind=kinds).kind
    if len(kinds) > 1:
        st.segmented_control(
            _("Kind of attention"), kinds, format_func=labels.kind_label, required=True, **state.bind("kind")
        )
        kind = state.view().kind
    layers, n_heads = pair.runs.shape(kind)
    state.fit(layer=layers, head=n_heads)
    return kind


def divergences(pair: Pair, kind: Kind) -> NDArray[np.floating] | None:
    """Of every head; None until they are wanted, where they take long."""
    runs = pair.runs
    layers, n_heads = runs.shape(kind)
    rows, keys = runs.rows_and_keys(kind)
    return watched_work.watched(
        computations.divergences,
        (pair, kind),
        quick=float(layers) * n_heads * rows * keys * PER_CELL < watched_work.AT_ONCE,
        runs=layers,
        begin=_("Compare all heads"),
        key="side_by_side.divergences",
        said=lambda done, n: _("{done} of {n} layers", done=done, n=n),
        takes=_("The maps of {n} heads are compared cell by cell. You can stop that.", n=f"{layers * n_heads:,}"),
    )


def place(found: NDArray[np.floating] | None) -> Place:
    """The head that was chosen, or else the one that differs most."""
    view = state.view()
    if found is None or (view.layer, view.head) != (0, 0) or lesson.value(FIRST, False):
        return view.layer, view.head
    layer, head = np.unravel_index(int(np.where(np.isfinite(found), found, -1.0).argmax()), found.shape)
    return int(layer), int(head)


def shown(pair: Pair) -> Place:
    """The head that is shown: of what has been compared already."""
    kind = state.view().kind
    return place(computations.divergences(pair, kind) if computations.divergences.holds(pair, kind) else None)


def choose_head(layer: int, head: int) -> None:
    """Shows this head from now on."""
    state.update(layer=layer, head=head)
    lesson.change(FIRST, (layer, head) == (0, 0), False)


def picture(found: NDArray[np.floating], chosen: Place) -> None:
    """A cell for every head; a click chooses it."""
    title, measure = _("How far the heads are apart"), _("divergence, bits")
    figure_words = words(head_figures.ENGLISH)

    def figure() -> figures.figure.Figure:
        return figures.measure_of_heads(found, measure=measure, title=title, words=figure_words)

    if max(found.shape) > cells.LARGEST or not np.isfinite(found).all():
        chart.show(figure(), key="side_by_side.picture")
        return
    st.markdown(f"**{title}**")
    said = words(cells.ENGLISH) | {
        "grid_label": _(
            "Rows are layers, columns are heads. The arrow keys move from cell to cell, Enter chooses one."
        ),
        "cell": _("layer {row}, head {column}"),
        "text": _("{cell}: {text} bits"),
        "none": _("No head is chosen."),
    }
    clicked = cells.mount(
        [_("L{layer}", layer=layer) for layer in range(found.shape[0])],
        [_("H{head}", head=head) for head in range(found.shape[1])],
        values=found / max(float(found.max()), 1e-9),
        texts=[[computations.bits(value) for value in row] for row in found],
        selected=chosen,
        words=said,
        key="side_by_side.cells",
    )
    take_away(Picture("divergence", caption(title, measure), figure), key="side_by_side.cells")
    if clicked is not None and clicked != chosen:
        choose_head(*clicked)
        st.rerun(scope="fragment")  # the table above shows the head as well


def table(found: NDArray[np.floating]) -> None:
    """The heads, most different first; a click on a row chooses one."""
    order = np.argsort(-np.where(np.isfinite(found), found, -np.inf), axis=None, kind="stable")
    places = [tuple(int(at) for at in np.unravel_index(index, found.shape)) for index in order]
    data_table.show(
        {
            _("Layer"): [place[0] for place in places],
            _("Head"): [place[1] for place in places],
            _("Divergence, bits"): [float(found[place]) for place in places],
        },
        column_config={_("Divergence, bits"): st.column_config.NumberColumn(format="%.2g")},
        hide_index=True,
        height=ROW * (1 + min(len(places), MOST_ROWS)) + 2,
        on_select=lambda: _take_row(places),
        selection_mode="single-row",
        key=TABLE,
    )


def _take_row(places: list[tuple[int, ...]]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(places):
        layer, head = places[rows[0]]
        choose_head(layer, head)
