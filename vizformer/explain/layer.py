"""A whole layer computed in float64: every matrix from its input to its output, all positions and heads at once.

Each step is computed from the one before, and proved at every point of the residual stream that the model
recorded, at q, k and v, and at the fused attention's z.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain import latex, norms
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, is_half, rescaled, softmax, stored, was_edited
from vizformer.explain.attention_layer import attention_sublayer
from vizformer.explain.attention_numbers import site_numbers
from vizformer.explain.block_rows import block_at
from vizformer.explain.feedforward_rows import feedforward_numbers, network_steps
from vizformer.explain.step import Axis, Contraction, Maker, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import (
    Sublayer,
    add_and_norm,
    norm_before,
    points,
    recorded,
    sublayer_at,
)
from vizformer.messages import N_
from vizformer.model.feedforward import FeedForward
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace
from vizformer.model.transformer import PredictionTransform


def feedforward_sublayer(at: Sublayer, feedforward: FeedForward) -> list[Step]:
    """The steps of a feed-forward sublayer: the same two-layer network for every row, with a gate if the model has one."""
    numbers = feedforward_numbers(at.read, feedforward, at.dtype)
    through = at.proof(numbers.out, direct=False)
    steps = [*norm_before(at, through), *network_steps(at, feedforward, numbers, through)]
    return [*steps, *add_and_norm(at, numbers.out)]


def layer_steps(checkpoint: AnyCheckpoint, trace: Trace, layer: str) -> list[Step]:
    """The arithmetic of one layer, e.g. "encoder.0" or "decoder.2".

    X -> [Q K V] -> heads -> scores (-> position bias) -> mask -> softmax -> weighted sums -> concat -> W_O -> add (& norm)
    -> cross-attention likewise, where there is an encoder -> feed-forward -> add (& norm)

    Source: Vaswani et al. 2017, sections 3.1 to 3.3.
    """
    block = block_at(checkpoint, layer)
    steps = [_input(trace, f"{layer}.pre")]
    for kind in points(block, layer):
        if kind == "feedforward":
            steps += feedforward_sublayer(sublayer_at(trace, block, layer, kind), block.feedforward)
        else:
            steps += attention_sublayer(site_numbers(checkpoint, trace, f"{layer}.{kind}"))
    # Comparing the input with itself would prove nothing; the next step, which is computed from it, proves it.
    steps[0] = replace(steps[0], proof=replace(steps[1].proof, direct=False))
    keys = {step.key for step in steps}
    return [replace(step, edited=True) if _set_by_hand(step.key, trace, layer, keys) else step for step in steps]


def _set_by_hand(key: str, trace: Trace, layer: str, keys: set[str]) -> bool:
    """Whether the edit changes the result of a step. It sets queries and keys after norm and rotation: in the last step
    that changes them.
    """
    kind, _, part = key.rpartition(".")
    site = f"{layer}.{kind}"
    turned, normed = (f"{kind}.{last}" in keys for last in ("turned", "normed"))
    tensors = {
        "input": [] if kind else [f"{layer}.pre"],
        "packed": [f"{site}.v"] if turned or normed else [f"{site}.{name}" for name in "qkv"],
        "normed": [] if turned else [f"{site}.q", f"{site}.k"],
        "turned": [f"{site}.q", f"{site}.k"],
        "q": [] if normed or turned else [f"{site}.q"],
        "k": [] if normed or turned else [f"{site}.k"],
        "v": [f"{site}.v"],
        "mask": [f"{site}.mask"],
    }.get(part, [])
    return any(was_edited(trace, name) for name in tensors) or (part == "scores" and rescaled(trace, site))


def output_steps(checkpoint: AnyCheckpoint, trace: Trace, position: int, count: int = 5) -> list[Step]:
    """The steps from the last layer's row at `position` to the probabilities of the `count` most probable tokens.

    logits = x W_U (+ b), or (x W) W_U;   p_t = exp(logit_t - max) / sum_t' exp(logit_t' - max)
    """
    model = checkpoint.model
    stack = "encoder" if model.decoder is None else "decoder"
    rows = trace.residual(f"{stack}.final")
    position = row_at(position, len(rows))
    x = float64(rows[position])
    head = model.prediction
    steps, row = mlm_head_steps(head, x, position, rows[position]), N_("the last row of the stack")
    if steps:
        x, row = steps[-1].result, N_("the transformed row")
    table = model.embedding.weight if model.unembedding is None else model.unembedding.weight
    if model.config.logit_scale != 1:
        given = {} if steps else {"x": rows[position]}
        steps.append(_scaled(x, model.config.logit_scale, position, given, trace.logits.dtype))
        x, row = steps[-1].result, N_("the scaled row")
    of_tokens = model.logit_bias if head is None else head.logit_bias
    bias = None if of_tokens is None else float64(of_tokens)
    dtype = trace.logits.dtype
    logits: Float[ndarray, " vocab_size"] = stored(float64(table) @ x + (0.0 if bias is None else bias), dtype)
    proof = Proof.compare(
        N_("the model's logits at position {position}", position=position),
        logits,
        trace.logits[position],
        terms=sizes(x, float64(table).T, bias) if is_half(dtype) else 0.0,
    )
    known = float64(trace.logits[position]) if is_half(dtype) else logits
    top, probabilities = (-known).argsort(kind="stable")[:count], softmax(known)
    ids: tuple[Axis, ...] = ("candidates",)
    best, candidates = int(top[0]), [int(t) for t in top]
    inputs = {"U": table.detach()} | ({} if of_tokens is None else {"c": of_tokens.detach()})
    if not steps:
        inputs["x"] = rows[position]
    return [
        *(replace(step, proof=replace(proof, direct=False)) for step in steps),
        Step(
            "logits",
            N_("Row times unembedding"),
            N_(
                "One dot product per vocabulary entry: {n:,} of them; the {count} largest are shown, numbered from 0.",
                n=len(logits),
                count=count,
            ),
            r"\ell_t = x_i \cdot u_t" + ("" if bias is None else " + c_t"),
            rf"\ell_0 = {latex.sum_of_products(x, float64(table[best]), None if bias is None else float(bias[best]))} = "
            rf"{latex.number(logits[best])}",
            r"\ell",
            logits[top],
            f"logits = U @ x{'' if bias is None else ' + c'}\n"
            f"best = logits.topk({count}).indices\nlogits_of_best = logits[best]",
            proof,
            operands=(
                Operand(rf"x_{{{position}}}", row, x),
                Operand(
                    "u_t",
                    N_("the candidates' rows of the table of embeddings"),
                    float64(table[candidates]),
                    ("candidates", "features"),
                ),
                *(() if bias is None else (Operand("c_t", N_("the candidates' biases"), bias[top], ids),)),
            ),
            axes=ids,
            inputs=inputs,
            contraction=Contraction(x[None], float64(table[candidates]).T, None if bias is None else bias[top]),
        ),
        Step(
            "probabilities",
            N_("Softmax over the vocabulary"),
            N_("Exponentials, divided by their sum over all {n:,} entries.", n=len(logits)),
            r"p_t = \frac{e^{\ell_t - \max \ell}}{\sum_{t'} e^{\ell_{t'} - \max \ell}}",
            rf"p_0 = \frac{{e^{{0}}}}{{\sum_{{t'}} e^{{\ell_{{t'}} - {latex.factor(logits[best])}}}}} = "
            rf"\frac{{1}}{{{latex.number(1 / probabilities[best])}}} = {latex.number(probabilities[best])}",
            "p",
            probabilities[top],
            "probabilities = torch.softmax(logits, dim=-1)[best]",
            Proof.compare(
                N_("softmax of the model's own logits"),
                probabilities,
                torch.softmax(trace.logits[position].float(), dim=-1),
                dtype=dtype,
            ),
            operands=(Operand(r"\ell", N_("the logits of the candidates"), logits[top], ids),),
            axes=ids,
            inputs={"logits": trace.logits[position], "best": torch.from_numpy(top.copy())},
        ),
    ]


def _scaled(
    x: Float[ndarray, " d_model"], scale: float, position: int, given: dict[str, torch.Tensor], dtype: torch.dtype
) -> Step:
    """The row times logit_scale; `given` holds the row as an input of the code if no earlier step computes it."""
    result = stored(x * scale, dtype)
    return Step(
        "scaled",
        N_("Scale the row"),
        N_(
            "The row is multiplied by {scale} before it is compared with the vocabulary: without it the logits would grow "
            "with the width of the model.",
            scale=f"{scale:.6g}",
        ),
        r"x'_i = c\,x_i",
        rf"x'_{{{position},0}} = {latex.number(scale)} \cdot {latex.factor(x[0])} = "
        rf"{latex.number(result[0])}",
        rf"x'_{{{position}}}",
        result,
        f"x = x * {scale!r}",
        Proof(N_("the model's logits at position {position}", position=position), 0.0, True, direct=False),
        operands=(Operand(rf"x_{{{position}}}", N_("the last row of the stack"), x),),
        inputs=given,
    )


def candidates(checkpoint: AnyCheckpoint, trace: Trace, position: int, count: int = 5) -> list[int]:
    """The token ids that `output_steps` shows, in its order."""
    return [
        int(t) for t in (-float64(trace.logits[row_at(position, len(trace.logits))])).argsort(kind="stable")[:count]
    ]


def _input(trace: Trace, name: str) -> Step:
    x = float64(trace.residual(name))
    return Step(
        "input",
        N_("The layer's input"),
        N_(
            "One row per token, {d_model} numbers each: what the layer before (or the embedding) left in the residual "
            "stream.",
            d_model=x.shape[1],
        ),
        r"X \in \mathbb{R}^{n \times d}",
        rf"X \in \mathbb{{R}}^{{{x.shape[0]} \times {x.shape[1]}}}",
        "X",
        x,
        "x = residual",
        Proof.compare(recorded(name), x, x),
        axes=("queries", "features"),
        inputs={"residual": trace.residual(name)},
    )


def mlm_head_steps(
    head: PredictionTransform | None, x: Float[ndarray, " d_model"], position: int, row: Tensor
) -> list[Step]:
    """The step t = norm(act(x W + b)); none if the logits are computed from x itself.

    `row` is x as the model has it.  The caller gives the steps their proof: they lead to the logits.
    """
    if head is None:
        return []
    weight, bias = float64(head.dense.weight).T, float64(head.dense.bias)
    dtype = head.dense.weight.dtype
    dense = stored(x @ weight + bias, dtype)
    kind = activation_kind(head.activation)
    active = stored(kind.compute(dense), dtype)
    normed = norms.normalise(active, head.norm)
    make = Maker("", Proof(N_("the model's logits at position {position}", position=position), 0.0, True, direct=False))
    first = f"{{{position},0}}"
    return [
        make(
            "dense",
            N_("The head's dense layer"),
            N_("One more matrix prepares the row for the comparison."),
            r"d_i = x_i W + b",
            rf"d_{first} = {latex.sum_of_products(x, weight[:, 0], float(bias[0]))} = "
            rf"{latex.number(dense[0])}",
            rf"d_{{{position}}}",
            dense,
            "dense = x @ W + b",
            operands=(
                Operand(rf"x_{{{position}}}", N_("the last row of the stack"), x),
                Operand("W", N_("the head's matrix"), weight, ("features", "features")),
                Operand("b", N_("its bias"), bias),
            ),
            contraction=Contraction(x[None], weight, bias),
            inputs={"x": row, "W": head.dense.weight.detach().T, "b": head.dense.bias.detach()},
        ),
        make(
            "activation",
            N_("The head's activation"),
            kind.text(active),
            rf"a_i = {kind.symbol('d_i')}",
            rf"a_{first} = {kind.symbol(latex.number(dense[0]))} = {latex.number(active[0])}",
            rf"a_{{{position}}}",
            active,
            f"active = {kind.code('dense')}",
        ),
        make(
            "norm",
            N_("The head's norm"),
            N_("The row is normalised once more, as after every sublayer."),
            symbol=rf"t_{{{position}}}",
            result=normed,
            **norms.written(head.norm, ("t_i", "a_i"), rf"t_{first}", active, normed[0], ("x", "active")),
        ),
    ]
