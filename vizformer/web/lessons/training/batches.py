"""The laboratory Batches: how much of them is padding, mixed and by length."""

import streamlit as st

from vizformer.analysis.masks.padding import Batches
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

SIZES = (2, 3, 4, 5, 6, 8, 10, 15)
LARGEST_LINE = 48  # cells that are drawn of a sentence


@laboratory
def batches(subject: Subject) -> None:
    """The bundled sentences in batches, and the whole corpus as it was measured."""
    st.html(table.style())
    lengths = computations.sentence_lengths(subject.model)
    if not lengths:
        st.info(_("This model cannot read the bundled sentences."))
        return
    size = st.select_slider(_("Sentences in a batch"), SIZES, **lesson.setting("training.size", 5, SIZES))
    names = {"mixed": _("mixed"), "length": _("by length")}
    order = st.segmented_control(
        _("Order"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("training.order", "mixed", tuple(names)),
    )
    found = computations.batches(lengths, size, order or "mixed", 0)
    other = computations.batches(lengths, size, "length" if order == "mixed" else "mixed", 0)
    here, there = names[order or "mixed"], names["length" if order == "mixed" else "mixed"]
    rows = [
        Row(
            (
                name,
                Number(one.cells, f"{one.cells:,}"),
                Number(one.tokens, f"{one.tokens:,}"),
                Number(one.waste, f"{one.waste:.1%}"),
            )
        )
        for name, one in ((here, found), (there, other))
    ]
    columns = (_("order"), _("cells"), _("tokens"), _("padding"))
    st.html(table.to_html(columns, rows, bar=3, caption=_("{n} bundled sentences", n=len(lengths))))
    _picture(found)
    lesson.formula(
        r"\text{padding} = 1 - \frac{\sum \text{lengths}}{\sum_\text{batches} (\text{sentences} \cdot \text{longest})}",
        live=rf"1 - \frac{{{found.tokens}}}{{{found.cells}}} = {found.waste:.4f}",
        code="lengths = torch.tensor(measured)\n"
        f"lengths = lengths[torch.randperm(len(lengths))]  # or: lengths.sort().values\n"
        f"batches = lengths.split({size})\n"
        "cells = sum(len(batch) * batch.max() for batch in batches)\n"
        "padding = 1 - lengths.sum() / cells",
        given={"measured": list(lengths)},
    )
    lesson.ask(cells_question())
    _corpus()


def _picture(found: Batches) -> None:
    """A line for each sentence of the first batches: squares for tokens, dots for padding."""
    lines = []
    for batch in found.batches[:3]:
        lines += ["■" * min(n, LARGEST_LINE) + "·" * (min(batch.longest, LARGEST_LINE) - n) for n in batch.lengths]
        lines.append("")
    st.caption(_("The first batches, a sentence a line: ■ a token, · padding"))
    st.code("\n".join(lines).strip(), language=None)


def cells_question() -> lesson.Number:
    return lesson.Number(
        "training",
        "cells",
        _("A batch of four sentences of 3, 5, 4 and 12 tokens. How many of its cells are padding?"),
        4 * 12 - 24,
        _("4 · 12 = 48 cells, 24 of them with tokens. One long sentence makes half of the work useless."),
    )


def _corpus() -> None:
    notes = computations.notes("padding")
    st.markdown(_("**The whole corpus**"))
    names = {"mixed": _("mixed"), "length": _("by length")}
    shares = {name: 1 - notes[name]["tokens"] / notes[name]["cells"] for name in names}
    rows = [
        Row(
            (
                title,
                Number(notes[name]["cells"], f"{notes[name]['cells']:,}"),
                Number(notes[name]["tokens"], f"{notes[name]['tokens']:,}"),
                Number(shares[name], f"{shares[name]:.1%}"),
            )
        )
        for name, title in names.items()
    ]
    columns = (_("order"), _("cells"), _("tokens"), _("padding"))
    caption = _(
        "The {n} sentence pairs that zh-en learned from, in {batches} batches",
        n=f"{notes['pairs']:,}",
        batches=notes["length"]["batches"],
    )
    st.html(table.to_html(columns, rows, bar=3, caption=caption))
    st.caption(
        _(
            "Measured once and bundled; in a checkout this makes it again: {command}",
            command="`python -m recipes.padding_waste cmn.txt padding.json`",
        )
    )
    lesson.ask(order_question())


def order_question() -> lesson.Choice:
    return lesson.Choice(
        "training",
        "order",
        _("Sentences of equal length stand together in a batch. What is still drawn at random?"),
        [
            _("nothing"),
            _("the order of the batches, and which of the equally long ones meet"),
            _("the order of the tokens"),
        ],
        1,
        _(
            "Otherwise a training would read all short sentences first and all long ones at its end. Here the lengths also "
            "get a little noise before they are sorted, so that no two epochs have the same batches."
        ),
    )
