"""What both runs predict at one position, side by side."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.side_by_side.runs import DOMINANT
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache, subject_cache, trainings
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.side_by_side import pair as computations
from vizformer.web.pages.side_by_side.heads import both_texts, shown, window
from vizformer.web.pages.side_by_side.pair import Pair
from vizformer.web.widgets import chart, lesson, position_choice
from vizformer.web.widgets.in_python import imports, loaded
from vizformer.web.widgets.laboratories import folded
from vizformer.web.widgets.position_choice import ask_why
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_info, show_note, show_text

STACK = "beside.stack"


def draw_answers(pair: Pair) -> None:
    """The most probable tokens of either run, with the probability that both give them."""
    st.subheader(_("What they predict"), anchor=False)
    if not all(model_cache.predicts(one.model) for one in (pair.first, pair.second)):
        show_info("A model whose files contain no output layer makes no predictions to compare.")
        return
    rows = chosen_rows(pair)
    found = computations.answers(pair, *rows)
    first, second = pair.names
    listed = [
        Row(
            name,
            Number(one.first, labels.percent(one.first)),
            Number(one.second, labels.percent(one.second)),
            Number(one.second - one.first, _points(one.second - one.first)),
        )
        for name, one in zip(labels.told_apart([one.token for one in found.tokens]), found.tokens, strict=True)
    ]
    columns = (
        _("token"),
        _("first: {name}", name=first),
        _("second: {name}", name=second),
        _("second − first, percentage points"),
    )
    st.html(table.style() + table.to_html(columns, listed, caption=_("The most probable tokens of either")))
    best = subject_cache.predictions(pair.first, rows[0])[0].token.text
    ask_why(best, rows[0], key="side_by_side.why")
    show_text(
        "The two distributions are {bits} bits apart (Jensen-Shannon divergence: 0 the same, 1 nothing in common).",
        bits=f"{found.divergence:.4f}",
    )


def chosen_rows(pair: Pair) -> tuple[int, int]:
    """The position in both runs: the one that was chosen, where the texts are equally long, else the last ones."""
    stack = position_choice.stack(pair.first)
    if len(pair.first.trace.tokens[stack]) == len(pair.second.trace.tokens[stack]):
        position_choice.choose(pair.first, key="side_by_side.position", usual=usual_row(pair))
    else:
        show_note("The texts are not equally long: these are the predictions at their last tokens.")
    return chosen_row(pair)


def chosen_row(pair: Pair) -> tuple[int, int]:
    """The position in both runs, without drawing anything."""
    stack = position_choice.stack(pair.first)
    first, second = (len(one.trace.tokens[stack]) for one in (pair.first, pair.second))
    if first != second:
        return first - 1, second - 1
    chosen = state.view().position
    row = usual_row(pair) if chosen is None else min(chosen, first - 1)
    return row, row


def usual_row(pair: Pair) -> int:
    """After the text, at a [MASK]; else where the two first find different tokens most probable."""
    asked = position_choice.asked_position(pair.first)
    if asked is not None:
        return asked
    differing = computations.differing_rows(pair)
    return differing[0] if differing else position_choice.unsure_position(pair.first)


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


# How the residual streams of both runs point, layer by layer and position by position.
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


# The Python code that computes what the page shows; it runs on its own.
def draw_in_python(pair: Pair) -> None:
    with folded(_("The same in Python"), key="side_by_side.python") as is_open:
        if is_open:
            st.code(code(pair), language="python", wrap_lines=True)


def opening(model: ModelRef, path: str) -> str:
    """What opens a model; of the training that comes with VizFormer also each step."""
    if model.source != "training" or model.name != trainings.example().name:
        return loaded(model, path)
    folder = f"asset('trainings', {model.name!r})"
    if not model.revision:
        return f"vf.load({folder})"
    return f"Run({folder}).after({model.revision})"


def code(pair: Pair) -> str:
    """Both runs, the heads, the maps of the chosen one, the streams, the answers and the weights."""
    first, second = pair.first, pair.second
    kind, (layer, head) = state.view().kind, shown(pair)
    row, other_row = chosen_row(pair)
    target = f", target={first.target!r}" if first.target else ""
    opened = opening(first.model, "path/to/the/model")
    other = opening(second.model, "path/to/the/second/model") if pair.two_models else "first"
    names = ["head_divergences", "head_pair", "stream_cosines", "two_answers", "two_runs"]
    if by_weight := pair.two_models and first.checkpoint.is_own and second.checkpoint.is_own:
        names.insert(2, "moved_weights")
    lines = [
        *imports(first.model, second.model),
        f"from vizformer.analysis import {', '.join(names)}",
        *(["from vizformer.assets import asset"] if "asset(" in opened + other else []),
        *(["from vizformer.training.runs import Run"] if "Run(" in opened + other else []),
        "",
        f"first = {opened}",
        f"second = {other}",
        f"trace = first.trace({first.text!r}{target})",
        f"other = second.trace({second.text!r}{target})",
        "runs = two_runs(first, trace, second, other)",
        f"print(head_divergences(runs, {kind!r}).round(3))",
        f"head = head_pair(runs, {kind!r}, {layer}, {head})",
        "print(head.difference, head.divergence)",
        f"streams = stream_cosines(runs, {chosen_stack(pair)!r})",
        "print(streams.cosines.round(3), streams.left_out)",
        f"print(two_answers(runs, {row}, {other_row}))",
    ]
    if by_weight:
        lines += [
            "for tensor in moved_weights(first, second).tensors[:5]:",
            "    print(tensor.name, tensor.relative, tensor.singular)",
        ]
    return "\n".join(lines)
