"""A laboratory of the lesson Add & norm, feed-forward: two matrices and an activation, one token at a time."""

import json

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import small_trainings
from vizformer.analysis.training.small_trainings import WidthLosses
from vizformer.assets import asset
from vizformer.explain import activations, feedforward_rows, latex
from vizformer.explain.block_rows import feedforward_input, find_block
from vizformer.explain.feedforward_rows import Alone, OneMatrix, RowOfNumbers
from vizformer.explain.sublayer import sublayer_at
from vizformer.options import ACTIVATION_NAMES
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block.place import Place, choose, usual
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.words import labels
from vizformer.web.words.i18n import Markup

lab = Laboratory("block", "ffn")
OTHERS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)  # what SwiGLU multiplies by, in the curves


@cached
def row_of_numbers(subject: Subject, stack: str, layer: int, row: int) -> RowOfNumbers:
    """The network for one token, and its most active neuron in full."""
    block, at = find_block(subject.checkpoint, stack, layer), f"{stack}.{layer}"
    place = sublayer_at(subject.trace, block, at, "feedforward", slice(row, row + 1))
    return feedforward_rows.row_of_numbers(place, block.feedforward)


@cached
def each_alone(subject: Subject, stack: str, layer: int, changed: int) -> Alone:
    return feedforward_rows.each_alone(*feedforward_input(subject.checkpoint, subject.trace, stack, layer), changed)


@cached
def one_matrix(subject: Subject, stack: str, layer: int) -> OneMatrix | None:
    x, network = feedforward_input(subject.checkpoint, subject.trace, stack, layer)
    return feedforward_rows.one_matrix(x, network, _multiplied_out(subject.model, stack, layer))


@cached
def _multiplied_out(model: ModelRef, stack: str, layer: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The multiplied-out matrices of a feed-forward network, cached by layer since they do not depend on the text."""
    block = find_block(model_cache.checkpoint(model), stack, layer)
    return feedforward_rows.multiplied_out(block.feedforward)


@cached
def activation_curves(other: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Places from -4 to 4, and the activations there."""
    x = np.linspace(-4, 4, 161)
    return x, activations.activation_curves(x, other)


@cached
def width_losses() -> dict[str, tuple[WidthLosses, ...]]:
    """The bundled trainings (`recipes.feed_forward_width`) of one depth, and those of one number of weights."""
    file = asset("lessons", "block", "feed_forward_width.json")
    return small_trainings.width_losses(json.loads(file.read_text(encoding="utf-8")))


@lab.draws
def draw_feed_forward(subject: Subject) -> None:
    place, below = choose(lab, subject)
    places, curves = activation_curves(lab.steps("other", OTHERS, 2.0))
    chart.show(
        figures.line_curves(
            places,
            curves,
            place_title=lab.text("axes.into"),
            value_title=lab.text("axes.out"),
            hover=lab.text("hover"),
            value_range=(-2.2, 4.2),
            title=lab.text("activations"),
        ),
        key="block.activations",
    )
    aside(below)
    name = ACTIVATION_NAMES[subject.config.activation]
    lab.note("own", name="SwiGLU" if subject.config.feedforward == "gated" and name == "SiLU" else name)
    _arithmetic(subject, row_of_numbers(subject, *place))
    _alone(subject, place)
    _one_matrix(subject, place)
    _width()


@lab.asks("alone")
def feed_forward_question(subject: Subject, stack: str = "") -> lesson.Choice:
    n = len(subject.trace.tokens[stack or usual(subject).stack])
    return lab.options("alone", 1, {"none": 0, "beside": 2, "all": n}, n, n=n)


def _arithmetic(subject: Subject, found: RowOfNumbers) -> None:
    config = subject.config
    gated, bias = config.feedforward == "gated", config.bias
    name = ACTIVATION_NAMES[config.activation]
    b_1, b_2, b_g = (" + b_1", " + b_2", " + b_g") if bias else ("", "", "")
    inside = rf"\big({_act(name, f'x W_g{b_g}')} \odot (x W_1{b_1})\big)" if gated else _act(name, f"x W_1{b_1}")
    m, numbers = found.neuron, found.numbers
    which = rf"(x W_g)_{{{m}}}" if gated else rf"h_{{{m}}}"
    entering, active, inner = (latex.number(row[0, m]) for row in (numbers.entering, numbers.active, numbers.inner))
    lines = [
        rf"{which} &= {latex.sum_of(found.terms_in)} = {entering}",
        rf"a_{{{m}}} &= {_act(name, entering)} = {active}",
    ]
    if gated:
        lines.append(rf"a_{{{m}}} h_{{{m}}} &= {active} \cdot {latex.factor(numbers.hidden[0, m])} = {inner}")
    lines.append(rf"\mathrm{{out}}_0 &= {latex.sum_of(found.terms_out)} = {latex.number(numbers.out[0, 0])}")
    lesson.formula(
        rf"\begin{{aligned}} \mathrm{{FFN}}(x) &= {inside}\, W_2{b_2} \\ {which} &= \textstyle\sum_i x_i\, "
        rf"{'W_g' if gated else 'W_1'}[i, {m}]{' + b' if bias else ''} \end{{aligned}}",
        live=r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}",
        code=found.code,
        given={"x": found.x, **found.given},
    )
    lab.note("shown", m=m, d_ff=f"{numbers.active.size:,}")


