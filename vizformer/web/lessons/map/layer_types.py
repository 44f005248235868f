"""Words, tables and formulas of the five kinds of layers that the lesson "The map" compares."""

import streamlit as st

from vizformer.analysis.costs.layer_types import LayerType
from vizformer.config import ModelConfig
from vizformer.web.lessons.map import computations
from vizformer.web.widgets import lesson
from vizformer.web.words import counts
from vizformer.web.words.i18n import _

WIDTHS_K, WIDTHS_R = range(2, 10), range(2, 33)

ATTENTION = """n, d_head = {n}, {d_head}
q, k, v = torch.randn(3, n, d_head)
z = torch.softmax(q @ k.T / d_head**0.5, -1) @ v  # [n, n] @ [n, d_head]: every pair at once"""
RECURRENT = """n, d = {n}, {d}
x = torch.randn(n, d)
h = torch.zeros(d)
cell = torch.nn.GRUCell(d, d)
for t in range(n):  # n times, one after the other
    h = cell(x[t], h)"""
DILATED = "next(layers for layers in range(1, n + 1) if k**layers >= n)"


def names() -> dict[LayerType, str]:
    """What the kinds of layers are called."""
    return {
        "attention": _("self-attention"),
        "recurrent": _("recurrent"),
        "contiguous": _("convolution"),
        "dilated": _("convolution, dilated"),
        "restricted": _("attention in a window"),
    }


def widths() -> tuple[int, int]:
    """The sliders of kernel and window."""
    k = st.slider(_("Kernel width k"), min(WIDTHS_K), max(WIDTHS_K), **lesson.setting("map.k", 3, WIDTHS_K))
    r = st.slider(_("Window r"), min(WIDTHS_R), max(WIDTHS_R), **lesson.setting("map.r", 8, WIDTHS_R))
    return k, r


def path_table(n: int, k: int, r: int) -> str:
    """The five kinds side by side, as Markdown."""
    formulas = {  # (plain text: LaTeX in a table takes the browser longer than all the rest)
        "attention": "1",
        "recurrent": "n",
        "contiguous": "max(1, ⌈(n−1)/(k−1)⌉)",
        "dilated": "max(1, ⌈logₖ n⌉)",
        "restricted": "max(1, ⌈(n−1)/(r−1)⌉)",
    }
    found = {kind: computations.reach(kind, n, k, r) for kind in computations.KINDS}
    rows = [
        f"| {names()[kind]} | {of.layers} | {of.sequential} | {formulas[kind]} = **{of.path}** |"
        for kind, of in found.items()
    ]
    head = [
        _("your text: {tokens}", tokens=counts.tokens(n)),
        _("layers needed"),
        _("steps in a row"),
        _("longest path"),
    ]
    return "\n".join([f"| {' | '.join(head)} |", "|---|--:|--:|--:|", *rows])


def path_formula(kind: LayerType, n: int, k: int, r: int, config: ModelConfig) -> None:
    """The longest path of the chosen kind, with the numbers (a single token is not far from anything: without)."""
    steps = computations.reach(kind, n, k, r).path
    if kind == "attention":
        symbols, code = r"\text{path} = 1", ATTENTION.format(n=n, d_head=config.d_head)
        live = rf"z_{{{n - 1}}} = \sum_{{j=0}}^{{{n - 1}}} w_{{{n - 1},j}}\, v_j"
    elif kind == "recurrent":
        symbols, code = r"h_t = f(x_t, h_{t-1}), \qquad \text{path} = n", RECURRENT.format(n=n, d=config.d_model)
        live = _unrolled(n)
    elif kind == "dilated":
        symbols, code = r"\text{path} = \lceil \log_k n \rceil", DILATED
        live = rf"\lceil \log_{{{k}}} {n} \rceil = {steps}"
    else:
        width, name = (k, "k") if kind == "contiguous" else (r, "r")
        symbols = rf"\text{{path}} = \left\lceil \tfrac{{n - 1}}{{{name} - 1}} \right\rceil"
        code = f"max(1, math.ceil((n - 1) / ({name} - 1)))"
        live = rf"\left\lceil \tfrac{{{n} - 1}}{{{width} - 1}} \right\rceil = {steps}"
    lesson.formula(symbols, live=live if n > 1 else "", code=code, given={"n": n, "k": k, "r": r})


def _unrolled(n: int) -> str:
    """The last state with all cells that the first token passes through, as LaTeX."""
    shown = [f"f(x_{{{t}}}, " for t in range(n - 1, -1, -1)]
    inner = "".join(shown) if n <= 3 else f"{shown[0]}{shown[1]}\\dots {shown[-1]}"
    state = rf"h_{{{n - 1}}} = {inner}h_{{-1}}{')' * min(n, 3)}"
    return rf"\begin{{gathered}} {state} \\ \text{{path}} = {n} \end{{gathered}}"  # two lines: they fit a phone


def cost_table(n: int, d: int, k: int, r: int, full: bool) -> str:
    """The column of costs, for this sentence and width, as Markdown."""
    formulas: dict[LayerType, str] = (
        {
            "attention": "2n²d + 4nd²",
            "recurrent": "6nd² (GRU)",
            "contiguous": "knd²",
            "restricted": "2 min(r, n) nd + 4nd²",
        }
        if full
        else {"attention": "n²d", "recurrent": "nd²", "contiguous": "knd²", "restricted": "min(r, n) nd"}
    )
    own = computations.cost("attention", n, d, k, r, full)
    rows = []
    for kind, formula in formulas.items():
        value = computations.cost(kind, n, d, k, r, full)
        rows.append(f"| {names()[kind]} | {formula} | {value:,} | {value / own:.3g} × |")
    head = [f"n = {n}, d = {d}", _("cost"), _("multiplications"), _("against attention")]
    return "\n".join([f"| {' | '.join(head)} |", "|---|:-:|--:|--:|", *rows])


def cost_formula(n: int, d: int, full: bool) -> None:
    """Where attention is cheaper than recurrence, with the numbers."""
    sign = "<" if n < d else ">" if n > d else "="
    if full:
        lesson.formula(
            r"2n^2d + 4nd^2 < 6nd^2 \iff n < d",
            live=rf"{2 * n * n * d + 4 * n * d * d} {sign} {6 * n * d * d}",
            code="2 * n**2 * d + 4 * n * d**2 < 6 * n * d**2",
            given={"n": n, "d": d},
        )
    else:
        lesson.formula(
            r"n^2 d < n d^2 \iff n < d",
            live=rf"{n * n * d} {sign} {n * d * d}",
            code="n**2 * d < n * d**2",
            given={"n": n, "d": d},
        )
