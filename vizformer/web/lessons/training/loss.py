"""The laboratory Loss: the cross-entropy of one prediction number by number, then of all rows, padding left out."""

import math

import streamlit as st

from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.explain.loss_parts import Losses, LossNumbers
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.lessons.training.place import choose
from vizformer.web.widgets import lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

SHOWN = 40  # rows of the text
PADDING = range(21)


@laboratory
def loss(subject: Subject) -> None:
    """One row's loss, then the text's."""
    st.html(table.style())
    place = choose(subject)
    if place is None:
        return
    found = computations.losses(subject, place.hidden)
    numbers = computations.loss_numbers(subject, place.hidden, place.index, 0.0)
    _one_row(numbers)
    proof_badge.show(
        numbers.proof,
        _("PyTorch's cross_entropy gives the same, to {difference}.", difference=f"{numbers.proof.difference:.1g}"),
    )
    _formula(numbers)
    lesson.ask(guess_question(numbers.vocabulary))
    _all_rows(found, masked=place.hidden is not None)
    _padding(found, f"{subject}")


def _one_row(found: LossNumbers) -> None:
    rows = [
        Row(
            (name, float(z), Number(float(p), labels.percent(float(p))), -math.log(p) if p > 0 else math.inf),
            "marked" if index == found.right else "",
        )
        for index, (name, z, p) in enumerate(
            zip(labels.told_apart(found.tokens), found.logits, found.probabilities, strict=True)
        )
    ]
    share = Number(found.rest_probability, labels.percent(found.rest_probability))
    rows.append(Row((_("{n} other tokens", n=f"{found.rest:,}"), "", share, ""), "faint"))
    columns = (_("token"), _("logit z"), _("probability p"), "−ln p")
    st.html(table.to_html(columns, rows, bar=2, caption=_("What this row says, and (framed) what it should say")))


def _formula(found: LossNumbers) -> None:
    z = found.logits
    first = min(2, len(z))
    terms = " + ".join(rf"e^{{{latex.number(float(one))}}}" for one in z[:first])
    lesson.formula(
        r"L = -\ln p_y = \ln \sum_{j} e^{z_j} - z_y",
        live=r"\begin{aligned} "
        rf"\ln ({terms} + \dots) &= {found.log_sum:.4f} \\ "
        rf"L = {found.log_sum:.4f} - {latex.factor(float(z[found.right]))} &= {latex.number(found.loss)} \end{{aligned}}",
        code="log_sum, z_y = torch.tensor(found), torch.tensor(right)\n"
        "loss = log_sum - z_y\n"
        "# from all logits of the row: F.cross_entropy(logits, wanted)",
        given={"found": found.log_sum, "right": float(z[found.right])},
    )


def guess_question(vocabulary: int) -> lesson.Number:
    return lesson.Number(
        "training",
        "guess",
        _(
            "A model that knows nothing gives each of the {n} tokens the same probability. Which loss has each row, in "
            "nats?",
            n=f"{vocabulary:,}",
        ),
        math.log(vocabulary),
        _(
            "−ln(1/{n}) = ln {n} = {loss}. A loss near it, at the start of a training, says that the model is built "
            "right; e to this power is {n} again, the perplexity.",
            n=vocabulary,
            loss=f"{math.log(vocabulary):.2f}",
        ),
        tolerance=0.1,
        written="{:.2f}".format,
        about=f"{vocabulary}",
    )


def _all_rows(found: Losses, masked: bool) -> None:
    st.markdown(_("**What is the loss of each row?**"))
    shown = [
        Row(
            (
                Number(one.row, str(one.row)),
                one.read.text,
                one.right.text,
                Number(float(p), labels.percent(float(p))),
                float(loss),
            )
        )
        for one, p, loss in list(zip(found.asked, found.probabilities, found.losses, strict=True))[:SHOWN]
    ]
    shown.append(Row((_("together"), "", "", "", found.total), "sum"))
    right = _("hidden token") if masked else _("correct next token")
    columns = (_("row"), _("reads"), right, _("its probability"), _("loss"))
    st.html(table.to_html(columns, shown, bar=3))
    if len(found.asked) > SHOWN:
        st.caption(_("The first {shown} of {n} rows; the sum is over all.", shown=SHOWN, n=len(found.asked)))
    if masked:
        st.caption(
            _(
                "Every seventh token is hidden, about 15 in 100, as in BERT's training. Only these rows are asked: what "
                "the others say of the token that they can see counts nothing."
            )
        )


def _padding(found: Losses, about: str) -> None:
    n = len(found.losses)
    st.markdown(_("**Padding left out**"))
    lesson.ask(padding_question(about, found))
    wrong = _("padding counted: wrong")
    padding = st.slider(_("Positions of padding"), 0, PADDING[-1], **lesson.setting("training.pad", 4, PADDING))
    lesson.formula(
        r"\bar L = \frac{1}{n} \sum_{i\,:\,y_i \neq \text{pad}} L_i \qquad \text{perplexity} = e^{\bar L}",
        live=r"\begin{aligned} "
        rf"\tfrac{{{found.total:.4f}}}{{{n}}} &= {found.mean:.4f} \qquad e^{{{found.mean:.4f}}} = {found.perplexity:.4f} \\"
        rf"\tfrac{{{found.total:.4f}}}{{{n} + {padding}}} &= {found.padded_mean(padding):.4f} "
        rf"\quad (\text{{{wrong}}}) \end{{aligned}}",
        code=f"padded = torch.cat([losses, torch.zeros({padding})])\n"
        "real = torch.arange(len(padded)) < len(losses)\n"
        "mean = padded[real].mean()  # F.cross_entropy(..., ignore_index=pad_id) does the same\n"
        "wrong, perplexity = padded.mean(), torch.exp(mean)",
        given={"losses": found.losses},
    )
    st.caption(
        _(
            "Perplexity {value}: in the mean over its rows the model is as unsure as if it had to choose among so many "
            "equally probable tokens.",
            value=matrix.number(found.perplexity, 2),
        )
    )


def padding_question(about: str, found: Losses) -> lesson.Choice:
    """What does padding do to the mean, if it is counted?"""
    n = len(found.losses)
    return lesson.Choice(
        "training",
        "padding",
        _(
            "Your text stands in a batch beside one with twice as many rows, so half of its places are padding, with a "
            "loss of 0. What does its mean loss become if they are counted?"
        ),
        [_("it stays the same"), _("half as much"), _("twice as much")],
        1,
        _(
            "The sum stays at {total}, but it is divided by {both} and not by {n}. The model seems twice as good, and "
            "learns from this text half as much. So padding is left out of the sum and of the count.",
            total=f"{found.total:.4f}",
            both=2 * n,
            n=n,
        ),
        about=about,
    )
