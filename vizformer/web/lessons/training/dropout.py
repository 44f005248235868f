"""A laboratory of the lesson Training: the loss of the same text, pass by pass, while dropout is on."""

import numpy as np
import streamlit as st

from vizformer.analysis.training import dropout
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.training.measurements import paper_table
from vizformer.web.lessons.training.predictions import affordable, hidden_now, losses, prediction, say_unless_predicts
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("training", "dropout")
RATES = (0.0, 0.1, 0.2, 0.3, 0.5)
PASSES = 4  # over the text
PAPER = ((0.0, 5.77, 24.6), (0.1, 4.92, 25.8), (0.2, 4.95, 25.5))  # dropout, perplexity, BLEU: Table 3, row D and base


@cached
def training_losses(subject: Subject, hidden: int | None, p: float, seed: int) -> np.ndarray:
    """The mean loss of the text in several passes with dropout."""
    asked = losses(subject, hidden).asked
    rows, right = [one.row for one in asked], [one.right.id for one in asked]
    model, trace = subject.checkpoint.model, prediction(subject, hidden)
    return dropout.training_losses(model, trace, rows, right, p, seed, PASSES)


@lab.draws
def draw(subject: Subject) -> None:
    if not say_unless_predicts(lab, subject):
        return
    with controls():
        p = lab.steps("p", RATES, 0.1)
        seed = lesson.value("training.seed", 0, range(1000))
        drawn = ("training.seed", (seed + 1) % 1000, 0)
        st.button(lab.text("again"), on_click=lesson.change, args=drawn, key="training.again")
    if not affordable(subject):
        st.info(lab.text("large"))
        return
    hidden = hidden_now(subject)
    mean, passes = losses(subject, hidden).mean, training_losses(subject, hidden, p, seed)
    rows = [
        Row(lab.text("used"), *numbers(".4f", mean), kind="marked"),
        *(Row(lab.text("pass", n=n), *numbers(".4f", one)) for n, one in enumerate(passes, 1)),
        Row(lab.text("mean"), *numbers(".4f", passes.mean()), kind="sum"),
    ]
    st.html(table.style() + table.to_html(("", lab.text("loss")), rows))
    lesson.ask(reported(subject))
    one, other = passes[:2]
    lesson.formula(
        r"L_\text{train} = L(\text{text}, b), \quad b \sim \text{Bernoulli}(1 - p) \qquad L_\text{eval} = L(\text{text})",
        live=rf"{one:.4f} \neq {other:.4f} \qquad L_\text{{eval}} = {mean:.4f}" if p else rf"{one:.4f} = {other:.4f}",
        code=f"layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout={p}, batch_first=True)\n"
        "x = torch.randn(1, 5, 16)\n"
        "one, other = layer.train()(x), layer(x)  # two passes, two results\n"
        "used = layer.eval()(x)",
    )
    st.markdown(lab.text("good"))
    st.html(paper_table(lab, "p", PAPER))
    st.page_link(sitemap.BLOCK.file, label=lab.text("block"))


@lab.asks("reported")
def reported(subject: Subject) -> lesson.Choice:
    return lab.choice("reported", ("mistake", "dropout", "heart"), "dropout")
