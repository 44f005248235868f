"""The laboratory Shared weights: one table in up to three places, counted for the open model and for the paper's."""

import streamlit as st

from vizformer.analysis.costs.weight_sharing import Sharing
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _


@laboratory
def sharing(subject: Subject) -> None:
    """Both models, with the table shared and with one for every place."""
    st.html(table.style())
    own, paper = computations.sharing(subject.model), computations.paper_sharing()
    lesson.ask(saved_question())
    for name, found in ((subject.title, own), (_("the paper, base model"), paper)):
        _table(name, found)
    uses, rows, width = max(map(len, own.tables)), max(own.rows), own.widths[0]
    lesson.formula(
        r"x_0 = \sqrt{d}\, E[\mathrm{id}], \qquad z = x_N E^\top, \qquad \text{saved: } (k - 1)\, V d",
        live=rf"({uses} - 1) \cdot {rows} \cdot {width} = {own.apart - own.stored:,}".replace(",", "{,}"),
        code=f"vocabulary, d = {rows}, {width}\n"
        "table = torch.nn.Embedding(vocabulary, d)\n"
        "unembedding = torch.nn.Linear(d, vocabulary, bias=False)\n"
        "unembedding.weight = table.weight  # the same parameter: one gradient, the sum of both uses\n"
        "parameters = sum(p.numel() for p in torch.nn.ModuleList([table, unembedding]).parameters())",
    )
    lesson.ask(tied_question())


def tied_question() -> lesson.Choice:
    return lesson.Choice(
        "training",
        "tied",
        _("A table is used for the input and for the logits. What becomes of its gradient in one step?"),
        [
            _("the gradients of both uses are added"),
            _("the last use overwrites the first"),
            _("only the logits' use is trained"),
        ],
        0,
        _(
            "It is one parameter, and the loss depends on it in two ways: the derivatives add. So a row learns from being "
            "read and from being predicted."
        ),
    )


def _table(name: str, found: Sharing) -> None:
    uses = {"encoder": _("encoder's input"), "decoder": _("decoder's input"), "logits": _("logits")}
    rows = [
        Row(
            (
                " + ".join(uses[use] for use in group),
                Number(size, f"{size:,} × {width}"),
                Number(size * width, f"{size * width:,}"),
                Number(size * width * len(group), f"{size * width * len(group):,}"),
            )
        )
        for group, size, width in zip(found.tables, found.rows, found.widths, strict=True)
    ]
    rows.append(
        Row(
            (
                _("all other weights"),
                "",
                Number(found.others, f"{found.others:,}"),
                Number(found.others, f"{found.others:,}"),
            )
        )
    )
    shared, apart = found.stored + found.others, found.apart + found.others
    rows.append(Row((_("together"), "", Number(shared, f"{shared:,}"), Number(apart, f"{apart:,}")), "sum"))
    columns = (_("used by"), _("size"), _("stored"), _("with one for every place"))
    st.html(table.to_html(columns, rows, caption=name))
    st.caption(_("Sharing saves {share} of the parameters that there would be.", share=f"{found.saved:.0%}"))


def saved_question() -> lesson.Number:
    """What would two further tables cost?"""
    paper = computations.paper_sharing()
    return lesson.Number(
        "training",
        "saved",
        _(
            "The paper's base model: 37,000 tokens, d = 512, one table in three places. How many parameters would two "
            "further tables add? In millions."
        ),
        (paper.apart - paper.stored) / 1e6,
        _(
            "2 · 37,000 · 512 = {n}: {stored} M would become {apart} M.",
            n=f"{paper.apart - paper.stored:,}",
            stored=f"{(paper.stored + paper.others) / 1e6:.1f}",
            apart=f"{(paper.apart + paper.others) / 1e6:.1f}",
        ),
        tolerance=0.5,
        written="{:.1f}".format,
    )
