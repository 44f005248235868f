"""A layer that reads its token again: the row of its own table, and what the layer makes of it, over all positions."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex, norms
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, stored
from vizformer.explain.norms import normalise
from vizformer.explain.step import Contraction, Operand, Proof, Step
from vizformer.explain.streams import corrected, gate_rows
from vizformer.explain.sublayer import ROWS, Sublayer, add_and_norm, entry
from vizformer.messages import N_
from vizformer.model.block import Block
from vizformer.model.trace import Trace
from vizformer.model.transformer import Transformer


@dataclass(frozen=True)
class LayerInputNumbers:
    """What a layer computes of its tokens' rows (`vizformer.model.layer_input`).

    Attributes:
        x: x_0, the tokens' rows of the usual table, scaled.
        made: W x_0 / sqrt(d_model), before its norm.
        own: sqrt(d_p) E[id].
        p: (norm(made) + own) / sqrt(2).
        gate, active: (stream) W_gate, and that through the activation.
        inner: active * p.
        out: inner W_out.
    """

    x: Float[ndarray, "n d_model"]
    made: Float[ndarray, "n d_p"]
    own: Float[ndarray, "n d_p"]
    p: Float[ndarray, "n d_p"]
    gate: Float[ndarray, "n d_p"]
    active: Float[ndarray, "n d_p"]
    inner: Float[ndarray, "n d_p"]
    out: Float[ndarray, "n d_model"]


def layer_input_numbers(
    model: Transformer, block: Block, trace: Trace, at: str, rows: slice = slice(None)
) -> LayerInputNumbers:
    """All of it in float64, for some rows of the layer `at`, "decoder.2"; rounded where the model rounds."""
    tables, network = model.layer_input_tables, block.layer_input
    assert tables is not None
    assert network is not None
    before = trace.residual(f"{at}.{block.feedforward_sum}")[rows]
    dtype, d, columns = before.dtype, tables.width, tables.columns(network.layer)
    stream = float64(before)
    if block.streams is not None:
        stream = gate_rows(corrected(model, block, trace, at, rows), block.streams)
    ids = _ids(trace, at)[0, rows].cpu()
    x = stored(float64(model.embedding.weight[ids]) * model.config.embedding_factor, dtype)
    made = stored(stored(x @ float64(tables.W.weight[columns]).T, dtype) * model.config.d_model**-0.5, dtype)
    own = stored(float64(tables.table.weight[tables.known(ids), columns]) * d**0.5, dtype)
    p = stored(stored(normalise(made, tables.norm) + own, dtype) * 2**-0.5, dtype)
    gate = stored(stream @ float64(network.W_gate.weight).T, dtype)
    active = stored(activation_kind(network.activation).compute(gate), dtype)
    inner = stored(active * p, dtype)
    out = stored(inner @ float64(network.W_out.weight).T, dtype)
    return LayerInputNumbers(x, made, own, p, gate, active, inner, out)


def _ids(trace: Trace, at: str) -> Int[Tensor, "1 n"]:
    """The tokens that a layer reads, where the trace lies."""
    return torch.tensor([[token.id for token in trace.tokens[at.partition(".")[0]]]], device=trace.logits.device)


def layer_input_sublayer(at: Sublayer, model: Transformer, block: Block, layer: str) -> list[Step]:
    """From the token's own row to what is added to the stream behind the feed-forward."""
    tables, network = model.layer_input_tables, block.layer_input
    assert tables is not None
    assert network is not None
    n, kind = layer_input_numbers(model, block, at.trace, layer), activation_kind(network.activation)
    d, columns = tables.width, tables.columns(network.layer)
    W, W_gate, W_out = (w.detach().T for w in (tables.W.weight[columns], network.W_gate.weight, network.W_out.weight))
    kept = model.layer_inputs(_ids(at.trace, layer))
    assert kept is not None
    normed = normalise(n.made, tables.norm)
    through = replace(at.proof(n.out), direct=False)
    make = at.maker(through)
    return [
        make(
            "made",
            N_("The token again, 1: what this layer makes of its embedding"),
            N_(
                "Every layer of this model reads the token a second time. A matrix of the layer makes {n} numbers of its "
                "embedding, before any layer has seen it; they are brought to a size of about 1 below.",
                n=d,
            ),
            r"M = \frac{X_0 W}{\sqrt{d}}",
            rf"M_{{0,0}} = \frac{{{latex.sum_of_products(n.x[0], float64(W)[:, 0])}}}{{\sqrt{{{n.x.shape[1]}}}}} = "
            rf"{latex.number(n.made[0, 0])}",
            "M",
            n.made,
            "made = x_0 @ W / x_0.shape[-1] ** 0.5",
            operands=(
                Operand("X_0", N_("the tokens' embeddings"), n.x, ROWS),
                Operand("W", N_("the layer's columns of one matrix"), float64(W), ("features", "features")),
            ),
            inputs={"x_0": torch.from_numpy(n.x).to(W), "W": W},
            contraction=Contraction(n.x * model.config.d_model**-0.5, float64(W)),
        ),
        make(
            "input",
            N_("The token again, 2: with its own row of this layer's table"),
            N_(
                "The layer has a table of its own, with {n} numbers for each token. They are added to what was made of the "
                "embedding. No other token has had a part in either.",
                n=d,
            ),
            r"P = \frac{\mathrm{norm}(M) + E}{\sqrt 2}",
            rf"P_{{0,0}} = \frac{{{latex.number(normed[0, 0])} + {latex.factor(n.own[0, 0])}}}{{\sqrt{{2}}}} = "
            rf"{latex.number(n.p[0, 0])}",
            "P",
            n.p,
            norms.code(tables.norm, "normed", "made") + "\np = (normed + E) / 2 ** 0.5",
            proof=Proof.compare(
                N_("what the model reads of these tokens again"),
                n.p,
                kept[0, :, network.layer],
            ),
            operands=(
                Operand("E", N_("the tokens' rows of the layer's table, scaled"), n.own, ROWS),
                *norms.operands(tables.norm),
            ),
            inputs={"E": torch.from_numpy(n.own).to(W), **norms.inputs(tables.norm)},
        ),
        make(
            "gate",
            N_("The token again, 3: what the stream lets through"),
            N_(
                "The stream, with all that was found about the token here, says how much of each of these numbers counts."
            ),
            r"G = X W_\mathrm{gate}",
            entry("G", at.read[0], float64(W_gate)[:, 0], 0.0, n.gate[0, 0]),
            "G",
            n.gate,
            "gate = stream @ W_gate",
            operands=(
                Operand("X", N_("the residual stream"), at.read, ROWS),
                Operand(r"W_\mathrm{gate}", N_("the gate's matrix"), float64(W_gate), ("features", "features")),
            ),
            inputs={"stream": torch.from_numpy(at.read).to(W_gate), "W_gate": W_gate},
            contraction=Contraction(at.read, float64(W_gate)),
        ),
        make(
            "gated",
            N_("The token again, 4: through the gate"),
            N_(
                "{text} Each number is then multiplied by its partner among those of the token.",
                text=kind.text(n.active),
            ),
            rf"B = {kind.symbol('G')} \odot P",
            rf"B_{{0,0}} = {kind.symbol(latex.number(n.gate[0, 0]))} \cdot {latex.factor(n.p[0, 0])} = "
            rf"{latex.number(n.inner[0, 0])}",
            "B",
            n.inner,
            f"active = {kind.code('gate')} * p",
        ),
        make(
            "narrow",
            N_("The token again, 5: back to the width of the stream"),
            N_("One more matrix brings the result to the width of the residual stream."),
            r"O = B W_\mathrm{out}",
            entry("O", n.inner[0], float64(W_out)[:, 0], 0.0, n.out[0, 0]),
            "O",
            n.out,
            "out = active @ W_out",
            operands=(Operand(r"W_\mathrm{out}", N_("the matrix W_out"), float64(W_out), ("features", "features")),),
            inputs={"W_out": W_out},
            contraction=Contraction(n.inner, float64(W_out)),
        ),
        *add_and_norm(at, n.out),
    ]
