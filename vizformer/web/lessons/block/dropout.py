"""The laboratory Dropout: one row with it and without, and the same sentence answered several times."""

import numpy as np
import streamlit as st

from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations
from vizformer.web.lessons.block.place import choose
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

RATES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8)
SHOWN = 8


@laboratory
def dropout(subject: Subject) -> None:
    """What attention adds for one token, with some of its numbers dropped."""
    st.html(table.style() + matrix.style())
    place = choose(subject)
    p = st.select_slider("p", RATES, **lesson.setting("block.p", 0.3, RATES))
    names = {"train": _("training"), "eval": _("in use")}
    chosen = st.segmented_control(
        _("Mode"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("block.mode", "train", tuple(names)),
    )
    seed = lesson.value("block.seed", 0, range(1000))
    st.button(_("Draw again"), on_click=lesson.change, args=("block.seed", (seed + 1) % 1000, 0), key="block.again")
    here = p if chosen != "eval" else 0.0
    found = computations.dropped(subject, *place, here, seed)
    token = subject.trace.tokens[place.stack][place.row].text
    rows = {"f(x)": found.row, _("kept"): found.kept.astype(np.float64), _("what is added"): found.result}
    st.html(
        matrix.to_html(
            np.stack(list(rows.values())),
            rows=list(rows),
            caption=_("What the attention of layer {layer} found for “{token}”", layer=place.layer, token=token),
            shown=SHOWN,
            digits=3,
        )
    )
    st.text(
        _(
            "Kept: {kept} of {d} numbers. Mean before {before}, after {after}.",
            kept=int(found.kept.sum()),
            d=len(found.row),
            before=matrix.number(found.mean_before),
            after=matrix.number(found.mean_after),
        )
    )
    first = int(found.kept.argmax())
    lesson.formula(
        r"y_m = \frac{b_m}{1 - p}\, f(x)_m, \qquad P(b_m = 0) = p, \quad P(b_m = 1) = 1 - p",
        live=rf"y_{{{first}}} = \frac{{1}}{{1 - {here:g}}} \cdot {latex.factor(found.row[first])} "
        rf"= {found.result[first]:.4f}",
        code=f"p, training = {p}, {chosen != 'eval'}\n"
        "b = (torch.rand(f.shape) >= p).float()\n"
        "added = f * b / (1 - p) if training else f  # as torch.nn.Dropout(p)",
        given={"f": found.row},
    )
    _where(subject)
    _answers(subject, p, seed)


def _where(subject: Subject) -> None:
    st.markdown(_("**Where it acts**"))
    st.markdown(
        _(
            "- on the embeddings, once positions are added\n"
            "- on what every sublayer found, before it is added: $x + \\mathrm{dropout}(f(x))$"
        )
    )
    st.caption(
        _(
            "So in the paper, and in this app. PyTorch's own layers also drop attention weights and numbers inside the "
            "feed-forward. This model was trained with p = {p:g}.",
            p=subject.config.dropout,
        )
    )
    lesson.ask(scale_question())


def scale_question() -> lesson.Choice:
    return lesson.Choice(
        "block",
        "scale",
        _("In training, half of the numbers are dropped (p = 0.5). The others are divided by 1 − p, so doubled. Why?"),
        [
            _("so that the sum has the same size, on average, as in use, where nothing is dropped"),
            _("so that the gradient does not vanish"),
            _("so that a dropped number can be found again"),
        ],
        0,
        _(
            "Half of the numbers, each twice as large: the expected value is what it was, and in use nothing has to change."
        ),
    )


def _answers(subject: Subject, p: float, seed: int) -> None:
    st.markdown(_("**One sentence, several answers**"))
    if not model_cache.predicts(subject.model) or not computations.affordable(subject.model):
        st.caption(_("This model makes no predictions, or is too large to be run so often."))
        return
    found = computations.training_answers(subject.unedited, p, seed)
    token = subject.checkpoint.tokenizer.tokens([found.token])[0].text
    rows = [
        Row((_("in use"), Number(found.probability, labels.percent(found.probability))), "marked"),
        *(
            Row((_("training, run {n}", n=run + 1), Number(value, labels.percent(value))))
            for run, value in enumerate(map(float, found.training[:6]))
        ),
    ]
    stack = "decoder" if "decoder" in subject.trace.tokens else "encoder"
    at = subject.trace.tokens[stack][found.position].text
    columns = ("", _("probability of “{token}” in row {row}, “{at}”", token=token, row=found.position, at=at))
    st.html(table.to_html(columns, rows, bar=1))
    st.text(
        _(
            "The row in which the model is least sure. In {agree} of {runs} runs with p = {p:g} “{token}” is still the most "
            "probable.",
            agree=found.agree,
            runs=len(found.training),
            p=p,
            token=token,
        )
    )
