"""The laboratory Neurons: which of them fire for a token, how many are silent, and what raises each of them most."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors.neurons import Firing, Raised
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations
from vizformer.web.lessons.block.place import Place, choose
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

AROUND = 3  # tokens before and after, in the table of the corpus


@laboratory
def neurons(subject: Subject) -> None:
    """The neurons of one token, and one of them in the bundled sentences."""
    st.html(table.style())
    place = choose(subject)
    found = computations.firing(subject, *place)
    token = subject.trace.tokens[place.stack][place.row].text
    rows = [
        Row((str(neuron), float(value), float(length), float(written)))
        for neuron, value, length, written in zip(
            found.neurons, found.values, found.lengths, found.written, strict=True
        )
    ]
    columns = (_("neuron"), _("what it hands on"), _("length of its row of W_2"), _("length of what it adds"))
    caption = _(
        "Layer {layer}, row {row}, “{token}”: the neurons that add most", layer=place.layer, row=place.row, token=token
    )
    st.html(table.to_html(columns, rows, caption=caption))
    _silent(subject, place)
    _formula(found)
    _corpus(subject, place, found)


def _silent(subject: Subject, place: Place) -> None:
    shares = computations.silent_by_layer(subject, place.stack)
    lesson.ask(silent_question(subject, place.stack))
    chart.show(
        figures.line_curves(
            np.arange(len(shares)),
            {_("silenced"): 100 * shares},
            place_title=_("layer"),
            value_title=_("% of the numbers"),
            hover=_("layer {place}: {value} %"),
            value_range=(0.0, 100.0),
            digits=1,
            height=260,
            title=_("How many are silenced, by layer"),
        ).update_traces(mode="lines+markers"),
        key="block.silent",
    )


def silent_question(subject: Subject, stack: str) -> lesson.Number:
    """How many numbers are silenced in the last layer?"""
    shares = computations.silent_by_layer(subject, stack)
    layer = len(shares) - 1
    return lesson.Number(
        "block",
        "silent",
        _(
            "In layer {layer}, of 100 numbers that go into the activation, how many are not positive, so that they are "
            "silenced? (Over all tokens of your sentence.)",
            layer=layer,
        ),
        100 * float(shares[layer]),
        _(
            "Measured: {share}. ReLU makes 0 of every one of them; GELU and SiLU leave a small negative number.",
            share=f"{shares[layer]:.1%}",
        ),
        tolerance=10,
        written="{:.1f}".format,
        about=f"{subject} {stack}",
    )


def _formula(found: Firing) -> None:
    m, value, length = int(found.neurons[0]), float(found.values[0]), float(found.lengths[0])
    lesson.formula(
        r"\mathrm{out} = \sum_{m} a_m\, W_2[m] \;(+\, b_2)",
        live=rf"|a_{{{m}}} W_2[{m}]| = |{value:.4f}| \cdot {length:.4f} = {found.written[0]:.4f}",
        code="added = a[:, None] * W_2  # [d_ff, d_model]: what every neuron adds\n"
        "out = added.sum(0)\nlargest = added.norm(dim=1).topk(8)",
        given=found.given,
    )


def _corpus(subject: Subject, place: Place, found: Firing) -> None:
    st.markdown(_("**What raises a neuron most**"))
    if not computations.affordable(subject.model) or not computations.corpus(subject.model):
        st.caption(
            _("This model is too large for the bundled sentences to be read while you wait, or cannot read them.")
        )
        return
    d_ff, first = subject.config.d_ff, int(found.neurons[0])
    neuron = st.number_input(
        _("Neuron (0 to {last})", last=d_ff - 1), 0, d_ff - 1, **lesson.setting("block.neuron", first, range(d_ff))
    )
    if not st.toggle(_("Read the bundled sentences"), **lesson.setting("block.corpus", False)):
        return
    raised: Raised = computations.raised_most(subject.model, place.stack)
    rows = []
    for value, (text, position) in raised.of(place.layer, int(neuron)):
        tokens = raised.tokens[text]
        before = " ".join(tokens[max(0, position - AROUND) : position])
        after = " ".join(tokens[position + 1 : position + 1 + AROUND])
        rows.append(Row((before, tokens[position], after, value)))
    columns = (_("before"), _("token"), _("after"), _("what the neuron hands on"))
    caption = _("Neuron {neuron} of layer {layer} in the bundled sentences", neuron=neuron, layer=place.layer)
    st.html(table.to_html(columns, rows, caption=caption))
    st.caption(
        _(
            "{texts} held-out sentences, {tokens} tokens. So few show where a neuron is raised here, not what it means.",
            texts=len(raised.tokens),
            tokens=sum(map(len, raised.tokens)),
        )
    )
