"""What the answer becomes without a neuron: each one of a feed-forward network, one after the other.

A neuron is a column of W_in with the row of W_out of the same number.  Its output after the activation is replaced at all
positions by zero, or by its mean over other texts, and the effects are those of `ablation` at one row of the output:

    KL(P || P') in nats, the change of the logit and of the probability of one token

Everything before W_out has the same numbers as in the trace, and a neuron k that is set to c adds (c - h[i, k]) W_out[k] to
what the network puts out at position i; so that a run begins there.  Many neurons share a batch, one in each item; positions
after the row are left out where nobody looks back from them; and a neuron that is already what it would be set to (of a
ReLU most are 0) has the effect 0 without a run.

In a large model all neurons still take minutes.  One gradient estimates each of them, by a first-order Taylor step, and the
sweep can be kept to the neurons of which it expects most:

    change of ln P(token)  ~  sum_i (c - h[i, k]) d ln P(token) / d h[i, k]

Source: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories" (neurons); Zhang & Nanda 2023, section 2
(zero and mean ablation); Nanda 2023, "Attribution Patching" (the estimate).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.ablation import row_effects
from vizformer.analysis.causes.batches import MOST_LOGITS, MOST_TOKENS, Heard, Start, gradients, resumed
from vizformer.analysis.causes.part_outputs import Listener
from vizformer.analysis.frames import frame
from vizformer.analysis.masks.runs import rerun
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.explain.block_rows import find_block, one_network
from vizformer.explain.streams import streams_before
from vizformer.model import Trace
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.input_check import row_at, token_id

Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class NeuronEffects:
    """What taking each neuron of one network out changes at one row."""

    neurons: Int[ndarray, " k"]  # their numbers
    divergence: Float[ndarray, " k"]  # KL(P || P') in nats
    # logit, probability: of the token, P' minus P
    logit: Float[ndarray, " k"]
    probability: Float[ndarray, " k"]
    output: Float[ndarray, " k"]  # the neuron's own output at the row where the largest |output| stands
    still: int  # how many neurons were already what they are set to, at all positions: their effect is 0

    def strongest(self, count: int) -> list[int]:
        """Places in these arrays, the largest divergence first."""
        return [int(at) for at in np.argsort(-self.divergence, kind="stable")[:count]]

    def to_frame(self) -> Any:
        """A DataFrame: a row for each neuron, the largest KL first."""
        order, columns = self.strongest(len(self.neurons)), ("divergence", "logit", "probability", "output")
        rows = zip(self.neurons[order], *(getattr(self, name)[order] for name in columns), strict=True)
        return frame(rows, ("neuron", *columns))


@torch.inference_mode()
def neuron_sweep(
    checkpoint: Checkpoint,
    trace: Trace,
    stack: Stack,
    layer: int,
    row: int,
    token: int,
    means: Float[Tensor, " d_ff"] | None = None,
    *,
    neurons: Sequence[int] | None = None,
    heard: Heard | None = None,
) -> NeuronEffects:
    """Takes out one neuron after the other, many in one batch.

    Args:
        means: what takes the place of each neuron (`mean_neurons`); zero where nothing is said.
        neurons: all of the network where nothing is said.

    Raises:
        TraceError: no such layer, neuron, row or token; a layer of experts; a trace in which numbers were set by hand.
    """
    row, token = _required(checkpoint, trace, stack, layer, row, token)
    vocab_size = trace.logits.shape[1]
    d_ff = checkpoint.model.config.d_ff_of(layer)
    wanted = np.arange(d_ff) if neurons is None else np.asarray(neurons, dtype=int)
    if wanted.size and not (wanted.min() >= 0 and wanted.max() < d_ff):
        raise TraceError("This network has the neurons 0 to {last}.", last=d_ff - 1)
    there, base = _hidden(checkpoint, trace, stack, layer), trace.logits[row]  # [n, d_ff], [vocab_size]
    instead = torch.zeros_like(there[0]) if means is None else means.to(there)
    still = (there == instead).all(0)[wanted].cpu().numpy()
    found = np.zeros((3, len(wanted)))
    runs = np.flatnonzero(~still)
    length = sum(map(len, trace.tokens.values()))
    size = max(1, min(MOST_TOKENS // length, MOST_LOGITS // vocab_size))
    for first in range(0, len(runs), size):
        group = runs[first : first + size]
        numbers = torch.from_numpy(wanted[group]).to(there.device)
        change = (instead[numbers] - there[:, numbers]).T  # [b, n]
        logits = _resumed(checkpoint, trace, stack, layer, row, there, numbers, change)
        found[:, group] = row_effects(base, logits, token)
        if heard is not None:
            heard(first + len(group), len(runs))
    largest = there.gather(0, there.abs().argmax(0, keepdim=True))[0].float().cpu().numpy()[wanted]
    return NeuronEffects(wanted, found[0], found[1], found[2], largest, int(still.sum()))


def neuron_estimates(
    checkpoint: Checkpoint,
    trace: Trace,
    stack: Stack,
    layer: int,
    row: int,
    token: int,
    means: Float[Tensor, " d_ff"] | None = None,
) -> Float[ndarray, " d_ff"]:
    """The change of ln P(token) that one gradient expects without each neuron; arguments and errors of `neuron_sweep`."""
    row, token = _required(checkpoint, trace, stack, layer, row, token)
    name = f"{stack}.{layer}.feedforward.hidden"
    with torch.inference_mode():
        there = _hidden(checkpoint, trace, stack, layer)
    slopes = gradients(checkpoint, trace, {name: there}, row, lambda logits: logits.double().log_softmax(-1)[token])
    change = -there if means is None else means.to(there) - there
    return (change.double() * slopes[name].double()).sum(0).cpu().numpy()


def likely_neurons(
    checkpoint: Checkpoint,
    trace: Trace,
    stack: Stack,
    layer: int,
    row: int,
    token: int,
    means: Float[Tensor, " d_ff"] | None = None,
    *,
    count: int,
) -> list[int]:
    """The neurons of the largest |estimate|, the largest first, for `neurons` of `neuron_sweep`."""
    estimates = neuron_estimates(checkpoint, trace, stack, layer, row, token, means)
    return [int(k) for k in np.argsort(-np.abs(estimates), kind="stable")[:count]]


@torch.inference_mode()
def mean_neurons(checkpoint: Checkpoint, traces: Iterable[Trace], stack: Stack, layer: int) -> Float[Tensor, " d_ff"]:
    """The mean output of every neuron of a network, over all rows of some texts.

    Raises:
        TraceError: no such layer, one of experts, or no text.
    """
    _require_layer(checkpoint, stack, layer)
    total, rows = None, 0
    for trace in traces:
        output = _hidden(checkpoint, trace, stack, layer).double()
        total, rows = output.sum(0) + (0 if total is None else total), rows + len(output)
    if total is None:
        raise TraceError("There is no other text from which outputs could be taken.")
    return (total / rows).float()


def _required(checkpoint: Checkpoint, trace: Trace, stack: Stack, layer: int, row: int, token: int) -> tuple[int, int]:
    if trace.edit is not None:
        raise TraceError("Neurons are taken out of a run in which no number was set by hand.")
    _require_layer(checkpoint, stack, layer)
    n, vocab_size = trace.logits.shape
    return row_at(row, n), token_id(token, vocab_size)


def _require_layer(checkpoint: Checkpoint, stack: Stack, layer: int) -> None:
    config = checkpoint.model.config
    layers = config.layers_of(stack)
    if not 0 <= layer < layers:
        raise TraceError("There is nothing called {name} to edit in this model.", name=f"{stack}.{layer}.feedforward")
    one_network(find_block(checkpoint, stack, layer), f"{stack}.{layer}")


def _hidden(checkpoint: Checkpoint, trace: Trace, stack: Stack, layer: int) -> Float[Tensor, "n d_ff"]:
    """What the neurons of a network put out for the tokens of a trace."""
    name = f"{stack}.{layer}.feedforward.hidden"
    listener = Listener(names=frozenset({name}))
    rerun(checkpoint, trace.tokens, listener)
    return listener.heard[name][0]


def _resumed(
    checkpoint: Checkpoint,
    trace: Trace,
    stack: Stack,
    layer: int,
    row: int,
    hidden: Float[Tensor, "n d_ff"],
    neurons: Int[Tensor, " b"],
    change: Float[Tensor, "b n"],
) -> Float[Tensor, "b vocab_size"]:
    """The logits at a row of the output, with one neuron of each item changed, from its W_out on."""
    model = checkpoint.model
    block, name = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    until = row + 1 if stack == "decoder" else None  # a decoder does not look at what comes after
    w_out = one_network(block, name).W_out
    y = w_out(hidden[:until]) + change[:, :until, None] * w_out.weight.T[neurons][:, None, :]  # [b, n, d_model]
    around = block.around("feedforward")
    before = trace.residual(f"{name}.mid_cross" if block.cross_attention is not None else f"{name}.mid")[:until]
    x = around.onto(before, around.brought(y))
    x = x if around.after is None else around.after(x)
    ids = checkpoint.tensor(trace.tokens[stack])[:, :until]
    predicted = None
    if block.streams is not None:
        whole = block.streams.predict(streams_before(model, trace, stack, layer)[:until])
        predicted = whole.expand(len(x), *whole.shape)
    x = block.behind_feedforward(x, ForwardPass(layer_inputs=model.layer_inputs(ids)), name, predicted)
    return model.logits(resumed(checkpoint, trace, Start(stack == "decoder", layer + 1), x, row=row))
