"""Several residual streams by hand: how a layer predicts them, goes around its attention, and corrects them (AltUp, LAuReL).

The first stream is shown, which goes through the sublayers; the others are predicted and corrected by weights of their own.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, set_cells, stored
from vizformer.explain.norms import normalise
from vizformer.explain.proof_anchors import recorded
from vizformer.explain.step import Axis, Contraction, Operand, Proof, Step
from vizformer.explain.sublayer import ROWS, Sublayer, entry
from vizformer.messages import N_
from vizformer.model.block import Block
from vizformer.model.norms import Around
from vizformer.model.streams import Laurel, Streams
from vizformer.model.trace import Trace
from vizformer.model.transformer import Transformer

MATRIX: tuple[Axis, ...] = ("features", "features")


def streams_before(model: Transformer, trace: Trace, stack: str, layer: int) -> Float[Tensor, "n s d_model"]:
    """All streams that enter a layer; those before the first one are made of the embeddings."""
    module, count = model.decoder, model.config.n_streams or 1
    assert module is not None
    if layer == 0:
        ids = torch.tensor([[token.id for token in trace.tokens[stack]]], device=trace.logits.device)
        return module.split(model.embed(ids))[0].detach()
    points = ("post", *(f"stream_{number}" for number in range(1, count)))
    return torch.stack([trace.residual(f"{stack}.{layer - 1}.{point}") for point in points], dim=1)


def told(streams: Streams, x: ndarray, weight: Tensor) -> tuple[Float[ndarray, "n s"], Float[ndarray, "n m"]]:
    """t(x) of `vizformer.model.streams`, and what a matrix [m, s] makes of it."""
    dtype = weight.dtype
    small = stored(normalise(x, streams.norm) / x.shape[1], dtype)
    t = stored(np.tanh(stored(small @ float64(streams.W_t.weight).T, dtype)), dtype)
    return t, stored(t @ float64(weight).T, dtype)


def corrected(
    model: Transformer, block: Block, trace: Trace, at: str, rows: slice = slice(None)
) -> Float[ndarray, "n s d_model"]:
    """The streams of the layer `at`, "decoder.2", as the innovation has corrected them, before the token is read again."""
    stack, __, layer = at.partition(".")
    streams, dtype = block.streams, trace.residual(f"{at}.pre").dtype
    assert streams is not None
    x = float64(streams_before(model, trace, stack, int(layer))[rows])  # [n, s, d_model]
    mixed = told(streams, x[:, 0], streams.W_predict.weight)[1].reshape(len(x), x.shape[1], -1)
    predicted = stored(stored(mixed @ x, dtype) + x, dtype)
    predicted[:, 0] = float64(trace.residual(f"{at}.pre")[rows])
    y = float64(trace.residual(f"{at}.mid_feedforward")[rows])
    gain = stored(told(streams, y, streams.W_correct.weight)[1] + 1.0, dtype)
    new = stored(y - predicted[:, 0], dtype)
    return stored(predicted + stored(gain[:, :, None] * new[:, None], dtype), dtype)


def gate_rows(corrected: Float[ndarray, "n s d_model"], streams: Streams) -> Float[ndarray, "n d_model"]:
    """What the gate of what a layer reads of its token again reads."""
    if streams.scale_weight is None:
        return corrected[:, 0]
    return stored(corrected[:, 0] * float64(streams.scale_weight), streams.scale_weight.dtype)


@dataclass(frozen=True)
class SecondStream(Sublayer):
    """Where the token is read again: the first stream is read, the second one added to, and all others like it."""

    streams: tuple[ndarray, ndarray] = (np.zeros(0), np.zeros(0))  # what is read, what is added to

    @property
    def entering_rows(self) -> Float[ndarray, "n d_model"]:
        return self.streams[0]

    @property
    def x(self) -> Float[ndarray, "n d_model"]:
        return self.streams[1]


def second_stream(model: Transformer, block: Block, trace: Trace, layer: str) -> SecondStream:
    """The place of the last sublayer of a layer with several streams."""
    assert block.streams is not None
    rows = corrected(model, block, trace, layer)
    both = gate_rows(rows, block.streams), rows[:, 1]
    around, before = block.around("layer_input"), f"{layer}.mid_feedforward"
    return SecondStream(trace, around, "layer_input", before, f"{layer}.stream_1", streams=both)


def _told_steps(at: Sublayer, streams: Streams, x: ndarray, weight: Tensor, proof: Proof) -> list[Step]:
    """t(x), and what is made of it."""
    t, found = told(streams, x, weight)
    make, W_t, W, d = at.maker(proof), float64(streams.W_t.weight).T, float64(weight).T, x.shape[1]
    predicts = at.kind == "predict"
    small = normalise(x, streams.norm) / d
    symbol, variable = ("C", "weights") if predicts else ("g", "gain")
    made = found if predicts else found + 1.0
    return [
        make(
            "told",
            N_("Predict the streams, 1: what the first one says")
            if predicts
            else N_("Correct the streams, 1: what came of the first one"),
            N_(
                "This model has {n} residual streams beside one another. The first one is normalised, divided by its width, and "
                "brought to a number between -1 and 1 for each of them.",
                n=t.shape[1],
            ),
            r"T = \tanh\!\left( \tfrac{1}{d}\, \mathrm{norm}(X_0)\, W_t \right)",
            rf"T_{{0,0}} = \tanh({latex.sum_of(small[0] * W_t[:, 0])}) = {latex.number(t[0, 0])}",
            "T",
            t,
            norms.code(streams.norm, "normed", "residual") + f"\ntold = torch.tanh(normed @ W_t / {d})",
            operands=(
                Operand("X_0", N_("the first stream"), x, ROWS),
                Operand("W_t", N_("the matrix W_{letter}", letter="t"), W_t, MATRIX),
                *norms.operands(streams.norm),
            ),
            inputs={
                "residual": torch.from_numpy(x).to(streams.W_t.weight),
                "W_t": streams.W_t.weight.detach().T,
                **norms.inputs(streams.norm),
            },
        ),
        make(
            variable,
            N_("Predict the streams, 2: a weight for each of them")
            if predicts
            else N_("Correct the streams, 2: how far each is moved"),
            N_("A matrix makes of these how much of every stream is added to the first one.")
            if predicts
            else N_("A matrix makes of these how far each stream follows what is new; 1 is added: the whole of it."),
            rf"{symbol} = T W" + ("" if predicts else " + 1"),
            entry(symbol, t[0], W[:, 0], 0.0 if predicts else 1.0, made[0, 0]),
            symbol,
            made,
            f"{variable} = told @ W" + ("" if predicts else " + 1"),
            operands=(Operand("W", N_("the matrix W_{letter}", letter=at.kind), W, MATRIX),),
            inputs={"W": weight.detach().T},
            contraction=Contraction(t, W, np.zeros(W.shape[1]) if predicts else np.ones(W.shape[1])),
        ),
    ]


def predict_steps(model: Transformer, block: Block, trace: Trace, layer: str) -> list[Step]:
    """From the streams that the layer before has left to the prediction of the first one, which the sublayers read."""
    stack, __, number = layer.partition(".")
    streams, point = block.streams, f"{layer}.pre"
    assert streams is not None
    whole, kept = streams_before(model, trace, stack, int(number)), trace.residual(point)
    x, count = float64(whole), whole.shape[1]
    weight = streams.W_predict.weight[:count]
    found = told(streams, x[:, 0], weight)[1]
    shares = found[:, :, None] * x  # [n, s, d_model]
    result = set_cells(trace, point, stored(x[:, 0] + stored(shares.sum(1), kept.dtype), kept.dtype))
    terms = np.sqrt(x[:, 0] ** 2 + (shares**2).sum(1))
    proof = Proof.compare(recorded(point), result, kept, terms=terms)
    at = Sublayer(trace, Around(), "predict", point, point)
    first = _told_steps(at, streams, x[:, 0], weight, replace(proof, direct=False))
    last = at.maker(proof)(
        "sum",
        N_("Predict the streams, 3: the first one"),
        N_(
            "The first stream, and these shares of all, are what this layer works on. The others are predicted likewise, by "
            "weights of their own, and wait."
        ),
        r"X = X_0 + \sum_i C_i \odot X_i",
        rf"X_{{0,0}} = {latex.number(x[0, 0, 0])} + {latex.sum_of_products(found[0], x[0, :, 0])} = "
        rf"{latex.number(result[0, 0])}",
        "X",
        result,
        "x = residual + (weights[:, :, None] * streams).sum(1)",
        operands=tuple(
            Operand(f"X_{stream}", N_("stream {n}", n=stream), x[:, stream], ROWS) for stream in range(count)
        ),
        inputs={"streams": whole},
    )
    return [*first, replace(last, key="input")]


def laurel_steps(at: Sublayer, laurel: Laurel) -> list[Step]:
    """The second way around attention, from what that reads, and the sum of both."""
    y = at.read
    W_left, W_right = float64(laurel.W_left.weight).T, float64(laurel.W_right.weight).T
    narrow = stored(y @ W_left, at.dtype)
    wide = stored(narrow @ W_right, at.dtype)
    way = stored(y + normalise(wide, laurel.norm), at.dtype)
    x, kept = at.x, at.trace.residual(at.after)
    result = set_cells(at.trace, at.after, stored(stored(x + way, at.dtype) * 2**-0.5, at.dtype))
    proof = Proof.compare(recorded(at.after), result, kept, terms=np.maximum(np.abs(x), np.abs(way)))
    code = norms.code(laurel.norm, "normed", "y @ W_left @ W_right") + "\nway = y + normed"
    weights = {"W_left": laurel.W_left.weight.detach().T, "W_right": laurel.W_right.weight.detach().T}
    given = {"y": torch.from_numpy(y).to(laurel.W_left.weight), **weights, **norms.inputs(laurel.norm)}
    return [
        at.maker(replace(proof, direct=False))(
            "way",
            N_("Around attention, 1: a second way"),
            N_(
                "What attention has read goes a second way too (LAuReL): through {n} numbers and back to the width of the "
                "stream; normalised, that is added to what was read.",
                n=narrow.shape[1],
            ),
            r"L = Y + \mathrm{norm}(Y W_\mathrm{left} W_\mathrm{right})",
            rf"L_{{0,0}} = {latex.number(y[0, 0])} + {latex.factor((way - y)[0, 0])} = {latex.number(way[0, 0])}",
            "L",
            way,
            code,
            operands=(
                Operand("Y", N_("what attention reads"), y, ROWS),
                Operand(r"W_\mathrm{left}", N_("the narrowing matrix"), W_left, MATRIX),
                Operand(r"W_\mathrm{right}", N_("the widening matrix"), W_right, MATRIX),
                *norms.operands(laurel.norm),
            ),
            inputs=given,
        ),
        at.maker(proof)(
            "sum",
            N_("Around attention, 2: both ways together"),
            N_(
                "The stream with what attention has added, and the second way, are summed; √2 keeps the size of the sum."
            ),
            r"X' = \frac{Y' + L}{\sqrt{2}}",
            rf"X'_{{0,0}} = \frac{{{latex.number(x[0, 0])} + {latex.factor(way[0, 0])}}}{{\sqrt{{2}}}} = "
            rf"{latex.number(result[0, 0])}",
            "X'",
            result,
            "x = (residual + way) / 2**0.5",
            operands=(Operand("Y'", N_("the residual stream before"), x, ROWS),),
            inputs={"residual": at.trace.residual(at.before)},
        ),
    ]


def correct_steps(block: Block, trace: Trace, layer: str) -> list[Step]:
    """From what the sublayers have made of the first stream to what leaves the layer of it."""
    streams, kept = block.streams, trace.residual(f"{layer}.post")
    assert streams is not None
    p, y = (float64(trace.residual(f"{layer}.{point}")) for point in ("pre", "mid_feedforward"))
    found = told(streams, y, streams.W_correct.weight)[1]
    gain, new = stored(found + 1.0, kept.dtype)[:, :1], stored(y - p, kept.dtype)
    result = set_cells(trace, f"{layer}.post", stored(p + stored(gain * new, kept.dtype), kept.dtype))
    proof = Proof.compare(recorded(f"{layer}.post"), result, kept, terms=np.maximum(np.abs(p), np.abs(y * gain)))
    at = Sublayer(trace, Around(), "correct", f"{layer}.mid_feedforward", f"{layer}.post")
    first = _told_steps(at, streams, y, streams.W_correct.weight, replace(proof, direct=False))
    last = at.maker(proof)(
        "corrected",
        N_("Correct the streams, 3: the first one"),
        N_(
            "What is new, the difference to the prediction, is added to every stream's prediction, to each as far as its number "
            "says. Here is the first one."
        ),
        r"X'' = P + g_0 \odot (X_0 - P)",
        rf"X''_{{0,0}} = {latex.number(p[0, 0])} + {latex.factor(gain[0, 0])} \cdot {latex.factor(new[0, 0])} = "
        rf"{latex.number(result[0, 0])}",
        "X''",
        result,
        "x = predicted + gain[:, :1] * (residual - predicted)",
        operands=(Operand("P", N_("the prediction of the first stream"), p, ROWS),),
        inputs={"predicted": trace.residual(f"{layer}.pre")},
    )
    return [*first, last]
