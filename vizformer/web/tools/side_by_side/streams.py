"""How the residual streams of both runs point, layer by layer and position by position."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.side_by_side.streams import DOMINANT
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.one_head import both_texts, window
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.widgets import chart, lesson
from vizformer.web.words.i18n import _, show_text

STACK = "beside.stack"


def chosen_stack(pair: Pair) -> str:
    stacks = [stack for stack in ("encoder", "decoder") if stack in pair.first.trace.tokens]
    return lesson.value(STACK, stacks[0], stacks)


def draw_streams(pair: Pair) -> None:
    """The cosines of one stack; of the embeddings first, and of what every layer ends with."""
    st.subheader(_("Directions of the residual streams"), anchor=False)
    tokens = [one.trace.tokens for one in (pair.first, pair.second)]
    names = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    stacks = [stack for stack in names if stack in tokens[0]]
    if len(stacks) > 1:
        usual = lesson.setting(STACK, stacks[0], stacks)
        st.segmented_control(_("Stack"), stacks, format_func=names.__getitem__, required=True, **usual)
    stack = chosen_stack(pair)
    compared = computations.cosines(pair, stack)
    found = compared.cosines
    positions = window(found.shape[1], _("Positions from"), f"beside.positions{stack[0]}")
    columns = both_texts(tokens[0][stack], tokens[1][stack], positions)
    shown = found[:, positions.start : positions.start + len(columns)]
    points = [_("embeddings"), *(_("layer {layer}", layer=layer) for layer in range(len(found) - 1))]
    chart.show(
        figures.stream_map(shown, points, columns, title=_("Cosine of the residual streams of both runs")),
        key="side_by_side.streams",
    )
    if np.isfinite(found).any():
        layer, position = np.unravel_index(int(np.where(np.isfinite(found), found, 2.0).argmin()), found.shape)
        names_of_columns = both_texts(tokens[0][stack], tokens[1][stack], range(found.shape[1]))
        show_text(
            "They differ most at {point}, position {position} “{token}”: cosine {cosine}.",
            point=points[int(layer)],
            position=int(position),
            token=names_of_columns[int(position)],
            cosine=f"{found[layer, position]:.3f}".replace("-", "−"),
        )
    said = [
        _("1: both streams have the same direction; 0: they are orthogonal; below 0: they have opposite directions.")
    ]
    if any(compared.left_out):
        where = (
            _("{point}: {dimensions}", point=point, dimensions=", ".join(map(str, dimensions)))
            for point, dimensions in zip(points, compared.left_out, strict=True)
            if dimensions
        )
        said.append(
            _(
                "The cosines leave out the dimensions that alone make up more than {share} of the "
                "squared length of most rows: {where}. With these dimensions they are from {low} to "
                "{high}.",
                share=f"{DOMINANT:.0%}",
                where=_("; ").join(where),
                low=f"{np.nanmin(compared.whole):.3f}".replace("-", "−"),
                high=f"{np.nanmax(compared.whole):.3f}".replace("-", "−"),
            )
        )
    if len(tokens[0][stack]) != len(tokens[1][stack]):
        said.append(_("Only the first {n} positions are compared, which both texts have.", n=found.shape[1]))
    if pair.two_models:
        said.append(
            _(
                "Between two models this is meaningful only if one was trained further from the other: models with "
                "different random initial weights have different axes."
            )
        )
    st.caption(" ".join(said))
