"""The laboratory Feed-forward: two matrices and an activation, one token at a time."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.explain import latex
from vizformer.explain.feedforward_rows import RowOfNumbers
from vizformer.figures import leakage as change_words
from vizformer.options.feedforward import ACTIVATION_NAMES
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations
from vizformer.web.lessons.block.place import Place, choose
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

OTHERS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)  # what SwiGLU multiplies by, in the curves


@laboratory
def feed_forward(subject: Subject) -> None:
    """The arithmetic of one token, then what is said of the network, checked."""
    place = choose(subject)
    found = computations.feedforward(subject, *place)
    _curves(subject)
    _arithmetic(subject, found)
    _alone(subject, place)
    _one_matrix(subject, place)


def _arithmetic(subject: Subject, found: RowOfNumbers) -> None:
    config = subject.config
    gated, bias = config.feedforward == "gated", config.bias
    name = ACTIVATION_NAMES[config.activation]
    b_1, b_2, b_g = (" + b_1", " + b_2", " + b_g") if bias else ("", "", "")
    inside = rf"\big({_act(name, f'x W_g{b_g}')} \odot (x W_1{b_1})\big)" if gated else _act(name, f"x W_1{b_1}")
    m = found.neuron
    which = rf"(x W_g)_{{{m}}}" if gated else rf"h_{{{m}}}"
    opened = rf"{_act(name, latex.number(found.entering[m]))} = {latex.number(found.active[m])}"
    lines = [
        rf"{which} &= {latex.sum_of(found.terms_in)} = {latex.number(found.entering[m])}",
        rf"a_{{{m}}} &= {opened}",
    ]
    if gated:
        lines.append(
            rf"a_{{{m}}} h_{{{m}}} &= {latex.number(found.active[m])} \cdot {latex.factor(found.hidden[m])}"
            rf" = {latex.number(found.inner[m])}"
        )
    lines.append(rf"\mathrm{{out}}_0 &= {latex.sum_of(found.terms_out)} = {latex.number(found.out[0])}")
    lesson.formula(
        rf"\begin{{aligned}} \mathrm{{FFN}}(x) &= {inside}\, W_2{b_2} \\ {which} &= \textstyle\sum_i x_i\, "
        rf"{'W_g' if gated else 'W_1'}[i, {m}]{' + b' if bias else ''} \end{{aligned}}",
        live=r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}",
        code=found.code,
        given={"x": found.x, **found.given},
    )
    st.caption(
        _(
            "Shown is neuron {m}, which of this layer's {d_ff} is the most active one for this token, and the first number "
            "of the result. The code calls W_1 and W_2 W_in and W_out.",
            m=m,
            d_ff=f"{len(found.active):,}",
        )
    )


def _act(name: str, argument: str) -> str:
    return rf"\max(0, {argument})" if name == "ReLU" else rf"\mathrm{{{name}}}({argument})"


def _alone(subject: Subject, place: Place) -> None:
    st.markdown(_("**Each position alone**"))
    tokens = subject.trace.tokens[place.stack]
    n, names = len(tokens), labels.numbered(tokens)
    changed = st.selectbox(
        _("Turn the row of this token round, x → −x"),
        range(n),
        format_func=names.__getitem__,
        **lesson.setting("block.changed", place.row, range(n)),
    )
    lesson.ask(alone_question(n))
    found = computations.each_alone(subject, place.stack, place.layer, changed)
    chart.show(
        figures.change_bars(
            found.moved.astype(np.float32), labels.texts(tokens), changed, words=words(change_words.ENGLISH)
        ),
        key="block.alone",
    )
    if n > 1:
        proof_badge.show(
            found.proof,
            _("The outputs of the other tokens differ by {difference}.", difference=f"{found.proof.difference:.1g}"),
        )


def alone_question(n: int) -> lesson.Choice:
    return lesson.Choice(
        "block",
        "alone",
        _("If the row of one token is changed, how many outputs of this feed-forward move (n = {n})?", n=n),
        [str(choice) for choice in sorted({0, 1, 2, n})],
        sorted({0, 1, 2, n}).index(1),
        _(
            "One: its own. The same matrices are used at every position, and nothing connects the positions. What a token "
            "knows of the others came from the attention before."
        ),
        about=f"{n}",
    )


def _one_matrix(subject: Subject, place: Place) -> None:
    st.markdown(_("**Without the activation it is one matrix**"))
    found = computations.one_matrix(subject, place.stack, place.layer)
    if found is None:
        st.caption(
            _(
                "Not here: this network has a gate, which multiplies two numbers that both come from x. Even without the "
                "activation, doubling x would make the result four times as large, and no matrix does that."
            )
        )
        return
    proof_badge.show(
        found.proof,
        _(
            "x (W_1 W_2) + (b_1 W_2 + b_2), one matrix of {d} × {d}, gives the same as the two one after the other, to "
            "{difference}.",
            d=subject.config.d_model,
            difference=f"{found.proof.difference:.1g}",
        ),
    )
    st.text(
        _(
            "With the activation between them the result is another one: for token {row}, “{token}”, the two lie {times} "
            "times the length of the right one apart.",
            row=place.row,
            token=subject.trace.tokens[place.stack][place.row].text,
            times=f"{found.apart[place.row]:.2g}",
        )
    )


def _curves(subject: Subject) -> None:
    other = st.select_slider(
        _("SwiGLU multiplies SiLU by a second number, here"), OTHERS, **lesson.setting("block.other", 2.0, OTHERS)
    )
    places, curves = computations.activation_curves(other)
    name = ACTIVATION_NAMES[subject.config.activation]
    own = "SwiGLU" if subject.config.feedforward == "gated" and name == "SiLU" else name
    chart.show(
        figures.line_curves(
            places,
            curves,
            place_title=_("what goes in"),
            value_title=_("what comes out"),
            hover=_("{name} of {place}: {value}"),
            value_range=(-2.2, 4.2),
            height=320,
            title=_("The activations"),
        ),
        key="block.activations",
    )
    st.caption(_("This model has {name}.", name=own))
