"""The neurons of the feed-forward networks: which fire for a token, how many are silent, what raises each of them most.

A neuron is a column of W_in with the row of W_out of the same number; what it hands on is its number in `inner`
(`vizformer.explain.feedforward_rows`), and it writes that number times its row of W_out into the sum.

Source: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import Checkpoint
from vizformer.explain.arrays import float64
from vizformer.explain.block_rows import feedforward_input, find_block
from vizformer.explain.feedforward_rows import FeedForwardNumbers, feedforward_numbers
from vizformer.explain.snippets import light_inputs
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

MOST = 5  # places in the corpus that are kept for each neuron


@dataclass(frozen=True)
class Firing:
    """The neurons of one token, those that write most first."""

    neurons: Int[ndarray, " count"]
    values: Float[ndarray, " count"]
    lengths: Float[ndarray, " count"]  # |row of W_out| of each
    written: Float[ndarray, " count"]  # |value| times that length: the length of what it adds
    given: dict[str, Tensor]  # what the code reads: the numbers of all neurons, and W_out


def layer_numbers(checkpoint: Checkpoint, trace: Trace, stack: str, layer: int) -> FeedForwardNumbers:
    """The feed-forward network of a layer, for all positions of a trace."""
    x, feedforward = feedforward_input(checkpoint, trace, stack, layer)
    return feedforward_numbers(x, feedforward, trace.residual(f"{stack}.{layer}.pre").dtype)


def firing(checkpoint: Checkpoint, trace: Trace, stack: str, layer: int, row: int, count: int = 8) -> Firing:
    """The neurons that write most for the token at `row`."""
    __, feedforward = feedforward_input(checkpoint, trace, stack, layer)
    values = layer_numbers(checkpoint, trace, stack, layer).inner
    values = values[row_at(row, len(values))]
    lengths = np.linalg.norm(float64(feedforward.W_out.weight), axis=0)  # [d_ff]
    written = np.abs(values) * lengths
    first = np.argsort(-written, kind="stable")[:count]
    given = light_inputs({"a": torch.from_numpy(values), "W_2": feedforward.W_out.weight.detach().T})
    return Firing(first, values[first], lengths[first], written[first], given)


def silent_by_layer(checkpoint: Checkpoint, trace: Trace, stack: str) -> Float[ndarray, " n_layers"]:
    """The share of the numbers that go into the activation and are not positive, of every layer.

    ReLU makes 0 of them; GELU and SiLU leave at most 0.17 and 0.28 of them, below zero.
    """
    layers = range(len(getattr(checkpoint.model, stack).layers))
    entering = [layer_numbers(checkpoint, trace, stack, layer).entering for layer in layers]
    return np.array([float((numbers <= 0).mean()) for numbers in entering])


class Occurrence(NamedTuple):
    text: int
    position: int


@dataclass(frozen=True)
class Raised:
    # the largest numbers that each neuron hands on, falling [n_layers, d_ff, MOST]
    values: Float[ndarray, "n_layers d_ff most"]
    places: Int[ndarray, "n_layers d_ff most 2"]  # where in the corpus (text, position)
    tokens: tuple[tuple[str, ...], ...]

    def of(self, layer: int, neuron: int) -> list[tuple[float, Occurrence]]:
        """The places of one neuron, the largest value first."""
        pairs = zip(self.values[layer, neuron], self.places[layer, neuron], strict=True)
        return [(float(value), Occurrence(*map(int, place))) for value, place in pairs]


def raised_most(checkpoint: Checkpoint, texts: Sequence[tuple[str, str | None]], stack: str) -> Raised:
    """Reads every text (with its target, for an encoder-decoder) and keeps the highest numbers of each neuron.

    Marks at the beginning and the end of a text are left out.
    """
    layers = range(len(getattr(checkpoint.model, stack).layers))
    inputs: list[list[ndarray]] = [[] for _ in layers]
    places: list[tuple[int, int]] = []
    tokens: list[tuple[str, ...]] = []
    for index, (text, target) in enumerate(texts):
        trace = checkpoint.trace(text, target=target)
        read = trace.tokens[stack]
        kept = [position for position, token in enumerate(read) if not token.special]
        tokens.append(tuple(token.text for token in read))
        places += [(index, position) for position in kept]
        for layer in layers:
            inputs[layer].append(feedforward_input(checkpoint, trace, stack, layer)[0][kept])
    where, values, found = np.array(places, dtype=np.int32), [], []
    for layer in layers:
        feedforward = find_block(checkpoint, stack, layer).feedforward
        dtype = feedforward.W_in.weight.dtype
        inner = feedforward_numbers(np.concatenate(inputs[layer]), feedforward, dtype).inner  # [tokens, d_ff]
        first = np.argsort(-inner, axis=0, kind="stable")[:MOST]  # [most, d_ff]
        values.append(np.take_along_axis(inner, first, axis=0).T)
        found.append(where[first.T])
    return Raised(np.stack(values), np.stack(found), tuple(tokens))
