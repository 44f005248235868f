"""What has moved between two models of one shape: in a sentence, as a picture of all layers, and tensor by tensor."""

import math

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.analysis.side_by_side import MovedPart, MovedWeights
from vizformer.analysis.side_by_side.weights import PARTS
from vizformer.errors import TraceError
from vizformer.figures.figure import Figure
from vizformer.web.pages.side_by_side import pair as computations
from vizformer.web.pages.side_by_side.pair import Pair
from vizformer.web.widgets import attention_selector, data_table, watched_work
from vizformer.web.widgets.laboratories import folded
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note

AT_ONCE = 200_000_000  # parameters that are compared without being asked for: about two seconds
WITH_SINGULAR = AT_ONCE // 10  # the same with singular values
FAR = 0.1  # of the attention of a head that goes elsewhere
ROW, MOST_ROWS = 35, 12  # px, and rows of the table before it scrolls
_CHOSEN = "side_by_side.part"


def moved(pair: Pair, *, singular: bool = False) -> MovedWeights | None:
    """How far the weights are apart; None until that is wanted, where it takes long.

    Raises:
        TraceError: models of other shapes, of which chance makes a few tensors alike.
    """
    if not (pair.first.checkpoint.is_own and pair.second.checkpoint.is_own):
        raise TraceError(
            "VizFormer compares weights by their roles, which it knows only of models that it computes itself. "
            "For recorded code it compares heads, streams and answers."
        )
    parameters = list(pair.first.checkpoint.model.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    found = watched_work.watched(
        computations.moved,
        (pair.first.model, pair.second.model, singular),
        quick=count < (WITH_SINGULAR if singular else AT_ONCE),
        runs=len(parameters),
        begin=_("Compare all weights"),
        key=f"side_by_side.moved.{singular}",
        said=lambda done, n: _("{done} of {n} tensors", done=done, n=n),
        takes=_("VizFormer compares {n} million numbers of each model. You can stop it.", n=f"{count / 1e6:,.0f}"),
    )
    if found is not None and len(found.only_in_one) > len(found.tensors):
        raise TraceError("The two models have different shapes: most of their weights have no counterpart.")
    return found


def draw_sentence(pair: Pair, found: MovedWeights, kind: Kind | None = None) -> None:
    """What moved most, how many heads of a kind look elsewhere on the sentence (None: it is not read), what is left out."""
    changed = [one for one in found.parts if one.distance]
    if changed:
        said = [
            _(
                "Moved most: {part}, by {share} of its length ({n} of {total} tensors moved).",
                part=name(changed[0], several=len(found.heads) > 1),
                share=share(changed[0]),
                n=sum(one.distance > 0 for one in found.tensors),
                total=len(found.tensors),
            )
        ]
        for one in found.parts:
            if one.part == "embedding" and one != changed[0]:
                moved_too = _("The token embeddings moved by {share}.", share=share(one))
                said.append(moved_too if one.distance else _("The token embeddings did not move."))
        attention = kind or next(iter(found.heads), None)
        if attention is not None and (place := found.most_moved_head(attention)) is not None:
            said.append(
                _(
                    "Of the heads, layer {layer}, head {head} moved most, by {share} of its own weights.",
                    layer=place[0],
                    head=place[1],
                    share=labels.percent(float(found.heads[attention][place])),
                )
            )
        if kind is not None:
            apart = computations.elsewhere(pair, kind)
            far = {"n": int((apart > FAR).sum()), "total": apart.size}
            said.append(
                _(
                    "On this sentence {n} of {total} heads move more than a tenth of their attention to other keys.",
                    **far,
                )
            )
    else:
        said = [_("The weights of both models are the same: nothing moved.")]
    if found.rounded:
        said.append(_("Differences by rounding to a 16-bit format do not count."))
    if rows := max(one.left_out for one in found.tensors):
        said.append(_("Rows of tables that only one model has, or for another token: {n}; they are left out.", n=rows))
    if found.only_in_one:
        names = ", ".join(found.only_in_one[:3]) + (" …" if len(found.only_in_one) > 3 else "")
        said.append(_("Not compared, as only one model has them in this shape: {names}.", names=names))
    st.text(" ".join(said))


def name(one: MovedPart, several: bool) -> str:
    """What a part is called; with the attention that it belongs to, where there are several."""
    if one.layer < 0:
        return column(one.part)
    where = labels.kind_label(one.kind) if one.kind else {"encoder": _("Encoder"), "decoder": _("Decoder")}[one.stack]
    said = _("layer {layer}, {part}", layer=one.layer, part=column(one.part))
    return f"{said} ({where})" if several else said


def column(part: str) -> str:
    known = {"feedforward": _("network"), "norms": _("norms"), "unembedding": _("unembedding")}
    return (known | {"embedding": _("token embedding"), "position_embedding": _("position embedding")}).get(part, part)


def share(one: MovedPart) -> str:
    return "∞" if math.isinf(one.relative) else labels.percent(one.relative)


def draw_parts(found: MovedWeights, kind: Kind) -> None:
    """A cell for each part of each layer; a click shows the head of that layer whose weights moved most."""
    grid, title = found.grid(kind), _("How far the weights moved, by their length")
    there = [at for at in range(len(PARTS)) if np.isfinite(grid[:, at]).any()]
    grid, columns = grid[:, there], [column(PARTS[at]) for at in there]

    def figure() -> Figure:
        return figures.measure_of_heads(grid, measure=_("share"), columns=columns, title=title)

    def head(cell: attention_selector.Place) -> attention_selector.Place:
        st.session_state[_CHOSEN] = cell
        return cell[0], int(np.nan_to_num(found.heads[kind][cell[0]]).argmax())

    attention_selector.grid(
        grid / max(float(np.nanmax(grid)), 1e-9),
        st.session_state.get(_CHOSEN),
        figure,
        None,
        key="side_by_side.parts",
        columns=columns,
        chooses=head,
        texts=[[labels.percent(value) for value in row] for row in grid],
        said={"grid_label": title, "cell": "{row_token}, {column_token}", "text": "{cell}: {text}", "none": title},
    )


def draw_alone(pair: Pair) -> None:
    """The weights of two models whose runs cannot be compared."""
    found = moved(pair) if pair.two_models else None
    if found is None:
        return
    draw_sentence(pair, found)
    for kind in list(found.heads)[:1]:
        draw_parts(found, kind)
    draw_weights(pair)


def draw_weights(pair: Pair) -> None:
    """The tensors, sorted by how far they are apart; nothing for one model on two texts."""
    if not pair.two_models:
        return
    with folded(_("Which weights differ, tensor by tensor"), key="side_by_side.tensors") as is_open:
        if is_open and (found := moved(pair, singular=True)) is not None:
            draw_table(found)


def draw_table(found: MovedWeights) -> None:
    largest = [(one.singular or (0.0,))[0] / (one.distance or 1.0) for one in found.tensors]
    data_table.show(
        {
            _("Tensor"): [one.name for one in found.tensors],
            _("Shape"): [" × ".join(map(str, one.shape)) for one in found.tensors],
            _("Change, share of its length"): [_rounded(one.relative) for one in found.tensors],
            _("Largest singular values of the difference"): [
                ", ".join(f"{value:.3g}" for value in one.singular or ()) for one in found.tensors
            ],
            _("Share of the largest one"): [_rounded(min(1.0, one**2)) if one else None for one in largest],
        },
        hide_index=True,
        height=ROW * (1 + min(len(found.tensors), MOST_ROWS)) + 2,
        key="side_by_side.weights",
    )
    show_note(
        "Lengths are Frobenius norms: the root of the sum of all squares. The share of the largest singular "
        "value is its square divided by that sum: near 1, the change has one direction (a low rank, as with "
        "LoRA). Tensors that are 0 in the first model come last. A click on a title sorts."
    )


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None
