"""Direct logit attribution: a logit as a sum of what each part of the model has written into the last row.

The last row is a sum, and the logit of token t a product with it, so that every part has a share of its own.  What is not
linear on this way is frozen at what it was in the forward:

    a norm divides a row by one number, its deviation; with that number frozen it is linear:
        g . norm(y) = g . beta + P(gamma * g) / deviation . y        P takes off the mean (in RMSNorm nothing)
    the head for hidden words has an activation; with the ratios act(d) / d frozen it is linear as well

From the logit the direction g is brought back through the final norm, and in post-norm models through the norm of every
sublayer, to each point of the residual stream: what a part writes there, times the g there, is its term.  The terms sum to
the logit, and the proof says how closely.  They are shares of a sum, not effects: without a part, the deviations, and what
the later layers do, would change too.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022, "Interpretability in the
Wild" (3.1, direct effects, the norm's scale frozen).
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.attribution.backward import LogitBackward, attention_at, inner_rows, output_rows, reference
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.attribution.terms import Against, LogitAttribution
from vizformer.checkpoints import AnyCheckpoint
from vizformer.checkpoints.tensors.memory import name_of
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.block_rows import find_block
from vizformer.explain.step import ROUNDINGS, TOLERANCE, Proof
from vizformer.messages import N_, Message
from vizformer.model.input_check import row_at, token_id
from vizformer.model.trace import Trace


def logit_attribution(
    checkpoint: AnyCheckpoint, trace: Trace, position: int, token: int, *, against: Against = "mean"
) -> LogitAttribution:
    """The terms of one token's logit at one position of the stack that predicts.

    Args:
        against: "mean" takes the mean logit of all tokens off it, a token's id that token's logit, None nothing.
            Probabilities do not change when the same number is added to every logit: only differences say something.
    """
    n, vocab = trace.logits.shape
    position, token = row_at(position, n), token_id(token, vocab)
    if against is not None and against != "mean":
        against = token_id(against, vocab)
    back = LogitBackward(checkpoint, trace, position)
    back.head(token, against)
    back.stack()
    logits = float64(trace.logits[position])
    recorded = float(logits[token] - reference(logits, against))
    terms = tuple(reversed(back.terms))
    difference = abs(sum(term.value for term in terms) - recorded)
    size = max(1.0, abs(recorded), float(np.sqrt(back.squares)))
    half = is_half(trace.logits.dtype)
    allowed = size * (ROUNDINGS * torch.finfo(trace.logits.dtype).eps if half else TOLERANCE)
    name = name_of(trace.logits.dtype)
    proof = Proof(N_("the model's own logit"), difference, bool(difference <= allowed), direct=True, precision=name)
    directions = {place: g[0] for place, g in back.directions.items()}
    return LogitAttribution(position, token, against, terms, directions, recorded, proof, allowed)


def by_key(
    checkpoint: AnyCheckpoint, trace: Trace, found: LogitAttribution, site: str, head: int
) -> Float[ndarray, " n_k"]:
    """The term of a head, key by key: a_j v_j W_O . g; they sum to it."""
    record = trace[site]
    if site not in found.directions:
        raise TraceError("{site} writes nothing into the row that becomes the logit.", site=site)
    weights = float64(record.pattern(head)[found.position])  # raises for a head that is not there
    own = output_rows(attention_at(checkpoint, site), head) @ found.directions[site]  # [d_head]
    return weights * (float64(record.v[record.kv_head(head)]) @ own)


def neurons(checkpoint: AnyCheckpoint, trace: Trace, found: LogitAttribution, layer: int) -> Float[ndarray, " d_ff"]:
    """The term of a layer's feed-forward network, neuron by neuron: its number times its row of W_out . g."""
    stack = predicting_stack(checkpoint)
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    network = block.feedforward
    inner = inner_rows(block, network, trace, at, slice(found.position, found.position + 1))[0]
    return inner * (found.directions[f"{at}.feedforward"] @ float64(network.W_out.weight))


def what_is_frozen(checkpoint: AnyCheckpoint) -> Iterator[Message]:
    """Names what was frozen at its value in the forward, so that the logit is a sum; one sentence each."""
    config = checkpoint.model.config
    if config.norm_order == "post":
        yield N_(
            "This model normalises after every sublayer. The number by which each of these norms divides is held as "
            "it was, all along the way from the part to the logit."
        )
    elif config.final_norm:
        yield N_("The number by which the last norm divides the row is held as it was.")
    elif config.head == "linear":
        yield N_("Nothing had to be held: this model has no norm between the last layer and the logits.")
    if config.residual == "none":
        yield N_(
            "This model has no residual connections: all that is in the last row was made by the last sublayer, and "
            "what came before is in it only through what that sublayer has read. No other part has a share."
        )
    if config.head == "transform":
        yield N_(
            "The ratios by which the activation of the head changes its numbers, and what its norm divides by, are held "
            "as they were."
        )
    if config.architecture == "encoder-decoder":
        yield N_("What the encoder has made comes in through the heads of cross-attention.")
    if config.positions not in ("learned", "sinusoidal"):
        yield N_("Positions add nothing to the row here: they only decide where heads look.")
