"""The heads of the model in training: one head beside that of the untrained model, and induction along the training."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.analysis.heads import telling_head
from vizformer.analysis.heads.induction import strongest_head
from vizformer.training.live import Plan
from vizformer.training.training_queue import State
from vizformer.web.catalogue import trainings
from vizformer.web.link.view import usual_query
from vizformer.web.widgets import chart, row_names, telling
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_markdown

CHOSEN = "train.place_chosen"  # whether the reader chose a head, of models of which size


def draw_heads(name: str, plan: Plan, now: State, index: int, text: str) -> None:
    st.subheader(_("Attention"), anchor=False)
    kinds = list(trainings.look(name, index, text).maps)
    which, layer_box, head_box, beside = st.columns([4, 1, 1, 2], vertical_alignment="bottom")
    names = {name: labels.kind_label(name) for name in kinds}
    kind = which.segmented_control(
        _("Kind of attention"),
        kinds,
        format_func=names.__getitem__,
        default=kinds[-1],
        required=True,
        key=f"train.site.{len(kinds)}",
        persist_state="session",
    )
    size = (plan.n_layers, plan.n_heads)
    layer_key, head_key = f"train.layer.{plan.n_layers}", f"train.head.{plan.n_heads}"
    why = ""
    if st.session_state.get(CHOSEN) != size:
        (st.session_state[layer_key], st.session_state[head_key]), why = _telling(name, now, kind, text)
    bound: dict[str, Any] = {"on_change": _choose, "args": (size,), "persist_state": "session"}
    layer = layer_box.selectbox(_("Layer"), range(plan.n_layers), key=layer_key, **bound)
    head = head_box.selectbox(_("Head"), range(plan.n_heads), key=head_key, **bound)
    compared = beside.toggle(_("Beside the untrained model"), key="train.compared", persist_state="session")
    st.session_state["train.place"] = {"kind": kind, "layer": layer, "head": head}
    shown = [(_("Untrained"), 0), (_("Now"), index)] if compared else [("", index)]
    for place, ((title, number), column) in enumerate(zip(shown, st.columns(len(shown)), strict=True)):
        look = trainings.look(name, number, text)
        rows_of, columns_of = (look.tokens[stack] for stack in labels.stacks(kind))
        queries, keys = row_names.following(rows_of, kind), labels.texts(columns_of)
        maps = look.maps[kind]
        figure = figures.attention_heatmap(
            maps.weights[layer, head], queries, keys, reasons=maps.reasons[layer], title=title
        )
        chart.show(figure, key=f"train.map.{place}", on=column)
        if compared:
            column.text(_("Its answer: {answer}", answer=look.own or "–"))
    if why:
        st.caption(why)


def _choose(size: tuple[int, int]) -> None:
    st.session_state[CHOSEN] = size


def _telling(name: str, now: State, kind: Kind, text: str) -> tuple[tuple[int, int], str]:
    """The head whose row of the last word says most, as far as the training has come, and why it is shown."""
    look = trainings.look(name, len(now.progress.snapshots) - 1, text)
    queries, keys = (look.tokens[stack] for stack in labels.stacks(kind))
    query = usual_query(queries)
    found = telling_head.telling(
        look.maps[kind].weights[:, :, query], telling_head.words_to_look_at(keys, None if kind == "cross" else query)
    )
    if found is None:
        return (0, 0), ""
    return (found.layer, found.head), telling.why(found, queries[query], keys[found.key])


def induction(name: str, plan: Plan, now: State, index: int) -> None:
    """The two halves of an induction head, in every head, along the training."""
    st.subheader(_("Do induction heads form?"), anchor=False)
    show_markdown(
        "Measured on random tokens that come twice. A **previous-token head** looks at the token before. An "
        "**induction head** looks at what followed the same token the first time: it builds on the previous-token "
        "head of a layer before it, which is why one layer is not enough."
    )
    kept = now.progress.snapshots
    steps = np.array([snapshot.step for snapshot in kept], dtype=np.int32)
    found = [trainings.scores(name, number) for number in range(len(kept))]
    titles = {"previous_token": _("Previous token"), "induction": _("Induction")}
    for column, (score, title) in zip(st.columns(2, gap="medium"), titles.items(), strict=True):
        values = np.stack([getattr(one, score) for one in found])
        figure = figures.score_curves(steps, values, at=kept[index].step, last=plan.steps, title=title)
        chart.show(figure, key=f"train.score.{score}", on=column)
        layer, head, strongest = strongest_head(values[index])
        column.caption(
            _(
                "Strongest at this step: layer {layer}, head {head} with {score}",
                layer=layer,
                head=head,
                score=f"{strongest:.2f}",
            )
        )
