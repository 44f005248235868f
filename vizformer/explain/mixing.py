"""The steps from attention weights to the sum in the residual stream."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64
from vizformer.explain.operands import Operands
from vizformer.explain.proof_anchors import fused, recorded
from vizformer.explain.step import Contraction, Maker, Operand, Proof, Step
from vizformer.explain.sublayer import ADD_TITLE, REPLACE_TEXT, REPLACE_TITLE
from vizformer.messages import N_


def mixing_steps(o: Operands) -> Iterator[Step]:
    """The steps from z to the residual stream."""
    i, h, after = o.query, o.head, o.site.around.after
    W_O = o.site.attention.W_O
    weight = o.head_rows(W_O)
    out_bias = None if W_O.bias is None else float64(W_O.bias)
    direct_after = Proof.compare(
        recorded(o.site.after), o.after, o.trace.residual(o.site.after)[i], terms=o.added_sizes
    )
    through_after = replace(direct_after, direct=False)
    mix = "pattern @ v" if not o.is_half else "(pattern @ v.float()).to(v.dtype)"
    make = Maker("", through_after)
    yield make(
        "z",
        N_("Mix the values"),
        N_("The head's result: every value times its weight, summed. Much weight, much of that value."),
        r"z_i = \sum_j a_{ij}\,v_j",
        rf"z_{{{i},0}} = {latex.sum_of_products(o.pattern, o.v[:, 0])} = {latex.number(o.z_recomputed[0])}",
        rf"z_{{{i}}}",
        o.z_recomputed,
        f"z = {mix}",
        proof=Proof.compare(fused(o), o.z_recomputed, o.record.z(h)[i], terms=o.z_sizes),
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
        rf"o_{{{i},0}}^{{({h})}} = {latex.sum_of_products(o.z, weight[:, 0])} = {latex.number(o.head_outs[h, 0])}",
        rf"o_{{{i}}}^{{({h})}}",
        o.head_outs[h],
        "head_out = z @ W_O_h",
        operands=(
            Operand(rf"z_{{{i}}}", N_("this head's mix of values"), o.z),
            Operand(rf"W_O^{{({h})}}", N_("this head's rows of W_O"), weight, ("features", "features")),
        ),
        contraction=Contraction(o.z[None], weight),
        inputs={"W_O_h": W_O.weight[:, h * o.d_head : (h + 1) * o.d_head].detach().T},
    )
    yield make(
        "attn_out",
        N_("Add the heads together"),
        N_(
            "All {n_heads} heads did the same with their own matrices; their shares are added, plus the bias of W_O.",
            n_heads=o.record.n_heads,
        )
        if out_bias is not None
        else N_(
            "All {n_heads} heads did the same with their own matrices; their shares are added.",
            n_heads=o.record.n_heads,
        ),
        r"o_i = \sum_h o_i^{(h)}" + ("" if out_bias is None else " + b_O"),
        rf"o_{{{i},0}} = {latex.sum_of(o.head_outs[:, 0])}"
        + ("" if out_bias is None else f" + {latex.factor(out_bias[0])}")
        + f" = {latex.number(o.attn_out[0])}",
        rf"o_{{{i}}}",
        o.attn_out,
        f"# the results of all {o.record.n_heads} heads side by side, times the whole of W_O\n"
        "attn_out = z_all @ W_O" + ("" if out_bias is None else " + b_O"),
        operands=(
            Operand(rf"o_{{{i}}}^{{(h)}}", N_("every head's share, one row each"), o.head_outs, ("heads", "features")),
            *(() if out_bias is None else (Operand("b_O", N_("the bias of W_O"), out_bias),)),
        ),
        inputs=_all_heads(o),
        contraction=Contraction(np.ones((1, o.record.n_heads)), o.head_outs, out_bias),
    )
    adds = o.site.around.adds
    yield make(
        "add",
        ADD_TITLE if adds else REPLACE_TITLE,
        REPLACE_TEXT
        if not adds
        else N_(
            "The output of attention is added to the residual stream and stays there: the sublayers that "
            "follow read this sum."
        )
        if after is None
        else N_(
            "The output of attention is added to the residual stream. This model is post-norm: the norm "
            "that follows rewrites the sum, and the sublayers that follow read its output."
        ),
        "y_i = r_i + o_i" if adds else "y_i = o_i",
        rf"y_{{{i},0}} = "
        + (f"{latex.number(o.x_before[0])} + {latex.factor(o.attn_out[0])} = " if adds else "")
        + latex.number(o.added[0]),
        rf"y_{{{i}}}",
        o.added,
        "added = r + attn_out" if adds else "added = attn_out",
        proof=direct_after if after is None else through_after,
        operands=(
            *((Operand(rf"r_{{{i}}}", N_("the residual stream before"), o.x_before),) if adds else ()),
            Operand(
                rf"o_{{{i}}}",
                N_("the output of attention"),
                o.attn_out,
            ),
        ),
        variable="added",
        inputs={"r": o.trace.residual(o.site.before)[i]} if adds else {},
    )
    if after is None:
        return
    live = norms.live(rf"r'_{{{i},0}}", o.added, after, o.after[0])
    yield make(
        "norm",
        N_("Normalise"),
        N_(
            "Post-norm: the sum is divided by its root mean square, then each number is scaled. "
            "This is the residual stream that the next sublayer reads."
        )
        if norms.is_rms(after)
        else N_(
            "Post-norm: the sum is shifted to mean 0, divided by its standard deviation, then scaled and shifted. "
            "This is the residual stream that the next sublayer reads."
        ),
        norms.formula(after, "r'_i", "y_i"),
        live,
        rf"r'_{{{i}}}",
        o.after,
        norms.code(after, "out", "added"),
        proof=direct_after,
        operands=(Operand(rf"y_{{{i}}}", N_("the sum"), o.added), *norms.operands(after)),
        inputs=norms.inputs(after),
    )


def _all_heads(o: Operands) -> dict[str, Tensor]:
    """The inputs of the sum over the heads: z of all heads, W_O and b_O."""
    linear, record = o.site.attention.W_O, o.record
    zs = torch.cat([record.z(head)[o.query] for head in range(record.n_heads)])
    found = {"z_all": zs, "W_O": linear.weight.detach().T}
    return found if linear.bias is None else found | {"b_O": linear.bias.detach()}
