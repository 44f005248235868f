"""The neurons of one feed-forward network, taken out one after the other: those that matter most."""

from typing import TYPE_CHECKING, Literal

import numpy as np
import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if import computed, watched, wording
from vizformer.web.tools.what_if.place import Place
from vizformer.web.widgets import in_python, lesson
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.analysis.ablation import Part
    from vizformer.analysis.neuron_sweep import NeuronEffects

LISTED = 15
HOW: tuple[Literal["zero", "mean"], ...] = ("zero", "mean")
FELT = 1e-3  # nats


def all_neurons(subject: Subject, place: Place) -> None:
    """The network, what stands in the place of a neuron, and the table."""
    blocks = {wording.write([part]): part for part in computed.parts(subject) if part.sublayer.endswith("feedforward")}
    left, right = st.columns(2)
    usual = list(blocks)[-1]
    left.selectbox(
        _("The network"),
        list(blocks),
        format_func=lambda written: wording.name(blocks[written]),
        **lesson.setting("whatif.block", usual, list(blocks)),
    )
    block = blocks[lesson.value("whatif.block", usual, list(blocks))]
    names = {"zero": _("nothing (zero)"), "mean": _("its mean over other texts")}
    right.segmented_control(
        _("In the place of a neuron stands"),
        HOW,
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("whatif.neuron", "zero", HOW),
    )
    instead: Literal["zero", "mean"] = "mean" if lesson.value("whatif.neuron", "zero", HOW) == "mean" else "zero"
    effects = swept(subject, place, block, instead)
    if effects is not None:
        strongest(place, effects)
    st.caption(_("The same in Python"))
    st.code(code(subject, place, block, instead), language="python", wrap_lines=True)


def swept(subject: Subject, place: Place, block: "Part", instead: Literal["zero", "mean"]) -> "NeuronEffects | None":
    """The effects of all neurons; None until they are wanted."""
    config, (stack, layer) = subject.config, computed.block_of(block)
    layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    after = layers[stack] - layer + (layers["decoder"] if stack == "encoder" else 0)
    cost = watched.cost(subject, config.d_ff) * after / sum(layers.values())  # a run begins at the network
    return watched.watched(
        computed.neurons,
        (subject, block, place.row, place.token, instead),
        quick=cost < watched.AT_ONCE,
        runs=config.d_ff,
        begin=_("Take out one neuron after the other"),
        key="what_if.neurons",
    )


def strongest(place: Place, effects: "NeuronEffects") -> None:
    """The neurons without which the answer moves most."""
    most = max(float(effects.divergence.max()), 1e-12)  # (a bar is a share of it)
    rows = [
        Row(
            (
                str(int(effects.neurons[at])),
                Number(float(effects.divergence[at]) / most, f"{effects.divergence[at]:.5f}"),
                Number(float(effects.logit[at]), wording.signed(float(effects.logit[at]))),
                Number(float(effects.probability[at]), wording.signed(100 * float(effects.probability[at]), 2) + " %"),
                Number(float(effects.output[at]), wording.signed(float(effects.output[at]))),
            )
        )
        for at in effects.strongest(LISTED)
    ]
    columns = (
        _("neuron"),
        _("KL, nats"),
        _("logit of “{token}”", token=place.best[0].token.text),
        _("its probability"),
        _("largest output of the neuron here"),
    )
    st.html(table.to_html(columns, rows, bar=1, caption=_("The neurons without which the answer changes most")))
    total, first = float(effects.divergence.sum()), np.sort(effects.divergence)[::-1]
    st.text(
        _(
            "Of {n} neurons {felt} move the answer by more than {least} nats; {still} are at every position what they "
            "would be set to.",
            n=f"{len(effects.neurons):,}",
            felt=f"{int((effects.divergence > FELT).sum()):,}",
            least=FELT,
            still=f"{effects.still:,}",
        )
    )
    if total > 0:
        st.text(
            _(
                "The ten strongest make up {share} of the sum of all effects.",
                share=f"{100 * float(first[:10].sum()) / total:.0f} %",
            )
        )
    st.caption(
        _(
            "One neuron at a time, at all positions. The number of a neuron is that of its column of W_in and of its row of "
            "W_out."
        )
    )


def code(subject: Subject, place: Place, block: "Part", instead: Literal["zero", "mean"]) -> str:
    """The sweep in Python."""
    stack, layer = computed.block_of(block)
    names, lines, given = "neuron_sweep", list[str](), ""
    imports = []
    if instead == "mean":
        names, given = "mean_neurons, neuron_sweep", ", means"
        imports = [
            "from vizformer.analysis.corpus_heads import bundled_corpus",
            "from vizformer.analysis.other_texts import read_other_texts",
        ]
        passages = f"bundled_corpus({computed.corpus_of(subject)!r}).passages"
        lines = [
            f"texts = read_other_texts(checkpoint, {passages}, {computed.MEAN_TEXTS})",
            f"means = mean_neurons(checkpoint, texts, {stack!r}, {layer})",
        ]
    lines += [
        f"effects = neuron_sweep(checkpoint, trace, {stack!r}, {layer}, {place.row}, {place.token}{given})",
        "for at in effects.strongest(10):",
        "    print(effects.neurons[at], effects.divergence[at], effects.probability[at])",
    ]
    return "\n".join(
        [*in_python.opening(subject, *imports, f"from vizformer.analysis.neuron_sweep import {names}"), *lines]
    )
