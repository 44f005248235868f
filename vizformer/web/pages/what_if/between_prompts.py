"""Patches between two prompts: parts of the clean run in the corrupted one."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis import Kind, Patched, kinds
from vizformer.analysis.heads.maps import n_layers
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.pages.what_if import prompts as patched_cells
from vizformer.web.pages.what_if.prompts import Asked, Prompts, choose, second
from vizformer.web.pages.what_if.share_map import Place, chosen_cell, one_map, window
from vizformer.web.widgets import attention_selector, in_python, watched_work
from vizformer.web.widgets.choices import BESIDE, kind_of_attention, one_of
from vizformer.web.widgets.lab import aside
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note, show_text
from vizformer.web.words.part_names import signed

ABREAST = 9  # columns of maps that stand side by side; wider ones stand one below the other


def draw_between_prompts(subject: Subject, settings: DeltaGenerator) -> None:
    with settings:
        names = {
            "stream": _("residual stream"),
            "heads": _("outputs of heads"),
            "heads_by_position": _("outputs of heads, by position"),
            "patterns": _("patterns of heads"),
        }
        what = one_of(_("What is patched"), "whatif.what", names, labelled=False)
    corrupted = second(subject)
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        prompts = choose(subject, corrupted)
        if prompts is not None:
            explained(prompts)
    if prompts is None:
        return
    with picture:
        with settings:
            asked = patch_choice(prompts, what)
        maps(prompts, asked)


def explained(prompts: Prompts) -> None:
    """Explains what is measured, and what a cell means."""
    answer, other = (patched_cells.text_of(prompts, token) for token in (prompts.answer, prompts.other))
    pair = prompts.pair
    show_text(
        "Measured: the logit of “{answer}” minus that of “{other}”, {clean} for the clean prompt, "
        "{corrupted} for the corrupted one.",
        answer=answer,
        other=other,
        clean=signed(float(pair.difference(pair.clean.logits))),
        corrupted=signed(float(pair.difference(pair.corrupted.logits))),
    )
    st.text(_("Each cell: the share of the gap between these two values that its patch restores; 0 is none, 1 is all."))
    st.caption(
        _(
            "The model reads the corrupted prompt, with one part of its numbers replaced by those of the clean "
            "prompt. If the clean answer returns, that part carries the difference (Vig et al. 2020; Meng et al. "
            "2022)."
        )
    )


def patch_choice(prompts: Prompts, what: str) -> Asked:
    """The boxes that say where it is patched, and why they open on this layer, if nobody chose it."""
    trace = prompts.clean.trace
    usable = [kind for kind in kinds(trace) if what != "stream" or kind != "cross"]
    if what == "stream" and state.view().kind == "cross":  # nobody asked for it here
        state.update(kind="decoder")
    kind = kind_of_attention(
        usable, names={"encoder": _("Encoder"), "decoder": _("Decoder")} if what == "stream" else None
    )
    if what != "heads_by_position":
        return Asked(what, kind)  # type: ignore[arg-type]  # (one of `names`)
    layers = n_layers(trace, kind)
    state.fit(layer=layers)
    why = _open_on_a_layer(prompts, kind)
    st.selectbox(
        _("Layer"),
        range(layers),
        format_func=lambda layer: _("layer {layer}", layer=layer),
        label_visibility="collapsed",
        width=160,
        **state.bind("layer"),
    )
    aside(why)
    return Asked("heads_by_position", kind, state.view().layer)


def _open_on_a_layer(prompts: Prompts, kind: Kind) -> str:
    """Shows the layer in which a patch brings back most by the estimate, where nobody chose one; why, in a sentence."""
    if not patched_cells.is_estimated(prompts):
        return attention_selector.open_on_a_layer(prompts.clean, kind)
    found = patched_cells.estimated(prompts, Asked("heads_by_position", kind))
    layer = int(np.nanmax(found, axis=(1, 2)).argmax())
    if not state.suggest(layer=layer):
        return ""
    return _("Shown: layer {layer}. By the estimate it has the cell that restores most.", layer=layer)


# The maps of patches between two prompts, measured and estimated, with the same cell chosen in both.
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


# One patch: what the corrupted run says with it, beside both prompts; and the whole in Python.
def draw_one_cell(prompts: Prompts, asked: Asked, place: Sequence[int], name: str, shares: str) -> None:
    """The three runs: corrupted, with the patch, clean.

    Args:
        place: of the cell in the whole table.
        name: of the cell, in words.
        shares: what the maps say of it.
    """
    runs = patched_cells.said(prompts, asked, tuple(place))
    names = (_("corrupted"), _("patched"), _("clean"))
    rows = [
        Row(
            title,
            Number(run.answer, signed(run.answer)),
            Number(run.other, signed(run.other)),
            Number(run.difference, signed(run.difference)),
            f"“{run.best}”, {labels.percent(run.probability)}",
            kind="marked" if run is runs[1] else "",
        )
        for title, run in zip(names, runs, strict=True)
    ]
    answer, other = (patched_cells.text_of(prompts, token) for token in (prompts.answer, prompts.other))
    columns = (
        _("run"),
        _("logit of “{token}”", token=answer),
        _("logit of “{token}”", token=other),
        _("difference"),
        _("most probable token"),
    )
    st.html(table.to_html(columns, rows, caption=_("The chosen cell: {name}", name=name)))
    st.text(shares)


def code(prompts: Prompts, asked: Asked, place: Sequence[int] | None) -> list[str]:
    clean = prompts.clean
    target = f", target={clean.target!r}" if clean.target else ""
    layers = "" if asked.layer is None else f", layers=[{asked.layer}]"
    is_own = clean.checkpoint.is_own  # others are not estimated
    names = [
        *(["attribution_patches"] if is_own else []),
        *(["patch_of"] if place is not None else []),
        "patch_runs",
        "prompt_pair",
    ]
    imports = [f"from vizformer.analysis import {', '.join(names)}"]
    if place is not None:
        imports.append("from vizformer.model import Edit")
    lines = [
        *in_python.imports(clean.model),
        *imports,
        "",
        f"checkpoint = {in_python.loaded(clean.model)}",
        f"pair = prompt_pair(checkpoint, {clean.text!r}, {prompts.corrupted.text!r}{target}, row={prompts.row}, "
        f"answer={prompts.answer}, other={prompts.other})",
        *(
            [f"estimate = attribution_patches(checkpoint, pair, {asked.what!r}, {asked.kind!r}{layers})"]
            if is_own
            else []
        ),
        f"found = patch_runs(checkpoint, pair, {asked.what!r}, {asked.kind!r}{layers})",
        f"print(found.recovered.round(3){', found.mean_error, found.agreement' if is_own else ''})",
    ]
    if place is not None:
        both = len(clean.trace.tokens) == 2
        ids = f"checkpoint.trace({prompts.corrupted.text!r}{target if both else ''}, edit=Edit(patches=(patch,)))"
        lines += [
            f"patch = patch_of(pair, {asked.what!r}, {asked.kind!r}, {tuple(place)})",
            f"patched = {ids}",
            "print(*(pair.difference(run.logits) for run in (pair.corrupted, patched, pair.clean)))",
        ]
    return lines
