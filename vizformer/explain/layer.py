"""A whole layer computed in float64: every matrix from its input to its output, all positions and heads at once.

Each step is computed from the one before, and proved at every point of the residual stream that the model
recorded, at q, k and v, and at the fused attention's z.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half, rescaled, softmax, stored, was_edited
from vizformer.explain.attention_layer import attention_sublayer
from vizformer.explain.feedforward_layer import feedforward_sublayer
from vizformer.explain.mlm_head import mlm_head_steps
from vizformer.explain.position_terms import position_bias
from vizformer.explain.proof_anchors import recorded
from vizformer.explain.rope import angles, slowing
from vizformer.explain.step import Axis, Contraction, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import Sublayer
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace


def layer_steps(checkpoint: AnyCheckpoint, trace: Trace, layer: str) -> list[Step]:
    """The arithmetic of one layer, e.g. "encoder.0" or "decoder.2".

    X -> [Q K V] -> heads -> scores (-> position bias) -> mask -> softmax -> weighted sums -> concat -> W_O -> add (& norm)
    -> cross-attention likewise, where there is an encoder -> feed-forward -> add (& norm)

    Source: Vaswani et al. 2017, sections 3.1 to 3.3.
    """
    model = checkpoint.model
    stack, _, number = layer.partition(".")
    module = getattr(model, stack, None) if stack in ("encoder", "decoder") else None
    if module is None or not number.isdecimal() or int(number) >= len(module.layers):
        raise TraceError("There is no layer {layer!r} in this model.", layer=layer)
    block = module.layers[int(number)]
    before = f"{layer}.pre"
    steps = [_input(trace, before)]
    middle = f"{layer}.{'mid' if block.cross_attention is None else 'mid_self'}"
    at = Sublayer(trace, block.around("self"), "self", before, middle)
    turns = angles(model.config, len(at.x)) if model.config.positions == "rope" else None
    distances = position_bias(model, stack)
    steps += attention_sublayer(
        at,
        block.self_attention,
        f"{layer}.self",
        None,
        turns,
        distances,
        None if turns is None else slowing(model.config),
        model.config.rope_theta,
    )
    if block.cross_attention is not None:
        at = Sublayer(trace, block.around("cross"), "cross", middle, f"{layer}.mid_cross")
        steps += attention_sublayer(at, block.cross_attention, f"{layer}.cross", source="encoder.final")
        middle = f"{layer}.mid_cross"
    at = Sublayer(trace, block.around("feedforward"), "feedforward", middle, f"{layer}.post")
    steps += feedforward_sublayer(at, block.feedforward)
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
    steps = mlm_head_steps(head, x, position, rows[position])
    x = steps[-1].result if steps else x
    table = model.embedding.weight if model.unembedding is None else model.unembedding.weight
    transformed = bool(steps)
    if model.config.logit_scale != 1:
        given = {} if steps else {"x": rows[position]}
        steps.append(_scaled(x, model.config.logit_scale, position, given, trace.logits.dtype))
        x = steps[-1].result
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
    model_logits = float64(trace.logits[position])
    top = (-(model_logits if is_half(dtype) else logits)).argsort(kind="stable")[:count]
    probabilities = softmax(model_logits if is_half(dtype) else logits)
    ids: tuple[Axis, ...] = ("candidates",)
    best, candidates = int(top[0]), [int(t) for t in top]
    inputs = {"U": table.detach()} | ({} if of_tokens is None else {"c": of_tokens.detach()})
    if not steps:
        inputs["x"] = rows[position]
    row = (
        N_("the scaled row")
        if model.config.logit_scale != 1
        else N_("the transformed row")
        if transformed
        else N_("the last row of the stack")
    )
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
