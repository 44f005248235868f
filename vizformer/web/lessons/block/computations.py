"""Cached computations of the lesson Add & norm, feed-forward."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from vizformer.analysis import read_alignments
from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.parameter_count import Counted, Sizes, WidthRatio, count, parts
from vizformer.analysis.training import depth_gradients, dropout
from vizformer.analysis.training.depth_gradients import ByDepth, untrained
from vizformer.analysis.training.dropout import Answers, Dropped, drop
from vizformer.analysis.vectors import neurons
from vizformer.analysis.vectors.neurons import Firing, Raised
from vizformer.assets import asset
from vizformer.explain import activations
from vizformer.explain import feedforward_rows as feedforward_numbers
from vizformer.explain.block_rows import (
    BlockStream,
    StackStream,
    SublayerKind,
    feedforward_input,
    find_block,
    one_network,
)
from vizformer.explain.feedforward_rows import Alone, OneMatrix, RowOfNumbers, multiplied_out, row_of_numbers
from vizformer.explain.norm_rows import NeighbourEffect, NormNumbers, norm_rows
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef


@cached
def block_stream(subject: Subject, stack: str, layer: int, row: int) -> BlockStream:
    from vizformer.explain.block_rows import block_stream

    return block_stream(subject.checkpoint, subject.trace, stack, layer, row)


@cached
def stack_stream(subject: Subject, stack: str, row: int) -> StackStream:
    from vizformer.explain.block_rows import stack_stream

    return stack_stream(subject.trace, stack, row)


@cached
def norm_numbers(
    subject: Subject,
    stack: str,
    layer: int,
    kind: SublayerKind,
    row: int,
    gamma: float | None,
    beta: float | None,
) -> NormNumbers:
    from vizformer.explain.norm_rows import norm_numbers

    rows, norm = norm_rows(subject.checkpoint, subject.trace, stack, layer, kind)
    return norm_numbers(rows, norm, row, gamma, beta)


@cached
def neighbour_effect(
    subject: Subject, stack: str, layer: int, kind: SublayerKind, one: str, other: str
) -> NeighbourEffect:
    """The sentence's rows at a norm, in a batch with one neighbour and with the other."""
    from vizformer.explain.norm_rows import neighbour_effect

    subjects = (subject, *(replace(subject, text=text, target="", edited="") for text in (one, other)))
    sentence, first, second = (norm_rows(s.checkpoint, s.trace, stack, layer, kind)[0] for s in subjects)
    return neighbour_effect(sentence, first, second)


def norm_code(
    subject: Subject, stack: str, layer: int, kind: SublayerKind, variable: str, argument: str
) -> tuple[str, dict[str, Tensor]]:
    """A norm's line of code and what it reads."""
    from vizformer.explain.block_rows import norm_code

    return norm_code(subject.checkpoint, stack, layer, kind, variable, argument)


# --- feed-forward -----------------------------------------------------------------------------------------------------


@cached
def feedforward(subject: Subject, stack: str, layer: int, row: int) -> RowOfNumbers:
    """The network for one token, and its most active neuron in full."""
    x, network = feedforward_input(subject.checkpoint, subject.trace, stack, layer)
    return row_of_numbers(x[row], network, subject.trace.residual(f"{stack}.{layer}.pre").dtype)


@cached
def each_alone(subject: Subject, stack: str, layer: int, changed: int) -> Alone:
    return feedforward_numbers.each_alone(*feedforward_input(subject.checkpoint, subject.trace, stack, layer), changed)


@cached
def one_matrix(subject: Subject, stack: str, layer: int) -> OneMatrix | None:
    x, network = feedforward_input(subject.checkpoint, subject.trace, stack, layer)
    return feedforward_numbers.one_matrix(x, network, _multiplied_out(subject.model, stack, layer))


@cached
def _multiplied_out(model: ModelRef, stack: str, layer: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The same for all texts, and what takes the time."""
    block = find_block(model_cache.checkpoint(model), stack, layer)
    return multiplied_out(one_network(block, f"{stack}.{layer}"))


@cached
def activation_curves(other: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Places from -4 to 4, and the activations there."""
    x = np.linspace(-4, 4, 161)
    return x, activations.activation_curves(x, other)


@cached
def firing(subject: Subject, stack: str, layer: int, row: int) -> Firing:
    return neurons.firing(subject.checkpoint, subject.trace, stack, layer, row)


@cached
def silent_by_layer(subject: Subject, stack: str) -> np.ndarray:
    return neurons.silent_by_layer(subject.checkpoint, subject.trace, stack)


AFFORDABLE = 30_000_000
"""Parameters: with a larger model the bundled sentences take too long to be read while somebody waits."""


def affordable(model: ModelRef) -> bool:
    return sum(p.numel() for p in model_cache.checkpoint(model).model.parameters()) <= AFFORDABLE


def corpus(model: ModelRef) -> list[tuple[str, str | None]]:
    """The bundled sentences that a model reads: pairs for an encoder-decoder, else each language by itself."""
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    if model_cache.options(model).architecture == "encoder-decoder":
        return [(pair.source, pair.target) for pair in pairs]
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    return [(text, None) for text in texts if model_cache.reads(model, text)]


@cached
def raised_most(model: ModelRef, stack: str) -> Raised:
    return neurons.raised_most(model_cache.checkpoint(model), corpus(model), stack)


# --- depth, and the order of the norms ----------------------------------------------------------------------------


@cached
def by_depth() -> ByDepth:
    return depth_gradients.by_depth()


@cached
def powers_of_ten(depth: int) -> float:
    return depth_gradients.powers_of_ten(depth)


@cached
def layer_gradients(depth: int) -> dict[str, np.ndarray]:
    """|dL/dW_in| of every layer of an untrained stack, by the order of its norms."""
    return {"post": untrained("post", depth).gradients, "pre": untrained("pre", depth).gradients}


@cached
def norm_order_training() -> dict[str, Any]:
    """The bundled trainings: see `recipes.norm_order`."""
    found: dict[str, Any] = json.loads(asset("lessons", "block", "norm_order.json").read_text(encoding="utf-8"))
    return found


# --- dropout, parameters, the toy -------------------------------------------------------------------------------------


@cached
def dropped(subject: Subject, stack: str, layer: int, row: int, p: float, seed: int) -> Dropped:
    return drop(block_stream(subject, stack, layer, row).attention_added, p, seed)


@cached
def training_answers(subject: Subject, p: float, seed: int) -> Answers:
    """What the model answers with dropout switched on, several times."""
    return dropout.training_answers(subject.checkpoint, subject.trace, p, seed)


@cached
def counted(sizes: Sizes) -> Counted:
    return count(sizes)


@cached
def model_parts(model: ModelRef) -> dict[str, int]:
    """What the loaded model has, by stack and kind of part."""
    return parts(model_cache.checkpoint(model).model)


@cached
def width_ratios(model: ModelRef) -> tuple[WidthRatio, ...]:
    """The model with feed-forwards 1 to 8 times as wide as the residual stream."""
    return parameter_count.width_ratios(model_cache.options(model))


@cached
def toy_program(lines: int) -> tuple[str, dict[str, Tensor]]:
    from vizformer.explain.toy_code import toy_program

    return toy_program(lines)


@cached
def toy_difference() -> float:
    from vizformer.explain.toy_code import toy_difference

    return toy_difference()
