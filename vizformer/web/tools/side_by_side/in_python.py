"""The Python code that computes what the page shows; it runs on its own."""

import streamlit as st

from vizformer.web.catalogue import trainings
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.side_by_side.answers import chosen_row
from vizformer.web.tools.side_by_side.heads import shown
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.tools.side_by_side.streams import chosen_stack
from vizformer.web.widgets.folded_box import folded
from vizformer.web.widgets.in_python import loaded
from vizformer.web.words.i18n import _


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
    if pair.two_models:
        names.insert(2, "moved_weights")
    lines = [
        "import vizformer as vf",
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
    if pair.two_models:
        lines += [
            "for tensor in moved_weights(first, second).tensors[:5]:",
            "    print(tensor.name, tensor.relative, tensor.singular)",
        ]
    return "\n".join(lines)
