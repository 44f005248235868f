"""One patch: what the corrupted run says with it, beside both prompts; and the whole in Python."""

from collections.abc import Sequence

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.tools.what_if import patched_cells
from vizformer.web.tools.what_if.patched_cells import Asked
from vizformer.web.tools.what_if.prompts import Prompts
from vizformer.web.widgets import in_python
from vizformer.web.words import labels
from vizformer.web.words.ablated_parts import signed
from vizformer.web.words.i18n import _


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
    names = "attribution_patches, patch_runs, prompt_pair"
    imports = [
        f"from vizformer.analysis import {names if place is None else names.replace(' patch', ' patch_of, patch')}"
    ]
    if place is not None:
        imports.append("from vizformer.model import Edit")
    lines = [
        "import vizformer as vf",
        *imports,
        "",
        f"checkpoint = {in_python.loaded(clean.model)}",
        f"pair = prompt_pair(checkpoint, {clean.text!r}, {prompts.corrupted.text!r}{target}, row={prompts.row}, "
        f"answer={prompts.answer}, other={prompts.other})",
        f"estimate = attribution_patches(checkpoint, pair, {asked.what!r}, {asked.kind!r}{layers})",
        f"found = patch_runs(checkpoint, pair, {asked.what!r}, {asked.kind!r}{layers})",
        "print(found.recovered.round(3), found.mean_error, found.agreement)",
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
