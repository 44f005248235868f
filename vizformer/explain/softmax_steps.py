"""The steps from a query and the keys to attention weights."""

import numpy as np

from vizformer.explain import latex, position_bias_steps
from vizformer.explain.arrays import float64
from vizformer.explain.attention_numbers import HeadNumbers
from vizformer.explain.step import Contraction, Maker, Operand, Step
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


# what the query and the keys are called after the last step that changed them
_SYMBOLS = {"": ("q", "K"), "_normed": (r"\hat q", r"\hat K"), "_turned": ("q'", "K'")}
# whether there is a position bias: the symbol of the scores, what they are, and their name in the code
_SCORES = {
    False: ("s", N_("the scores"), "scores"),
    True: (r"\tilde s", N_("the scores with the position bias"), "placed"),
}
# whether every key is blocked; such a row has no maximum and no sum: its weights are 0, as the fused call gives
_WEIGHTS = {
    False: N_("Each key's share: the attention weights. They are between 0 and 1 and sum to 1."),
    True: N_("Every key gets no weight: all of them are blocked."),
}


def weight_steps(o: HeadNumbers) -> list[Step]:
    """The steps from dot products to attention weights; z, the recorded result of the fused kernel, proves them all."""
    i, j, last, w = o.query, o.focus, o.all.last, o.all.widened
    step = Maker("", o.proof_of_z(direct=False), ("keys",), o.blocked)
    q_symbol, k_symbol = _SYMBOLS[last]
    q_i = Operand(rf"{q_symbol}_{{{i}}}", N_("the query"), o.q)
    keys = Operand(k_symbol, N_("the keys, one row each"), o.k, ("keys", "features"))
    dots = Operand(rf"q_{{{i}}} \cdot k_j", N_("the dot products"), o.dots, ("keys",))
    s, what, given = _SCORES[o.all.distances is not None]
    masked = Operand(rf"m_{{{i}}}", N_("the masked scores"), o.masked, ("keys",))
    exps = Operand(rf"e_{{{i}}}", N_("the exponentials"), o.exps, ("keys",))
    mask_row = np.zeros(o.n_k) if o.mask_row is None else float64(o.mask_row)
    top, all_blocked = float(o.masked.max(initial=-np.inf)), bool(o.blocked.all())
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
            f"masked = {given}  # no mask here" if o.mask_row is None else f"masked = {given} + mask",
            operands=(
                Operand(rf"{s}_{{{i}}}", what, o.placed, ("keys",)),
                Operand("M", N_("the mask's row: 0 or -∞"), mask_row, ("keys",)),
            ),
            inputs={} if o.mask_row is None else {"mask": o.mask_row},
        ),
        step(
            "shift",
            N_("Softmax, 1: subtract the largest"),
            N_(
                "Softmax does not change when the same number is subtracted everywhere; with the largest one gone, "
                "exp cannot overflow."
            ),
            r"t_{ij} = m_{ij} - \max_{j'} m_{ij'}",
            rf"t_{{{i},{j}}} = {latex.number(o.masked[j])} - {latex.factor(0.0 if all_blocked else top)} = {latex.number(o.shifted[j])}",
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
            operands=(exps,),
        ),
        step(
            "weights",
            N_("Softmax, 4: divide"),
            _WEIGHTS[all_blocked],
            r"a_{ij} = \frac{e_{ij}}{S_i}",
            rf"a_{{{i},{j}}} = \frac{{{latex.number(o.exps[j])}}}{{{latex.number(o.total)}}} = {latex.number(o.pattern[j])}",
            rf"a_{{{i}}}",
            o.pattern,
            "pattern = (exps / total).nan_to_num(0.0)" if all_blocked else "pattern = exps / total",
            operands=(exps, Operand(rf"S_{{{i}}}", N_("their sum"), np.array([o.total]))),
        ),
    ]


def _scale_step(o: HeadNumbers, step: Maker, dots: Operand) -> Step:
    """The division by sqrt(d_head), or the scale that the model or an edit uses instead."""
    i, j, edit, site = o.query, o.focus, o.all.trace.edit, o.site.name
    scaled = edit is None or site not in edit.unscaled
    temperature = 1.0 if edit is None else edit.temperatures.get(site, 1.0)
    own = o.site.attention.own_scale if scaled else None
    divided, factor = scaled and own is None, own if own != 1 else None
    code, number, formula = "dots", latex.number(o.dots[j]), r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_\mathrm{head}}}"
    under, text = [], N_("The division by √d_head is switched off: the scores are as large as the sum made them.")
    if own is not None:
        formula, text = r"s_{ij} = q_i \cdot k_j", own_scale_text(own)
    if factor is not None:
        code, number = f"{code} * {factor!r}", rf"{number} \cdot {latex.number(factor)}"
        formula += r" \cdot c"
    if divided:
        code, under, text = f"{code} / math.sqrt({o.d_head})", [rf"\sqrt{{{o.d_head}}}"], divided_text(o.d_head)
    if temperature != 1:
        code, formula = f"{code} / {temperature!r}", formula + r" \cdot \frac{1}{T}"
        under.append(f"{temperature:g}")
    below = r" \cdot ".join(under)
    quotient = rf"\frac{{{number}}}{{{below}}}" if under else number
    return step(
        "scores",
        N_("Divide by √d_head") if own is None else N_("Scores without √d_head"),
        text,
        formula,
        rf"s_{{{i},{j}}} = {quotient} = {latex.number(o.scores[j])}",
        rf"s_{{{i}}}",
        o.scores,
        f"scores = {code}",
        operands=(dots,),
    )


def divided_text(d_head: int) -> Message:
    return N_(
        "d_head = {d_head} products were summed; dividing by √{d_head} = {root} keeps the scores from growing "
        "with the width of the head, which would make softmax all-or-nothing.",
        d_head=d_head,
        root=f"{np.sqrt(d_head):.4g}",
    )


def own_scale_text(scale: float) -> Message:
    """The text about a model with another scale than 1 / sqrt(d_head)."""
    if scale == 1:
        return N_("This model does not divide by √d_head: it was trained with the dot products as they are.")
    return N_("This model multiplies by {scale} where others divide by √d_head.", scale=f"{scale:.6g}")


def _mask_text(o: HeadNumbers) -> Message:
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


def _mask_live(o: HeadNumbers) -> str:
    i, j = o.query, o.focus
    visible = rf"m_{{{i},{j}}} = {latex.number(o.placed[j])} + 0 = {latex.number(o.masked[j])}"
    if not o.blocked.any():
        return visible
    b = int(np.flatnonzero(o.blocked)[0])
    blocked = rf"m_{{{i},{b}}} = {latex.number(o.placed[b])} + (-\infty) = -\infty"
    return blocked if o.blocked.all() else rf"{visible}, \qquad {blocked}"
