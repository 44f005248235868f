"""The steps from a query and the keys to attention weights."""

import numpy as np

from vizformer.explain import latex, position_bias_steps
from vizformer.explain.operands import Operands
from vizformer.explain.proof_anchors import fused
from vizformer.explain.step import Contraction, Maker, Operand, Proof, Step
from vizformer.messages import N_, Message
from vizformer.model.masks import Reason

REASONS = {
    Reason.PADDING: N_("padding"),
    Reason.FUTURE: N_("the future"),
    Reason.OUTSIDE_WINDOW: N_("outside the window"),
    Reason.PAINTED: N_("painted by hand"),
    Reason.NOT_CHOSEN: N_("neither near, nor global, nor drawn"),
    Reason.LEFT_OUT: N_("left out of the picture"),
}


def weight_steps(o: Operands) -> list[Step]:
    """The steps from dot products to attention weights; z, the recorded result of the fused kernel, proves them all."""
    through_z = Proof.compare(fused(o), o.z_recomputed, o.record.z(o.head)[o.query], direct=False, terms=o.z_sizes)
    j = o.focus
    i, blocked = o.query, o.blocked
    step = Maker("", through_z, ("keys",), blocked)
    last, w = o.last, o.widened  # the last step that changed q and k
    q_symbol, k_symbol = {"": ("q", "K"), "_normed": (r"\hat q", r"\hat K"), "_turned": ("q'", "K'")}[last]
    q_i = Operand(rf"{q_symbol}_{{{i}}}", N_("the query"), o.q)
    keys = Operand(k_symbol, N_("the keys, one row each"), o.k, ("keys", "features"))
    dots = Operand(rf"q_{{{i}}} \cdot k_j", N_("the dot products"), o.dots, ("keys",))
    s, placed = (
        ("s", N_("the scores")) if o.distances is None else (r"\tilde s", N_("the scores with the position bias"))
    )
    scores = Operand(rf"{s}_{{{i}}}", placed, o.placed, ("keys",))
    masked = Operand(rf"m_{{{i}}}", N_("the masked scores"), o.masked, ("keys",))
    given = "placed" if o.distances is not None else "scores"
    bias_row = o.bias_row if o.bias_row is not None else np.zeros(o.n_k)
    # A row whose every key is blocked has no maximum and no sum; its weights are 0, as the fused call gives.
    top = o.top if np.isfinite(o.top) else 0.0
    all_blocked = bool(blocked.all())
    return [
        step(
            "dots",
            N_("Query times every key"),
            N_("One dot product per key: large where the key points the way the query asks for."),
            r"q_i \cdot k_j = \sum_m q_{i,m}\,k_{j,m}",
            rf"q_{{{i}}} \cdot k_{{{j}}} = {latex.sum_of_products(o.q, o.k[j])} = {latex.number(o.dots[j])}",
            rf"q_{{{i}}} \cdot k_j",
            o.dots,
            f"dots = k{last}{w} @ q{last}{w}",
            operands=(q_i, keys),
            contraction=Contraction(o.q[None], o.k.T),
        ),
        _scale_step(o, step, dots),
        *position_bias_steps.query_steps(o, step),
        step(
            "mask",
            N_("Add the mask"),
            _mask_text(o),
            rf"m_{{ij}} = {s}_{{ij}} + M_{{ij}}, \qquad M_{{ij}} \in \{{0, -\infty\}}",
            _mask_live(o),
            rf"m_{{{i}}}",
            o.masked,
            f"masked = {given}  # no mask here" if o.record.bias is None else f"masked = {given} + mask",
            operands=(scores, Operand("M", N_("the mask's row: 0 or -∞"), bias_row, ("keys",))),
            inputs=o.mask_row,
        ),
        step(
            "shift",
            N_("Softmax, 1: subtract the largest"),
            N_(
                "Softmax does not change when the same number is subtracted everywhere; with the largest one gone, "
                "exp cannot overflow."
            ),
            r"t_{ij} = m_{ij} - \max_{j'} m_{ij'}",
            rf"t_{{{i},{j}}} = {latex.number(o.masked[j])} - {latex.factor(top)} = {latex.number(o.shifted[j])}",
            rf"t_{{{i}}}",
            o.shifted,
            "shifted = masked - masked.max()" + (".nan_to_num(neginf=0.0)" if all_blocked else ""),
            operands=(masked,),
        ),
        step(
            "exp",
            N_("Softmax, 2: exponential"),
            N_("Every number becomes positive; the largest becomes 1, and what was blocked becomes exactly 0."),
            r"e_{ij} = \exp(t_{ij})",
            rf"e_{{{i},{j}}} = \exp({latex.number(o.shifted[j])}) = {latex.number(o.exps[j])}",
            rf"e_{{{i}}}",
            o.exps,
            "exps = shifted.exp()",
            operands=(Operand(rf"t_{{{i}}}", N_("the shifted scores"), o.shifted, ("keys",)),),
        ),
        step(
            "sum",
            N_("Softmax, 3: add up"),
            N_("The sum over all keys."),
            r"S_i = \sum_j e_{ij}",
            rf"S_{{{i}}} = {latex.sum_of(o.exps)} = {latex.number(o.total)}",
            rf"S_{{{i}}}",
            np.array([o.total]),
            "total = exps.sum()",
            axes=("features",),
            operands=(Operand(rf"e_{{{i}}}", N_("the exponentials"), o.exps, ("keys",)),),
        ),
        step(
            "weights",
            N_("Softmax, 4: divide"),
            N_("Every key gets no weight: all of them are blocked.")
            if all_blocked
            else N_("Each key's share: the attention weights. They are between 0 and 1 and sum to 1."),
            r"a_{ij} = \frac{e_{ij}}{S_i}",
            rf"a_{{{i},{j}}} = \frac{{{latex.number(o.exps[j])}}}{{{latex.number(o.total)}}} = {latex.number(o.pattern[j])}",
            rf"a_{{{i}}}",
            o.pattern,
            "pattern = exps / total" if not all_blocked else "pattern = (exps / total).nan_to_num(0.0)",
            operands=(
                Operand(rf"e_{{{i}}}", N_("the exponentials"), o.exps, ("keys",)),
                Operand(rf"S_{{{i}}}", N_("their sum"), np.array([o.total])),
            ),
        ),
    ]


