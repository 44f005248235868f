"""A laboratory of the lesson Training: the gradient of one step on the reader's own sentence, matrix by matrix."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import gradient
from vizformer.analysis.training.gradient import StepGradient
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import predictions
from vizformer.web.lessons.training.predictions import affordable, hidden_now
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.lab import Laboratory

lab = Laboratory("training", "gradient")
CODE = """torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
table = torch.nn.Embedding(20, 16)  # for the tokens and for the logits
ids, right = torch.tensor([[3, 1, 4]]), torch.tensor([1, 4, 5])
loss = F.cross_entropy(layer(table(ids))[0] @ table.weight.T, right)
loss.backward()
lengths = {name: p.grad.norm().item() for name, p in layer.named_parameters()}
total = torch.nn.utils.clip_grad_norm_([*layer.parameters(), table.weight], 1.0)  # before it was clipped"""


@cached
def step_gradient(subject: Subject, hidden: int | None) -> StepGradient:
    asked = predictions.losses(subject, hidden).asked
    return gradient.step_gradient(subject.checkpoint.model, predictions.prediction(subject, hidden), asked)


@cached
def matrix_lengths(model: ModelRef) -> np.ndarray:
    return gradient.matrix_lengths(model_cache.checkpoint(model).model)


@lab.draws
def draw_gradient(subject: Subject) -> None:
    if not predictions.say_unless_predicts(lab, subject):
        return
    if not affordable(subject):
        st.info(lab.text("large"))
        return
    found = step_gradient(subject, hidden_now(subject))
    lesson.ask(largest(subject), rows(subject), folded=True)
    for name, lengths in (("length", found.norms), ("relative", found.norms / matrix_lengths(subject.model))):
        picture = figures.matrix_heatmap(lengths, found.layers, found.kinds, title=lab.text(name))
        chart.show(picture, key=f"training.gradient.{name}")
    parts = {
        name: f"{length:.4f}" for name, length in (("loss", found.loss), ("total", found.total), ("table", found.table))
    }
    lab.say("whole", rows=f"{found.table_rows:,}", n=f"{subject.config.vocab_size:,}", **parts)
    at = found.largest
    lesson.formula(
        r"\begin{aligned} g_W &= \partial L / \partial W \\ |g_W| &= \sqrt{\textstyle\sum_{ij} g_{ij}^2}, \qquad "
        r"|g| = \sqrt{\textstyle\sum_W |g_W|^2} \end{aligned}",
        live=rf"\begin{{aligned}} {_tex(found.kinds[at[1]])} \text{{ ({found.layers[at[0]]})}}\!: \; |g_W| &= "
        rf"{float(found.norms[at]):.4f} \\ |g| &= {found.total:.4f} \end{{aligned}}",
        code=CODE,
    )


def _asked(subject: Subject) -> StepGradient | None:
    if not (predictions.predicts(subject) and affordable(subject)):
        return None
    return step_gradient(subject, hidden_now(subject))


@lab.asks("largest")
def largest(subject: Subject) -> lesson.CellChoice | None:
    found = _asked(subject)
    if found is None or max(len(found.layers), len(found.kinds)) > LARGEST:
        return None
    # there is little room
    short = [layer.replace("encoder", "enc").replace("decoder", "dec") for layer in found.layers]
    at = found.largest
    said = lab.asked("largest", subject, kind=found.kinds[at[1]], layer=found.layers[at[0]])
    return lesson.CellChoice(grid=lesson.Grid(short, list(found.kinds), found.shares, looks=False), answer=at, **said)


@lab.asks("rows")
def rows(subject: Subject) -> lesson.Choice | None:
    if (found := _asked(subject)) is None:
        return None
    n = subject.config.vocab_size
    right = "all" if found.table_rows > n // 2 else "own"
    return lab.choice("rows", ("own", "all", "none"), right, subject, n=f"{n:,}", rows=f"{found.table_rows:,}")


def _tex(kind: str) -> str:
    """W_Q, W_O' and so on as LaTeX."""
    name, __, low = kind.partition("_")
    return rf"{name}_{{{low.rstrip(chr(39))}}}" + "'" * low.endswith("'")
