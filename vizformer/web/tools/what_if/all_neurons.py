"""The neurons of one feed-forward network, taken out one after the other: those that matter most."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.neurons_left_out import NeuronEffects
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if import computations, other_texts
from vizformer.web.tools.what_if.place import Place, choose
from vizformer.web.widgets import in_python, watched_work
from vizformer.web.widgets.choices import BESIDE, box, more, one_of
from vizformer.web.words import ablated_parts
from vizformer.web.words.i18n import _, show_note, show_text

LISTED = 15
FELT = 1e-3  # nats
LIKELY = 256  # neurons of a large model that are taken out


def draw_all_neurons(subject: Subject, settings: DeltaGenerator) -> None:
    """The network, what stands in the place of a neuron, and the table.

    Args:
        settings: the page's line of settings.
    """
    blocks = {
        ablated_parts.write([part]): part
        for part in computations.parts(subject)
        if part.sublayer.endswith("feedforward")
    }
    with settings:
        called = {written: ablated_parts.name(part) for written, part in blocks.items()}
        block = blocks[box(_("The network"), "whatif.block", called, list(blocks)[-1], labelled=False)]
        with more():
            names = {"zero": _("nothing (zero)"), "mean": _("its mean over other texts")}
            instead: computations.Instead = "zero"
            if one_of(_("Replace the removed neuron with"), "whatif.neuron", names) == "mean":
                instead = computations.Mean(other_texts.choose(subject))
            most = how_many(subject, block)
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        place = choose(subject)
    with picture:
        effects = swept(subject, place, block, instead, most)
        if effects is not None:
            strongest(subject, place, block, effects)
    in_python.show(code(subject, place, block, instead, most))


def how_many(subject: Subject, block: Part) -> int:
    """All neurons; of a large model those of which a gradient expects most, if the reader does not want all."""
    n = computations.width(subject, block)
    if n <= LIKELY or cost(subject, block, n) < watched_work.AT_ONCE or subject.checkpoint.model.is_streamed:
        return n  # (through layers that are streamed there is no gradient)
    names = {"likely": _("the {n} of which a gradient expects most", n=LIKELY), "all": _("all {n}", n=f"{n:,}")}
    return n if one_of(_("Which neurons"), "whatif.which", names) == "all" else LIKELY


def cost(subject: Subject, block: Part, neurons: int) -> float:
    """Multiplications of a sweep, in which a run begins at the network."""
    config, (stack, layer) = subject.config, computations.block_of(block)
    layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    after = layers[stack] - layer + (layers["decoder"] if stack == "encoder" else 0)
    return watched_work.cost(subject, neurons) * after / sum(layers.values())


def swept(
    subject: Subject, place: Place, block: Part, instead: computations.Instead, most: int
) -> NeuronEffects | None:
    """The effects of the neurons; None until they are wanted."""
    return watched_work.watched(
        computations.neurons,
        (subject, block, place.row, place.token, instead, most),
        quick=cost(subject, block, most) < watched_work.AT_ONCE,
        runs=most,
        begin=_("Take out one neuron after the other"),
        key="what_if.neurons",
    )


def strongest(subject: Subject, place: Place, block: Part, effects: NeuronEffects) -> None:
    most = max(float(effects.divergence.max()), 1e-12)  # (a bar is a share of it)
    rows = [
        Row(
            str(int(effects.neurons[at])),
            Number(float(effects.divergence[at]) / most, matrix.number(effects.divergence[at], 5)),
            Number(float(effects.logit[at]), ablated_parts.signed(float(effects.logit[at]))),
            Number(float(effects.probability[at]), ablated_parts.signed(100 * float(effects.probability[at]), 2)),
            Number(float(effects.output[at]), ablated_parts.signed(float(effects.output[at]))),
        )
        for at in effects.strongest(LISTED)
    ]
    columns = (
        _("neuron"),
        _("KL, nats"),
        _("logit of “{token}”", token=place.best[0].token.text),
        _("change of its probability, percentage points"),
        _("largest output of the neuron here"),
    )
    st.html(table.to_html(columns, rows, bar=1, caption=_("The neurons without which the answer changes most")))
    total, first = float(effects.divergence.sum()), np.sort(effects.divergence)[::-1]
    show_text(
        "Of {n} neurons {felt} move the answer by more than {least} nats; {still} are at every position what they "
        "would be set to.",
        n=f"{len(effects.neurons):,}",
        felt=f"{int((effects.divergence > FELT).sum()):,}",
        least=FELT,
        still=f"{effects.still:,}",
    )
    if len(effects.neurons) < computations.width(subject, block):
        show_text(
            "The other {n} neurons were not taken out: one gradient expects less of each (attribution patching, Nanda "
            "2023), and may be wrong.",
            n=f"{computations.width(subject, block) - len(effects.neurons):,}",
        )
    elif total > 0:
        show_text(
            "The ten strongest make up {share} of the sum of all effects.",
            share=f"{100 * float(first[:10].sum()) / total:.0f} %",
        )
    show_note(
        "One neuron at a time, at all positions. The number of a neuron is that of its column of W_in and of its row of "
        "W_out."
    )


def code(subject: Subject, place: Place, block: Part, instead: computations.Instead, most: int) -> list[str]:
    """The sweep in Python."""
    stack, layer = computations.block_of(block)
    names, lines, given = "neuron_sweep", list[str](), ""
    imports = list[str]()
    if instead != "zero":
        names, given = "mean_neurons, neuron_sweep", ", means"
        imports, texts = other_texts.in_python(subject, instead.texts, computations.MEAN_TEXTS)
        lines = [f"texts = {texts}", f"means = mean_neurons(checkpoint, texts, {stack!r}, {layer})"]
    place_in = f"checkpoint, trace, {stack!r}, {layer}, {place.row}, {place.token}{given}"
    only = ""
    if most < computations.width(subject, block):
        names, only = f"likely_neurons, {names}", ", neurons=neurons"
        lines.append(f"neurons = likely_neurons({place_in}, count={most})")
    lines += [f"effects = neuron_sweep({place_in}{only})", "print(effects.to_frame())"]
    return [
        *in_python.opening(subject, *imports, f"from vizformer.analysis.causes.neurons_left_out import {names}"),
        *lines,
    ]