def _scale_step(o: Operands, step: Maker, dots: Operand) -> Step:
    """The division by sqrt(d_head), or the scale that the model or an edit uses instead."""
    i, j = o.query, o.focus
    edit, site = o.trace.edit, o.site.name
    scaled = edit is None or site not in edit.unscaled
    temperature = 1.0 if edit is None else edit.temperatures.get(site, 1.0)
    own = o.site.attention.own_scale if scaled else None
    divided = scaled and own is None
    factor = own if own != 1 else None
    divisors = ([rf"\sqrt{{{o.d_head}}}"] if divided else []) + ([f"{temperature:g}"] if temperature != 1 else [])
    product = "dots" if factor is None else f"dots * {factor!r}"
    code = " / ".join(
        [
            product,
            *([f"math.sqrt({o.d_head})"] if divided else []),
            *([f"{temperature!r}"] if temperature != 1 else []),
        ]
    )
    text = (
        N_(
            "d_head = {d_head} products were summed; dividing by √{d_head} = {root} keeps the scores from growing "
            "with the width of the head, which would make softmax all-or-nothing.",
            d_head=o.d_head,
            root=f"{np.sqrt(o.d_head):.4g}",
        )
        if divided
        else own_scale_text(own)
        if own is not None
        else N_("The division by √d_head is switched off: the scores are as large as the sum made them.")
    )
    number = latex.number(o.dots[j]) + ("" if factor is None else rf" \cdot {latex.number(factor)}")
    under = r" \cdot ".join(divisors)
    quotient = rf"\frac{{{number}}}{{{under}}}" if divisors else number
    return step(
        "scores",
        N_("Divide by √d_head") if own is None else N_("Scores without √d_head"),
        text,
        (
            r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_\mathrm{head}}}"
            if own is None
            else r"s_{ij} = q_i \cdot k_j" + ("" if factor is None else r" \cdot c")
        )
        + (r" \cdot \frac{1}{T}" if temperature != 1 else ""),
        rf"s_{{{i},{j}}} = {quotient} = {latex.number(o.scores[j])}",
        rf"s_{{{i}}}",
        o.scores,
        f"scores = {code}",
        operands=(dots,),
    )


def own_scale_text(scale: float) -> Message:
    """The text about a model with another scale than 1 / sqrt(d_head)."""
    if scale == 1:
        return N_("This model does not divide by √d_head: it was trained with the dot products as they are.")
    return N_("This model multiplies by {scale} where others divide by √d_head.", scale=f"{scale:.6g}")


def _mask_text(o: Operands) -> Message:
    if not o.blocked.any():
        return N_("Nothing is blocked here: position {query} sees every key ({n_k}).", query=o.query, n_k=o.n_k)
    reasons = {int(reason) for reason in o.reasons if reason}
    names = tuple(REASONS[Reason(reason)] for reason in sorted(reasons))
    return N_(
        "{n_blocked} of {n_k} keys are blocked ({reasons}): -∞ is added to their scores, so softmax gives them "
        "exactly 0.",
        n_blocked=int(o.blocked.sum()),
        n_k=o.n_k,
        reasons=names,
    )


def _mask_live(o: Operands) -> str:
    i, j = o.query, o.focus
    visible = rf"m_{{{i},{j}}} = {latex.number(o.placed[j])} + 0 = {latex.number(o.masked[j])}"
    if not o.blocked.any():
        return visible
    b = int(np.flatnonzero(o.blocked)[0])
    blocked = rf"m_{{{i},{b}}} = {latex.number(o.placed[b])} + (-\infty) = -\infty"
    return blocked if o.blocked.all() else rf"{visible}, \qquad {blocked}"
