"""A laboratory of the lesson Add & norm, feed-forward: which neurons fire, how many are silent, what raises one most."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import read_alignments
from vizformer.analysis.vectors import neurons
from vizformer.analysis.vectors.neurons import Raised
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.lessons.block.place import Place, affordable, choose, usual
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, aside

lab = Laboratory("block", "neurons")
AROUND = 3  # tokens before and after, in the table of the corpus


firing = of_run(neurons.firing)
silent_by_layer = of_run(neurons.silent_by_layer)


def corpus(model: ModelRef) -> list[tuple[str, str | None]]:
    """The bundled sentences that a model reads: pairs for an encoder-decoder, else each language by itself."""
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    if model_cache.reads_target(model):
        return [(pair.source, pair.target) for pair in pairs]
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    return [(text, None) for text in texts if model_cache.reads(model, text)]


@cached
def raised_most(model: ModelRef, stack: str) -> Raised:
    return neurons.raised_most(model_cache.checkpoint(model), corpus(model), stack)


@lab.draws
def draw(subject: Subject) -> None:
    st.html(table.style())
    place, below = choose(lab, subject)
    found = firing(subject, *place)
    columns = (found.neurons, found.values, found.lengths, found.written)
    rows = [Row(str(neuron), *map(float, numbers)) for neuron, *numbers in zip(*columns, strict=True)]
    token = subject.trace.tokens[place.stack][place.row].text
    names = lab.columns("neuron", "value", "length", "written")
    st.html(table.to_html(names, rows, caption=lab.text("most", layer=place.layer, row=place.row, token=token)))
    aside(below)
    shares = silent_by_layer(subject, place.stack)
    lesson.ask(question(subject, place.stack))
    chart.show(
        figures.line_curves(
            np.arange(len(shares)),
            {lab.text("silent.silenced"): 100 * shares},
            place_title=lab.text("silent.layer"),
            value_title=lab.text("silent.percent"),
            hover=lab.text("silent.hover"),
            value_range=(0.0, 100.0),
            digits=1,
            height=260,
            title=lab.text("silent.picture"),
        ).update_traces(mode="lines+markers"),
        key="block.silent",
    )
    m, value, length = int(found.neurons[0]), float(found.values[0]), float(found.lengths[0])
    lesson.formula(
        r"\mathrm{out} = \sum_{m} a_m\, W_2[m] \;(+\, b_2)",
        live=rf"|a_{{{m}}} W_2[{m}]| = |{value:.4f}| \cdot {length:.4f} = {found.written[0]:.4f}",
        code="added = a[:, None] * W_2  # [d_ff, d_model]: what every neuron adds\n"
        "out = added.sum(0)\nlargest = added.norm(dim=1).topk(8)",
        given=found.given,
    )
    _corpus(subject, place, m)


@lab.asks("silent")
def question(subject: Subject, stack: str = "") -> lesson.Number:
    stack = stack or usual(subject).stack
    shares = silent_by_layer(subject, stack)
    share = float(shares[-1])
    wrong = {"half": 50, "rest": 100 * (1 - share), "none": 0}
    said = lab.asked("silent", subject, stack, wrong=wrong, layer=len(shares) - 1, share=f"{share:.1%}")
    return lesson.Number(answer=100 * share, tolerance=10, written="{:.1f}".format, **said)


def _corpus(subject: Subject, place: Place, first: int) -> None:
    """What raises a neuron most, in the bundled sentences."""
    st.markdown(lab.text("raises"))
    if not affordable(subject.model) or not corpus(subject.model):
        lab.note("large")
        return
    last = subject.config.d_ff_of(place.layer) - 1
    asked = lab.setting("neuron", first, range(last + 1))
    neuron = int(st.number_input(lab.text("neuron", last=last), 0, last, **asked))
    if not lab.toggle("corpus"):
        return
    raised = raised_most(subject.model, place.stack)
    rows = []
    for value, (text, at) in raised.of(place.layer, neuron):
        tokens = raised.tokens[text]
        around = (tokens[max(0, at - AROUND) : at], tokens[at : at + 1], tokens[at + 1 : at + 1 + AROUND])
        rows.append(Row(*map(" ".join, around), value))
    names = [*lab.texts("found", ("before", "token", "after", "value")).values()]
    st.html(table.to_html(names, rows, caption=lab.text("raised", neuron=neuron, layer=place.layer)))
    lab.note("few", texts=len(raised.tokens), tokens=sum(map(len, raised.tokens)))
