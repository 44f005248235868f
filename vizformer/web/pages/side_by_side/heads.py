"""All heads by how far apart their rows are in the two runs: a picture, and a table, most different first."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.errors import VizformerError
from vizformer.figures.figure import Figure
from vizformer.text import Token
from vizformer.web.link import state
from vizformer.web.pages.side_by_side import pair as computations
from vizformer.web.pages.side_by_side.pair import Pair
from vizformer.web.pages.side_by_side.weights import draw_parts, draw_sentence, moved
from vizformer.web.widgets import attention_selector, chart, lesson, map_words, watched_work
from vizformer.web.widgets.chart import Picture, caption
from vizformer.web.widgets.choices import BESIDE, kind_of_attention
from vizformer.web.widgets.lab import aside
from vizformer.web.words import counts, labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, show_text, translate

MOST_ROWS = 4  # of the table before it scrolls
PER_CELL = 300  # multiplications, about, that the divergence of a cell takes the time of

MOST = 64  # rows and columns of a map that are drawn at once: of more a slider chooses some
ABREAST = 16  # rows and columns up to which the maps of both runs stand abreast


def draw_heads(pair: Pair, settings: DeltaGenerator) -> None:
    """The choice of the attention (in the line of settings), the picture and the table."""
    runs = pair.runs
    with settings:
        kind = kind_of_attention(runs.kinds)
    layers, n_heads = runs.shape(kind)
    state.fit(layer=layers, head=n_heads)
    if not runs.whole_shape(kind):
        show_note(
            "The models differ in their numbers of layers or heads. VizFormer compares by number what "
            "both have: {layers}, {heads} each. Heads of the same number need not correspond.",
            layers=counts.layers(layers),
            heads=counts.heads(n_heads),
        )
    if not runs.of_equal_length(kind):
        rows, __ = runs.rows_and_keys(kind)  # or says why there is nothing to compare
        show_note(
            "The texts are not equally long: only their first rows ({n}) are compared, which see only "
            "positions that both texts have.",
            n=rows,
        )
    found = divergences(pair, kind)
    if found is None:
        return
    if not np.isfinite(found).any():
        show_text("Each row sees one key only, so there is nothing to compare.")
        return
    weights = None
    try:
        weights = moved(pair) if pair.two_models else None
    except VizformerError as error:  # (of other shapes, or read layer by layer: their heads are compared all the same)
        st.caption(translate(error.message, plain))
    if weights is not None:
        draw_sentence(pair, weights, kind)
    if weights is None or kind not in weights.heads or not weights.relative:
        left, beside = st.columns(BESIDE, gap="medium")
        told = left
    else:
        told, left = st.columns((3, 4), gap="medium")
        beside = told
        with told:
            draw_parts(weights, kind)
    with left:
        picture(found, shown(pair))
    with told:
        aside(open_on_a_head(pair))  # nothing, where a click has just chosen
    with beside:
        places = attention_selector.in_order(found)
        bits = _("Divergence, bits")
        columns = {
            _("Layer"): [place[0] for place in places],
            _("Head"): [place[1] for place in places],
            bits: [float(found[place]) for place in places],
        }
        if weights is not None and weights.heads.get(kind, np.empty(0)).shape == found.shape:
            columns[_("Change of weights")] = [100 * float(weights.heads[kind][place]) for place in places]
        form = {
            bits: st.column_config.NumberColumn(format="%.2g"),
            _("Change of weights"): st.column_config.NumberColumn(format="%.1f%%"),
        }
        attention_selector.table(columns, places, key="side_by_side", most_rows=MOST_ROWS, column_config=form)
    told.caption(
        _(
            "Jensen-Shannon divergence of a head's rows in the two runs, in bits, averaged over the rows that "
            "see several keys: 0 for equal weights, 1 for no common key. A click chooses a head."
        )
    )


def divergences(pair: Pair, kind: Kind) -> NDArray[np.floating] | None:
    """The divergence of every head; None until it is asked for, where it takes long."""
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
        takes=_("VizFormer compares the maps of {n} heads cell by cell. You can stop it.", n=f"{layers * n_heads:,}"),
    )


def shown(pair: Pair) -> attention_selector.Place:
    open_on_a_head(pair)
    return state.view().layer, state.view().head


def open_on_a_head(pair: Pair) -> str:
    """Shows the head that differs most, where nobody has chosen one and all have been compared; why, in a sentence.

    Of two models it is the head whose weights moved most, where both have the same heads and some moved.

    Of two texts of one model that the reader opened it is the head that the page Attention begins with.
    """
    kind, mine = state.view().kind, pair.first.model.is_from_elsewhere
    if mine and not pair.two_models and (why := attention_selector.open_on_a_head(pair.first, kind)):
        return why
    chosen_before = lesson.value("beside.first", False)  # of a link from before: head 0 of layer 0 was chosen
    if chosen_before or not computations.divergences.holds(pair, kind):
        return ""
    found = computations.divergences(pair, kind)
    if (moved_most := _moved_most(pair, kind, found.shape)) is not None:
        layer, head = moved_most
        if not state.suggest(layer=layer, head=head):
            return ""
        return _(
            "Shown: layer {layer}, head {head}. Of all heads its weights changed most; its rows differ by "
            "{value} bits.",
            layer=layer,
            head=head,
            value=computations.bits(found[moved_most]),
        )
    if not attention_selector.open_on_the_largest(found):
        return ""
    layer, head = place = state.view().layer, state.view().head
    return _(
        "Shown: layer {layer}, head {head}. Of all heads its rows differ most between the two runs ({value} bits).",
        layer=layer,
        head=head,
        value=computations.bits(found[place]),
    )


def _moved_most(pair: Pair, kind: Kind, shape: tuple[int, ...]) -> attention_selector.Place | None:
    """The head whose weights moved most between two models, if all have been compared and both models have these heads."""
    models = pair.first.model, pair.second.model
    if not pair.two_models or not computations.moved.holds(*models, False):
        return None
    try:
        found = computations.moved(*models, False)
    except VizformerError:  # their heads are compared all the same
        return None
    if len(found.only_in_one) > len(found.tensors) or found.heads.get(kind, np.empty(0)).shape != shape:
        return None
    return found.most_moved_head(kind)


def picture(found: NDArray[np.floating], chosen: attention_selector.Place) -> None:
    title, measure = _("Divergence of the heads"), _("divergence, bits")

    def figure() -> Figure:
        return figures.measure_of_heads(found, measure=measure, title=title)

    attention_selector.grid(
        found / max(float(np.nanmax(found)), 1e-9),
        chosen,
        figure,
        Picture("divergence", caption(title, measure), figure),
        key="side_by_side",
        texts=[[computations.bits(value) for value in row] for row in found],
        said={"text": _("{cell}: {text} bits")},
    )


# The chosen head in both runs, and the difference of its maps.
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
        map_words.say_pronoun(pair.first, pair.second)
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
