"""The weights that differ most between two models of the same shape."""

import math

import streamlit as st

from vizformer.analysis.side_by_side import MovedTensor, MovedWeights
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.widgets import data_table, watched_work
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, ngettext

AT_ONCE = 20_000_000  # parameters that are compared without being asked for: about two seconds
ROW, MOST_ROWS = 35, 12  # px, and rows of the table before it scrolls


def draw_weights(pair: Pair) -> None:
    """The tensors, sorted by how far they are apart; nothing for one model on two texts."""
    if not pair.two_models:
        return
    st.subheader(_("Which weights differ"), anchor=False)
    models = [one.checkpoint.model for one in (pair.first, pair.second)]
    count = sum(parameter.numel() for parameter in models[0].parameters())
    tensors = len(list(models[0].parameters()))
    found = watched_work.watched(
        computations.moved,
        (pair.first.model, pair.second.model),
        quick=count < AT_ONCE,
        runs=tensors,
        begin=_("Compare all weights"),
        key="side_by_side.moved",
        said=lambda done, n: _("{done} of {n} tensors", done=done, n=n),
        takes=_("{n} million numbers of each model are compared. You can stop that.", n=f"{count / 1e6:,.0f}"),
    )
    if found is not None:
        table(found)


def table(found: MovedWeights) -> None:
    """One row a tensor, and what all of them say together."""
    st.text(
        _(
            "All weights together have moved by {share} of their own length.",
            share="∞" if math.isinf(found.relative) else f"{found.relative:.2%}",
        )
    )
    data_table.show(
        {
            _("Tensor"): [one.name for one in found.tensors],
            _("Shape"): [" × ".join(map(str, one.shape)) for one in found.tensors],
            _("Moved, share of its length"): [_rounded(one.relative) for one in found.tensors],
            _("Length of the difference"): [_rounded(one.distance) for one in found.tensors],
            _("Length in the first"): [_rounded(one.length) for one in found.tensors],
            _("Largest singular values of the difference"): [_values(one) for one in found.tensors],
            _("Share of the largest one"): [_share(one) for one in found.tensors],
        },
        hide_index=True,
        height=ROW * (1 + min(len(found.tensors), MOST_ROWS)) + 2,
        key="side_by_side.weights",
    )
    st.caption(
        _(
            "Lengths are Frobenius norms: the root of the sum of all squares. The share of the largest singular value is "
            "its square by that sum: near 1, the change has one direction (a low rank, as LoRA makes it). A tensor that is "
            "0 in the first model has nothing to be measured by, and stands at the end. A click on a title sorts."
        )
    )
    if found.only_in_one:
        n = len(found.only_in_one)
        st.caption(
            _(
                "{tensors}, since the other model has none of this name and shape: {names}",
                tensors=ngettext("{n} tensor is not compared", "{n} tensors are not compared", n),
                names=plain(", ".join(found.only_in_one[:6]) + (" …" if n > 6 else "")),
            )
        )


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _values(one: MovedTensor) -> str:
    return "" if one.singular is None else ", ".join(f"{value:.3g}" for value in one.singular)


def _share(one: MovedTensor) -> float | None:
    if not one.singular or not one.distance:
        return None
    return _rounded(min(1.0, (one.singular[0] / one.distance) ** 2))
