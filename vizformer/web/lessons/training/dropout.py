"""The laboratory Dropout: the loss of the same text, pass by pass, while dropout is on."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.training import computations, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

RATES = (0.0, 0.1, 0.2, 0.3, 0.5)
PAPER = ((0.0, 5.77, 24.6), (0.1, 4.92, 25.8), (0.2, 4.95, 25.5))  # dropout, perplexity, BLEU: Table 3, row D and base


@laboratory
def dropout(subject: Subject) -> None:
    """The loss in use, and in several passes of training."""
    if not place.rows(subject):
        return
    st.html(table.style())
    p = st.select_slider("p", RATES, **lesson.setting("training.p", 0.1, RATES))
    seed = lesson.value("training.seed", 0, range(1000))
    st.button(
        _("Draw again"), on_click=lesson.change, args=("training.seed", (seed + 1) % 1000, 0), key="training.again"
    )
    if not computations.affordable(subject):
        st.info(_("This model or this text is too large for several passes while you wait. Choose a smaller one."))
        return
    hidden = place.usual(subject)
    own = computations.losses(subject, hidden)
    passes = computations.training_losses(subject, hidden, p, seed)
    rows = [
        Row((_("in use"), Number(own.mean, f"{own.mean:.4f}")), "marked"),
        *(
            Row((_("training, pass {n}", n=index + 1), Number(float(one), f"{one:.4f}")))
            for index, one in enumerate(passes)
        ),
        Row((_("mean of the passes"), Number(float(passes.mean()), f"{passes.mean():.4f}")), "sum"),
    ]
    st.html(table.to_html(("", _("mean loss of your text (nats)")), rows))
    lesson.formula(
        r"L_\text{train} = L(\text{text}, b), \quad b \sim \text{Bernoulli}(1 - p) \qquad L_\text{eval} = L(\text{text})",
        live=rf"{passes[0]:.4f} \neq {passes[1]:.4f} \qquad L_\text{{eval}} = {own.mean:.4f}"
        if p
        else rf"{passes[0]:.4f} = {passes[1]:.4f}",
        code=f"layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout={p}, batch_first=True)\n"
        "x = torch.randn(1, 5, 16)\n"
        "one, other = layer.train()(x), layer(x)  # two passes, two results\n"
        "used = layer.eval()(x)",
    )
    lesson.ask(reported_question())
    st.markdown(_("**What it is good for**"))
    columns = (_("the paper, base model"), _("perplexity"), "BLEU")
    paper = [
        Row((f"p = {rate:g}", Number(perplexity, f"{perplexity:.2f}"), Number(bleu, f"{bleu:.1f}")))
        for rate, perplexity, bleu in PAPER
    ]
    st.html(table.to_html(columns, paper))
    st.page_link(
        sitemap.BLOCK.file,
        label=_("One row with dropout, and where it acts: lesson 7"),
    )


def reported_question() -> lesson.Choice:
    return lesson.Choice(
        "training",
        "reported",
        _(
            "A training reports a loss of 2.1 while it runs; the same model, measured on the same texts afterwards with "
            "model.eval(), has 1.9. What has happened?"
        ),
        [
            _("a mistake: the same texts have the same loss"),
            _("while it trained, dropout was on"),
            _("the model has learned the texts by heart"),
        ],
        1,
        _(
            "With numbers dropped the model predicts worse, so the loss that is reported in training is too high. (It is "
            "also a mean over steps, of which the first were worse.)"
        ),
    )
