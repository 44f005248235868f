"""The arithmetic of one attention head for one query, from the input row to what the sublayer adds.

Everything is recomputed in float64 from the weights and the recorded residual stream, each step from the one before,
and compared with what the model computed, in its precision and with its fused kernel: q, k, v and the residual stream directly,
scores and softmax (which the fused kernel never forms) through the z they lead to.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, rescaled, was_edited
from vizformer.explain.attention_numbers import HeadNumbers, head_numbers
from vizformer.explain.qk_norms import qk_norm_steps
from vizformer.explain.rope_steps import rotation_steps
from vizformer.explain.softmax_steps import weight_steps
from vizformer.explain.step import Contraction, Maker, Operand, Step, filled
from vizformer.explain.sublayer import (
    ADD_TITLE,
    MATRIX,
    REPLACE_TEXT,
    add_formulas,
    in_words,
    linear_code,
    linear_inputs,
)
from vizformer.messages import N_
from vizformer.model.head_weights import head_output
from vizformer.model.trace import Trace

# The steps from attention weights to the sum in the residual stream.

# whether W_O has a bias
_HEADS = {
    True: N_("All {n_heads} heads did the same with their own matrices; their shares are added, plus the bias of W_O."),
    False: N_("All {n_heads} heads did the same with their own matrices; their shares are added."),
}
# whether the model adds, and whether a norm follows
_ADD = {
    (True, False): N_(
        "The output of attention is added to the residual stream and stays there: the sublayers that "
        "follow read this sum."
    ),
    (True, True): N_(
        "The output of attention is added to the residual stream. This model is post-norm: the norm "
        "that follows rewrites the sum, and the sublayers that follow read its output."
    ),
}
# whether it is an RMSNorm
_NORM = {
    True: N_(
        "Post-norm: the sum is divided by its root mean square, then each number is scaled. "
        "This is the residual stream that the next sublayer reads."
    ),
    False: N_(
        "Post-norm: the sum is shifted to mean 0, divided by its standard deviation, then scaled and shifted. "
        "This is the residual stream that the next sublayer reads."
    ),
}


def mixing_steps(o: HeadNumbers) -> Iterator[Step]:
    """The steps from z to the residual stream."""
    i, h, n_heads, W_O = o.query, o.head, o.record.n_heads, o.site.attention.W_O
    rows_of_heads = o.all.weight("O").reshape(n_heads, o.d_head, -1)
    weight, head_outs = (
        rows_of_heads[h],
        np.stack([z[0] @ rows for z, rows in zip(o.all.z, rows_of_heads, strict=True)]),
    )
    bias = None if W_O.bias is None else float64(W_O.bias)
    out, added, left = o.all.out[0], o.all.added(o.all.out)[0], o.all.left(o.all.out)[0]
    direct, after, adds = o.all.proof(o.all.out), o.site.around.after, o.site.around.adds
    make = Maker("", o.all.proof(o.all.out, direct=False))
    yield make(
        "z",
        N_("Mix the values"),
        N_("The head's result: every value times its weight, summed. Much weight, much of that value."),
        r"z_i = \sum_j a_{ij}\,v_j",
        rf"z_{{{i},0}} = {latex.sum_of_products(o.pattern, o.v[:, 0])} = {latex.number(o.z_recomputed[0])}",
        rf"z_{{{i}}}",
        o.z_recomputed,
        "z = (pattern @ v.float()).to(v.dtype)" if o.all.is_half else "z = pattern @ v",
        proof=o.proof_of_z(direct=True),
        operands=(
            Operand(rf"a_{{{i}}}", N_("the attention weights"), o.pattern, ("keys",)),
            Operand("V", N_("the values, one row each"), o.v, ("keys", "features")),
        ),
        contraction=Contraction(o.pattern[None], o.v),
    )
    yield make(
        "head_out",
        N_("The head's share of the output"),
        N_(
            "This head owns {d_head} rows of W_O; they carry its {d_head} numbers back to the width of the "
            "residual stream.",
            d_head=o.d_head,
        ),
        r"o_i^{(h)} = z_i\,W_O^{(h)}",
        rf"o_{{{i},0}}^{{({h})}} = {latex.sum_of_products(o.z, weight[:, 0])} = {latex.number(head_outs[h, 0])}",
        rf"o_{{{i}}}^{{({h})}}",
        head_outs[h],
        "head_out = z @ W_O_h",
        operands=(
            Operand(rf"z_{{{i}}}", N_("this head's mix of values"), o.z),
            Operand(rf"W_O^{{({h})}}", N_("this head's rows of W_O"), weight, MATRIX),
        ),
        contraction=Contraction(o.z[None], weight),
        inputs={"W_O_h": head_output(o.site.attention, h)},
    )
    yield make(
        "attn_out",
        N_("Add the heads together"),
        filled(_HEADS[bias is not None], n_heads=n_heads),
        r"o_i = \sum_h o_i^{(h)}" + ("" if bias is None else " + b_O"),
        rf"o_{{{i},0}} = {latex.sum_of(head_outs[:, 0])}"
        + ("" if bias is None else f" + {latex.factor(bias[0])}")
        + f" = {latex.number(out[0])}",
        rf"o_{{{i}}}",
        out,
        f"# the results of all {n_heads} heads side by side, times the whole of W_O\n"
        f"attn_out = z_all{linear_code(W_O, 'O')}",
        operands=(
            Operand(rf"o_{{{i}}}^{{(h)}}", N_("every head's share, one row each"), head_outs, ("heads", "features")),
            *(() if bias is None else (Operand("b_O", N_("the bias of W_O"), bias),)),
        ),
        inputs={"z_all": o.all.fused_heads[0], **linear_inputs(W_O, "O")},
        contraction=Contraction(np.ones((1, n_heads)), head_outs, bias),
    )
    before = o.all.x[0]
    yield make(
        "add",
        ADD_TITLE[adds],
        _ADD.get((adds, after is not None), REPLACE_TEXT),
        *add_formulas(("y_i", "r_i", "o_i"), rf"y_{{{i},0}}", before[0] if adds else None, out[0], added[0]),
        rf"y_{{{i}}}",
        added,
        "added = r + attn_out" if adds else "added = attn_out",
        proof=direct if after is None else make.proof,
        operands=(
            *(Operand(rf"r_{{{i}}}", N_("the residual stream before"), before),) * adds,
            Operand(rf"o_{{{i}}}", N_("the output of attention"), out),
        ),
        variable="added",
        inputs={"r": o.all.residual[0]} if adds else {},
    )
    if after is None:
        return
    norm_step = norms.written(after, ("r'_i", "y_i"), rf"r'_{{{i},0}}", added, left[0], ("out", "added"))
    norm_step["operands"] = (Operand(rf"y_{{{i}}}", N_("the sum"), added), *norm_step["operands"])
    text = _NORM[norms.is_rms(after)]
    yield make("norm", N_("Normalise"), text, symbol=rf"r'_{{{i}}}", result=left, proof=direct, **norm_step)


# Is the input normalised, and by an RMSNorm?
_INPUT = {
    (False, False): N_(
        "Position {query} holds a vector of {d_model} numbers in the residual stream at {place}. "
        "Attention reads it as it is."
    ),
    (True, False): N_(
        "Position {query} holds a vector of {d_model} numbers in the residual stream at {place}. A norm first "
        "shifts it to mean 0, divides by its standard deviation, then scales and shifts each number."
    ),
    (True, True): N_(
        "Position {query} holds a vector of {d_model} numbers in the residual stream at {place}. A norm first "
        "divides it by its root mean square, then scales each number."
    ),
}
_TITLES = {
    "q": N_("Query: what this position looks for"),
    "k": N_("Keys: what each position offers to be found by"),
    "v": N_("Values: what each position hands over"),
}
# q, k or v, and whether several query heads share it
_PROJECTIONS = {
    ("q", False): N_("The input row times the head's query matrix: {d_model} numbers become {d_head}."),
    ("k", False): N_("Each of the {n_k} rows on the key side, times the head's key matrix."),
    ("k", True): N_(
        "Each of the {n_k} rows on the key side, times the matrix of key/value head {kv}. Query heads {first} to "
        "{last} share it: fewer keys and values to compute and to keep."
    ),
    ("v", False): N_("The same rows times the head's value matrix: this is what gets mixed."),
    ("v", True): N_(
        "The same rows times the value matrix that the query heads {first} to {last} share: this is what gets mixed."
    ),
}
# the rows of a query, and of keys and values in self- and in cross-attention: the symbol and what they are
_ROWS = {
    "q": ("x", N_("the input row")),
    "self": ("x", N_("the input, one row per token")),
    "cross": ("s", N_("the encoder's output, one row per token")),
}
_COLUMNS = {
    False: N_("this head's columns of W_{letter}"),
    True: N_("the columns of W_{letter} of key/value head {kv}"),
}


def attention_steps(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> list[Step]:
    """The attention of query `query` at `site` in head `head`, number by number.

    input -> q, k, v (-> normalised) (-> turned by position) -> q.k -> / sqrt(d_head) (-> + position bias) -> + mask -> softmax -> weighted sum of v -> W_O -> sum of heads -> add (& norm)

    Source: Vaswani et al. 2017, equation 1 and section 3.2.2.
    """
    o = head_numbers(checkpoint, trace, site, head, query)
    projections = [_projection(o, name) for name in "qkv"]
    steps = [_input(o), *projections, *qk_norm_steps(o), *rotation_steps(o), *weight_steps(o), *mixing_steps(o)]
    return [_marked(step, o) if _set_by_hand(step.key, o) else step for step in steps]


def _marked(step: Step, o: HeadNumbers) -> Step:
    """A step whose result has numbers set by hand; its code reads them from the trace."""
    name = step.key.removesuffix("_turned").removesuffix("_normed")
    code, inputs = step.code, dict(step.inputs)
    if name in ("q", "k", "v"):
        code += f"\n{step.variable} = {name}_by_hand  # with the numbers set by hand"
        by_hand = o.all.recorded(name)[o.own(name)]
        inputs[f"{name}_by_hand"] = by_hand[0] if name == "q" else by_hand
    return replace(step, edited=True, code=code, inputs=inputs)


def _set_by_hand(key: str, o: HeadNumbers) -> bool:
    site, last, trace = o.site.name, o.all.last, o.all.trace  # an edit sets q and k after norm and rotation
    if key == "scores":
        return rescaled(trace, site)
    tensor, lead = {
        "input": (o.site.before, (o.query,)),
        f"q{last}": (f"{site}.q", (o.head, o.query)),
        f"k{last}": (f"{site}.k", (o.kv_head,)),
        "v": (f"{site}.v", (o.kv_head,)),
        "mask": (f"{site}.mask", (o.query,)),
        "add" if o.site.around.after is None else "norm": (o.site.after, (o.query,)),
    }.get(key, ("", ()))
    return was_edited(trace, tensor, lead)


def _input(o: HeadNumbers) -> Step:
    norm, i, r, x = o.site.around.before, o.query, o.all.x[0], o.all.read[0]
    words = dict(query=i, d_model=len(r), place=in_words(o.site.before))
    title, written = (
        N_("The input row"),
        dict[str, Any](formula="x_i = r_i", live=rf"x_{{{i}}} = {latex.row(x)}", code="x = r"),
    )
    inputs: dict[str, Tensor] = {"r": o.all.residual[0]}
    operands: tuple[Operand, ...] = (Operand(rf"r_{{{i}}}", N_("the residual stream at the query's position"), r),)
    if norm is not None:
        title, written = (
            N_("The input row, normalised"),
            norms.written(norm, ("x_i", "r_i"), rf"x_{{{i},0}}", r, x[0], ("x", "r")),
        )
        inputs, operands = inputs | written.pop("inputs"), operands + written.pop("operands")
    text = filled(_INPUT[norm is not None, norm is not None and norms.is_rms(norm)], **words)
    proof = replace(o.proof("q"), direct=False)
    return Step(
        "input", title, text, symbol=rf"x_{{{i}}}", result=x, proof=proof, operands=operands, inputs=inputs, **written
    )


def _projection(o: HeadNumbers, name: str) -> Step:
    """The step of this head's query, of its keys or of its values."""
    letter, single, shared = name.upper(), name == "q", name != "q" and len(o.sharers) > 1
    rows, result = o.all.rows(name), o.after_step(name)
    inputs = o.columns(name)
    weight, *bias = (float64(tensor) for tensor in inputs.values())  # [d_model, d_head]
    subject, what = _ROWS["q" if single else o.all.kind]
    index, at, of = ("i", o.query, "h") if single else ("j", 0, "g" if shared else "h")
    plus = [(rf" + b_{letter}^{{({of})}}", f" + b_{letter}")] if bias else [("", "")]
    words = dict(n_k=o.n_k, d_model=len(weight), d_head=o.d_head, kv=o.kv_head, first=o.sharers[0], last=o.sharers[-1])
    code = f"{name} = {'x' if single else 'source'} @ W_{letter}{plus[0][1]}"
    if not single:
        made, reads = _source(o)
        code, inputs = f"{made}\n{code}", {**reads, **inputs}
    first = result[0] if single else result[0, 0]
    sum_ = latex.sum_of_products(rows[0], weight[:, 0], float(bias[0][0]) if bias else None)
    return Step(
        name,
        _TITLES[name],
        filled(_PROJECTIONS[name, shared], **words),
        rf"{name}_{index} = {subject}_{index}\,W_{letter}^{{({of})}}{plus[0][0]}",
        rf"{name}_{{{at},0}} = {sum_} = {latex.number(first)}",
        rf"{name}_{{{at}}}" if single else letter,
        result,
        code,
        o.proof(name),
        operands=(
            Operand(
                rf"{subject}_{{{at}}}" if single else subject.upper(), what, rows[0] if single else rows, o.axes(name)
            ),
            Operand(
                rf"W_{letter}^{{({o.own(name) if shared else o.head})}}",
                filled(_COLUMNS[shared], letter=letter, kv=o.kv_head),
                weight,
                MATRIX,
            ),
            *(Operand(rf"b_{letter}^{{({o.head})}}", N_("this head's part of the bias"), b) for b in bias),
        ),
        contraction=Contraction(rows, weight, bias[0] if bias else None),
        axes=o.axes(name),
        inputs=inputs,
    )


def _source(o: HeadNumbers) -> tuple[str, dict[str, Tensor]]:
    """The code of the rows that keys and values are computed from, and its inputs; the encoder's output is not
    normalised here.
    """
    norm, rows = o.site.around.before, {"R": o.all.trace.residual(o.site.source)}
    if norm is None or o.site.is_cross:
        return "source = R", rows
    return norms.code(norm, "source", "R"), rows | norms.inputs(norm)