def _act(name: str, argument: str) -> str:
    return rf"\max(0, {argument})" if name == "ReLU" else rf"\mathrm{{{name}}}({argument})"


def _alone(subject: Subject, place: Place) -> None:
    st.markdown(lab.text("alone"))
    tokens = subject.trace.tokens[place.stack]
    changed = lab.box("changed", labels.numbered(tokens), place.row)
    lesson.ask(feed_forward_question(subject, place.stack))
    found = each_alone(subject, place.stack, place.layer, changed)
    moved = found.moved.astype(np.float32)
    chart.show(figures.change_bars(moved, labels.texts(tokens), changed), key="block.alone")
    if len(tokens) > 1:
        proof_badge.show(found.proof, lab.text("others", difference=f"{found.proof.difference:.1g}"))


def _one_matrix(subject: Subject, place: Place) -> None:
    st.markdown(lab.text("matrix"))
    found = one_matrix(subject, place.stack, place.layer)
    if found is None:
        lab.note("gate")
        return
    difference = f"{found.proof.difference:.1g}"
    proof_badge.show(found.proof, lab.text("product", d=subject.config.d_model, difference=difference))
    token, times = subject.trace.tokens[place.stack][place.row].text, f"{found.apart[place.row]:.2g}"
    lab.say("between", row=place.row, token=token, times=times)


def _width() -> None:
    """Losses against d_ff / d_model, in small trainings: a curve for one depth, and one for one number of weights."""
    st.markdown(lab.text("wide"))
    found = width_losses()
    deep, large = found["depth"][0], found["size"][0]
    names = {
        "depth": lab.text("series.depth", layers=deep.layers),
        "size": lab.text("series.size", n=large.matrices),
    }
    curves = {names[name]: {float(row.ratio): row for row in rows} for name, rows in found.items()}
    ratios, seeds = sorted({ratio for curve in curves.values() for ratio in curve}), len(found["size"][0].losses)
    missing = [float("nan")] * seeds
    figure = figures.line_curves(
        np.array(ratios),
        {
            name: np.array([curve[at].mean if at in curve else missing[0] for at in ratios])
            for name, curve in curves.items()
        },
        place_title=lab.text("ratio"),
        value_title=lab.text("loss"),
        hover=lab.text("trained.mean"),
        dots=(
            np.repeat(ratios, seeds),
            {
                name: np.array([loss for at in ratios for loss in (curve[at].losses if at in curve else missing)])
                for name, curve in curves.items()
            },
            [lab.text("trained.seed", seed=seed, place=f"{at:.4g}") for at in ratios for seed in range(seeds)],
        ),
        title=lab.text("trainings"),
    )
    chart.show(figure.update_traces(connectgaps=True), key="block.width")
    lab.note("found", n=seeds, command=Markup("`python -m recipes.feed_forward_width feed_forward_width.json`"))
