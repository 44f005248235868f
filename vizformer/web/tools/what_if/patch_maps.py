"""The maps of patches between two prompts, measured and estimated, with the same cell chosen in both."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer.analysis import Patched
from vizformer.web.tools.what_if import patched_cells
from vizformer.web.tools.what_if.one_cell import code, draw_one_cell
from vizformer.web.tools.what_if.patched_cells import Asked
from vizformer.web.tools.what_if.prompts import Prompts
from vizformer.web.tools.what_if.share_map import Place, chosen_cell, one_map, window
from vizformer.web.widgets import in_python, watched_work
from vizformer.web.words.i18n import _, show_note, show_text

ABREAST = 9  # columns of maps that stand side by side; wider ones stand one below the other


def maps(prompts: Prompts, asked: Asked) -> None:
    estimate = None
    if patched_cells.is_estimated(prompts):
        estimate = one_table(patched_cells.estimated(prompts, asked), asked)
    found = measured(prompts, asked)
    exact = None if found is None else one_table(found.recovered, asked)
    known = exact if exact is not None else estimate
    place = None
    if known is not None:
        names = rows_and_columns(prompts, asked, known.shape)
        first = window(known.shape)
        key = f"{asked.what}.{asked.kind}.{first[0]}.{first[1]}"
        chosen = chosen_cell(known, first, key)
        place = chosen if asked.layer is None else (asked.layer, *chosen)
        both = (
            (exact, _("Measured: a run of the model for each cell"), f"what_if.measured.{key}"),
            (estimate, _("Estimated: one gradient for all cells"), f"what_if.estimated.{key}"),
        )
        drawn = [(values, title, own) for values, title, own in both if values is not None]
        abreast = len(drawn) == 2 and known.shape[1] <= ABREAST
        places = st.columns(2) if abreast else [st.container() for __ in drawn]
        for there, (values, title, own) in zip(places, drawn, strict=True):
            with there:
                one_map(values, title, names, chosen, first, own)
        how_good(found, estimate, prompts.clean.checkpoint.is_own)
        name = f"{names[0][chosen[0]]}, {names[1][chosen[1]]}"
        draw_one_cell(prompts, asked, place, name, shares(exact, estimate, chosen))
    in_python.show(code(prompts, asked, place))


def measured(prompts: Prompts, asked: Asked) -> Patched | None:
    """What was measured; None until it is wanted, or where it takes too long."""
    runs = patched_cells.runs(prompts.clean, asked)
    return watched_work.bounded(
        patched_cells.measured,
        (prompts, asked),
        cost=watched_work.cost(prompts.clean, runs),
        too_long=_(
            "Patching each of the {n} cells takes too long here: choose another part, shorter prompts or a smaller "
            "model. In Python: vf.analysis.patch_runs.",
            n=f"{runs:,}",
        ),
        runs=runs,
        begin=_("Patch one cell after the other"),
        key="what_if.patch",
    )


def one_table(values: NDArray[np.floating], asked: Asked) -> NDArray[np.floating]:
    """Rows and columns; of one layer, its heads by positions."""
    return values if asked.layer is None else values[0]


def rows_and_columns(prompts: Prompts, asked: Asked, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """The labels of the rows and columns of a patch map."""
    heads = [_("H{head}", head=head) for head in range(shape[0 if asked.what == "heads_by_position" else 1])]
    if asked.what not in ("stream", "heads_by_position"):
        return [_("L{layer}", layer=layer) for layer in range(shape[0])], heads
    stack = "encoder" if asked.kind == "encoder" else "decoder"
    both = zip(prompts.clean.trace.tokens[stack], prompts.corrupted.trace.tokens[stack], strict=True)
    columns = [f"{at} {a.text if a.id == b.id else f'{b.text}→{a.text}'}" for at, (a, b) in enumerate(both)]
    if asked.what == "heads_by_position":
        return heads, columns
    return [*(_("into layer {layer}", layer=layer) for layer in range(shape[0] - 1)), _("at the end")], columns


def how_good(found: Patched | None, estimate: NDArray[np.floating] | None, is_own: bool) -> None:
    """The error of the estimate, where both are there."""
    if found is not None and estimate is not None:
        show_text(
            "The estimate is off by {mean} on average and by {most} at most; its correlation with what was measured "
            "is {r}.",
            mean=f"{found.mean_error:.3f}",
            most=f"{found.error:.3f}",
            r="−" if np.isnan(found.agreement) else f"{found.agreement:.3f}".replace("-", "−"),
        )
    if estimate is not None:
        show_note(
            "The estimate (attribution patching, Nanda 2023) is a linear approximation from the corrupted run to "
            "the clean one: fast, but wrong where the model is far from linear, as in a saturated softmax or a "
            "norm."
        )
    elif is_own:
        show_note("The gradient for the estimate takes too long here.")
    else:
        show_note(
            "VizFormer estimates by a gradient only for models that it computes itself: here each cell is measured."
        )


def shares(exact: NDArray[np.floating] | None, estimate: NDArray[np.floating] | None, cell: Place) -> str:
    """The measured and the estimated share of one cell, in words."""
    said = []
    if exact is not None:
        said.append(_("measured {share}", share=f"{exact[cell]:+.3f}".replace("-", "−")))
    if estimate is not None:
        said.append(_("estimated {share}", share=f"{estimate[cell]:+.3f}".replace("-", "−")))
    return _("Restored share: {shares}", shares=_("; ").join(said))
