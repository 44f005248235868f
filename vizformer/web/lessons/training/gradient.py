"""The laboratory Gradient: one training step on the reader's own sentence, matrix by matrix."""

import math

import streamlit as st

from vizformer.analysis.training.gradient import StepGradient
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

CODE = """torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
table = torch.nn.Embedding(20, 16)  # for the tokens and for the logits
ids, right = torch.tensor([[3, 1, 4]]), torch.tensor([1, 4, 5])
loss = F.cross_entropy(layer(table(ids))[0] @ table.weight.T, right)
loss.backward()
lengths = {name: p.grad.norm().item() for name, p in layer.named_parameters()}
total = torch.nn.utils.clip_grad_norm_([*layer.parameters(), table.weight], 1.0)  # before it was clipped"""


@laboratory
def gradient(subject: Subject) -> None:
    """Where the sentence would change the model most."""
    if not place.rows(subject):
        return
    st.html(table.style())
    if not computations.affordable(subject):
        st.info(_("This model or this text is too large for a gradient while you wait. Choose a smaller one."))
        return
    found = computations.step_gradient(subject, place.usual(subject))
    lesson.ask(largest_question(found, f"{subject}"))
    _table(subject, found)
    at = found.largest
    st.text(
        _(
            "The mean loss of your text is {loss}. All gradients together have the length {total}; that of the table of "
            "tokens has {table}, in {rows} of {n} rows.",
            loss=f"{found.loss:.4f}",
            total=f"{found.total:.4f}",
            table=f"{found.table:.4f}",
            rows=f"{found.table_rows:,}",
            n=f"{subject.config.vocab_size:,}",
        )
    )
    lesson.formula(
        r"\begin{aligned} g_W &= \partial L / \partial W \\ |g_W| &= \sqrt{\textstyle\sum_{ij} g_{ij}^2}, \qquad "
        r"|g| = \sqrt{\textstyle\sum_W |g_W|^2} \end{aligned}",
        live=rf"\begin{{aligned}} {_tex(found.kinds[at[1]])} \text{{ ({found.layers[at[0]]})}}\!: \; |g_W| &= "
        rf"{float(found.norms[at]):.4f} \\ |g| &= {found.total:.4f} \end{{aligned}}",
        code=CODE,
    )
    lesson.ask(rows_question(found, subject))


def rows_question(found: StepGradient, subject: Subject) -> lesson.Choice:
    return lesson.Choice(
        "training",
        "rows",
        _(
            "Your text has few different tokens. In how many of the {n} rows of the table of tokens is the gradient not 0?",
            n=f"{subject.config.vocab_size:,}",
        ),
        [_("in those of its tokens"), _("in nearly all"), _("in none: tables are not trained")],
        1 if found.table_rows > subject.config.vocab_size // 2 else 0,
        _(
            "In {rows}. Where the table is used for the logits too, the loss pushes every token down a little that was not "
            "the right one: p − q is 0 for none. With a table for the input alone, only rows that were read have one.",
            rows=f"{found.table_rows:,}",
        ),
        about=f"{subject}",
    )


def _tex(kind: str) -> str:
    """W_Q, W_O' and so on as LaTeX."""
    name, __, low = kind.partition("_")
    return rf"{name}_{{{low.rstrip(chr(39))}}}" + "'" * low.endswith("'")


def _short(layer: str) -> str:
    """A layer's name beside the picture, where there is little room."""
    return layer.replace("encoder", "enc").replace("decoder", "dec")


def largest_question(found: StepGradient, about: str) -> lesson.CellChoice | None:
    rows, columns = [_short(layer) for layer in found.layers], list(found.kinds)
    if max(len(rows), len(columns)) > LARGEST:
        return None
    at = found.largest
    return lesson.CellChoice(
        "training",
        "largest",
        _("One step is trained on your text. Which matrix of the layers has the longest gradient?"),
        lesson.Grid(rows, columns, found.shares),
        at,
        _(
            "{kind} of {layer}. The cells hold each matrix's share of the sum of squares. Usually those of W_Q and W_K "
            "are shorter: they come through the softmax, which passes little on where its weights are nearly 0 or 1.",
            kind=columns[at[1]],
            layer=found.layers[at[0]],
        ),
        about,
    )


def _table(subject: Subject, found: StepGradient) -> None:
    shown = [
        Row(
            (
                layer,
                *(
                    "" if math.isnan(value) else Number(float(value), f"{value:.3f}")
                    for value in map(float, found.norms[row])
                ),
            )
        )
        for row, layer in enumerate(found.layers)
    ]
    st.html(table.to_html(("", *found.kinds), shown, caption=_("Length of the gradient, |g_W|")))
    relative = found.norms / computations.matrix_lengths(subject.model)
    shown = [
        Row(
            (
                layer,
                *(
                    "" if math.isnan(value) else Number(float(value), f"{value:.4f}")
                    for value in map(float, relative[row])
                ),
            )
        )
        for row, layer in enumerate(found.layers)
    ]
    st.html(table.to_html(("", *found.kinds), shown, caption=_("The same over the length of the matrix, |g_W| / |W|")))
