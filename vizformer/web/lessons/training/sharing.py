"""A laboratory of the lesson Training: one table that is read and predicted with, drawn and counted."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.parameter_count import Sharing
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.explain.arrays import float64
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import labels

lab = Laboratory("training", "sharing")
USES = ("encoder", "decoder", "logits")
ROWS, COLUMNS = 12, 8  # of the tables, in the picture


@cached
def count_sharing(model: ModelRef) -> Sharing:
    return parameter_count.sharing(model_cache.checkpoint(model).model)


paper_sharing = cached(parameter_count.paper_sharing)


@lab.draws
def draw_shared_embeddings(subject: Subject) -> None:
    st.html(table.style())
    _rows(subject)
    own = count_sharing(subject.model)
    for name, found in ((subject.title, own), (lab.text("paper"), paper_sharing())):
        _table(name, found)
    lesson.ask(saved(subject))
    uses, rows, width = max(map(len, own.tables)), max(own.rows), own.width
    lesson.formula(
        r"x_0 = \sqrt{d}\, E[\mathrm{id}], \qquad z = x_N E^\top, \qquad \text{saved: } (k - 1)\, V d",
        live=rf"({uses} - 1) \cdot {rows} \cdot {width} = {own.apart - own.stored:,}".replace(",", "{,}"),
        code=f"vocabulary, d = {rows}, {width}\n"
        "table = torch.nn.Embedding(vocabulary, d)\n"
        "unembedding = torch.nn.Linear(d, vocabulary, bias=False)\n"
        "unembedding.weight = table.weight  # the same parameter: one gradient, the sum of both uses\n"
        "parameters = sum(p.numel() for p in torch.nn.ModuleList([table, unembedding]).parameters())",
    )
    lesson.ask(tied(subject))


@cached
def token_rows(subject: Subject, stack: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows of the embedding and of the unembedding matrix for the first tokens of a stack, cut to COLUMNS numbers."""
    model, ids = subject.checkpoint.model, [token.id for token in subject.trace.tokens[stack][:ROWS]]
    read = float64(model.token_table("encoder" if stack == "encoder" else "decoder").weight[ids])[:, :COLUMNS]
    if not model_cache.predicts(subject.model):
        return read, None
    output = model.embedding if model.unembedding is None else model.unembedding
    return read, float64(output.weight[ids])[:, :COLUMNS]


def _rows(subject: Subject) -> None:
    """The rows that tokens enter with beside those that give them their logits: the same picture where they are tied."""
    stack = "decoder" if "decoder" in subject.trace.tokens else "encoder"
    read, predicted = token_rows(subject, stack)
    names, places = labels.numbered(subject.trace.tokens[stack][:ROWS]), st.columns(2)
    chart.show(figures.matrix_heatmap(read, names, title=lab.text("read")), key="training.read", on=places[0])
    if predicted is not None:
        picture = figures.matrix_heatmap(predicted, names, title=lab.text("predicted"))
        chart.show(picture, key="training.predicted", on=places[1])
        lab.say("tied", form="same" if np.array_equal(read, predicted) else "apart", n=COLUMNS)


def _table(name: str, found: Sharing) -> None:
    uses = lab.texts("use", USES)
    rows = [
        Row(
            " + ".join(uses[use] for use in group),
            Number(size, f"{size:,} × {found.width}"),
            *numbers(",", size * found.width, size * found.width * len(group)),
        )
        for group, size in zip(found.tables, found.rows, strict=True)
    ]
    rows.append(Row(lab.text("rest"), "", *numbers(",", found.others, found.others)))
    shared, apart = found.stored + found.others, found.apart + found.others
    rows.append(Row(lab.text("together"), "", *numbers(",", shared, apart), kind="sum"))
    columns = lab.columns("used", "size", "stored", "apart")
    st.html(table.to_html(columns, rows, caption=name))
    lab.note("saves", share=f"{found.saved:.0%}")


@lab.asks("saved")
def saved(subject: Subject) -> lesson.Number:
    paper = paper_sharing()
    more = paper.apart - paper.stored
    stored, apart = (f"{(tables + paper.others) / 1e6:.1f}" for tables in (paper.stored, paper.apart))
    wrong = {"one": more / 2e6, "three": 1.5 * more / 1e6, "whole": (paper.apart + paper.others) / 1e6}
    said = lab.asked("saved", wrong=wrong, n=f"{more:,}", stored=stored, apart=apart)
    return lesson.Number(answer=more / 1e6, tolerance=0.5, written="{:.1f}".format, **said)


@lab.asks("tied")
def tied(subject: Subject) -> lesson.Choice:
    return lab.choice("tied", ("added", "last", "logits"), "added")
