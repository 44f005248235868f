"""The chosen head in both runs, and the difference of its maps."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer import figures
from vizformer.text import Token
from vizformer.web.link import state
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.heads import shown
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.widgets import chart, lesson, plain_heads
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_text

MOST = 64  # rows and columns of a map that are drawn at once: of more a slider chooses some
ABREAST = 16  # rows and columns up to which the maps of both runs stand abreast


def draw_one_head(pair: Pair) -> None:
    """Three maps: the first run, the second one, and the difference."""
    kind, (layer, head) = state.view().kind, shown(pair)
    st.subheader(_("Layer {layer}, head {head} in both runs", layer=layer, head=head), anchor=False)
    rows, columns = labels.stacks(kind)
    tokens = [one.trace.tokens for one in (pair.first, pair.second)]
    queries, keys = (
        window(max(len(one[stack]) for one in tokens), label, f"beside.{name}")
        for stack, label, name in ((rows, _("Rows from"), "down"), (columns, _("Columns from"), "across"))
    )
    found = computations.head(pair, kind, layer, head, queries, keys)
    abreast = len(keys) <= ABREAST and len(queries) <= ABREAST
    places = [*(st.columns(2) if abreast else (st.container(), st.container())), st.container()]
    titles = (_("first: {name}", name=pair.names[0]), _("second: {name}", name=pair.names[1]))
    for index, (pattern, title) in enumerate(zip((found.first, found.second), titles, strict=True)):
        if pattern.size:
            figure = figures.attention_heatmap(
                pattern,
                some(tokens[index][rows], queries),
                some(tokens[index][columns], keys),
                reasons=found.reasons[index],
                title=title,
            )
            chart.show(figure, key=f"side_by_side.map.{index}", on=places[index])
    if kind == pair.runs.kinds[0]:
        plain_heads.say_pronoun(pair.first, pair.second)
    if found.difference is None or not found.difference.size:
        places[2].info(_("The maps have different rows and columns, so there is no difference to show."))
        return
    n_rows, n_keys = found.difference.shape
    names = both_texts(tokens[0][rows], tokens[1][rows], queries)[:n_rows]
    chart.show(
        figures.difference_map(
            found.first[:n_rows, :n_keys],
            found.second[:n_rows, :n_keys],
            names,
            both_texts(tokens[0][columns], tokens[1][columns], keys)[:n_keys],
            reasons=np.minimum(*(one[:n_rows, :n_keys] for one in found.reasons)),  # empty where both are blocked
            title=_("second − first"),
        ),
        key="side_by_side.difference",
        on=places[2],
    )
    strongest(found.divergence, names, queries.start)


def window(n: int, label: str, name: str) -> range:
    """The rows or columns that are drawn: all, or as many as fit, from the position of a slider on."""
    if n <= MOST:
        return range(n)
    last = n - MOST
    st.slider(label, 0, last, **lesson.setting(name, 0, range(last + 1)))
    first = lesson.value(name, 0, range(last + 1))
    return range(first, first + MOST)


def some(tokens: Sequence[Token], chosen: range) -> list[str]:
    return [token.text for token in tokens[chosen.start : chosen.stop]]


def both_texts(first: Sequence[Token], second: Sequence[Token], chosen: range) -> list[str]:
    """What stands at the positions that both have: one text, or the first one's and the second one's."""
    pairs = zip(first[chosen.start : chosen.stop], second[chosen.start : chosen.stop], strict=False)
    return [one.text if one.text == two.text else f"{one.text} → {two.text}" for one, two in pairs]


def strongest(divergence: NDArray[np.floating] | None, names: Sequence[str], first: int) -> None:
    """The rows of the difference that are furthest apart, in words."""
    if divergence is None or not np.isfinite(divergence).any():
        return
    order = np.argsort(-np.where(np.isfinite(divergence), divergence, -1.0), kind="stable")[:3]
    listed = [
        _(
            "row {row} “{token}”: {bits} bits",
            row=first + int(at),
            token=names[at],
            bits=computations.bits(divergence[at]),
        )
        for at in order
        if np.isfinite(divergence[at])
    ]
    show_text("The rows that differ most: {rows}.", rows=_("; ").join(listed))
