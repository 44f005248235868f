"""Names, formulas and small tables of the lesson Masks."""

from collections.abc import Sequence
from html import escape

import numpy as np

from vizformer.analysis import Kind
from vizformer.analysis.masks.leakage import RunMask
from vizformer.config import ModelConfig
from vizformer.explain import Masked, latex
from vizformer.messages import ranges
from vizformer.model.mask_recipe import MaskKind
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

TERMS = 4  # of a sum that are written out
SHOWN = 10  # rows and columns of the tables: True and False of so many fit beside each other
_CENTRED = 'style="text-align: center"'

_CASES = r"M_{ij} = \begin{cases} 0 & %s \\ -\infty & \text{%s} \end{cases}"
_CONDITIONS: dict[MaskKind, str] = {
    "causal": r"j \le i",
    "padding": r"\mathrm{key}_j \ne \mathrm{pad}",
    "cross": r"\mathrm{source}_j \ne \mathrm{pad}",
    "prefix": r"j \le i \;\lor\; j < p",
    "window": r"|i - j| \le w",
    "bigbird": r"|i - j| \le w \;\lor\; i < g \;\lor \\ & j < g \;\lor\; j \in R_i",
}


def formula(kind: MaskKind) -> str:
    """The mask in symbols."""
    return _CASES % (_CONDITIONS[kind], _("otherwise"))


def kind_name(kind: MaskKind) -> str:
    return {
        "causal": _("Causal"),
        "padding": _("Padding"),
        "cross": _("Cross-attention"),
        "prefix": _("Prefix"),
        "window": _("Sliding window"),
        "bigbird": _("BigBird"),
    }[kind]


def run_name(run: RunMask) -> str:
    return {
        "own": _("as the model has it"),
        "causal": _("causal"),
        "window": _("a sliding window"),
        "open": _("no mask at all"),
    }[run]


def own_mask(config: ModelConfig, attention: Kind, layer: int, n: int) -> str:
    """What a model with sliding windows masks in a layer, for a text of n tokens; empty for other models."""
    window, have = config.sliding_window, config.windowed_layers
    if window is not None and attention == "encoder" and layer in have:
        return _(
            "The model's own mask in layer {layer} is a sliding window: a query sees the keys up to {reach} places away, on "
            "both sides.",
            layer=layer,
            reach=f"{window - 1:,}",
        )
    if window is None or attention != "decoder":
        return ""
    if layer not in have:
        return _(
            "The model's own mask in layer {layer} is causal, without a window; others have one of {window} "
            "tokens (layers: {layers}).",
            layer=layer,
            layers=ranges(sorted(have)),
            window=f"{window:,}",
        )
    said = _(
        "The model's own mask in layer {layer} is a causal sliding window of {window} tokens: a query sees itself "
        "and the {before} before it.",
        layer=layer,
        window=f"{window:,}",
        before=f"{window - 1:,}",
    )
    if n <= window:
        said += " " + _("Your {n} tokens fit into it: here it blocks no more than the causal mask.", n=n)
    return said


def notation_name(notation: str) -> str:
    return {
        "tutorial": _("0 = blocked (tutorials)"),
        "module": _("True = blocked (nn.Transformer, nn.MultiheadAttention)"),
        "fused": _("True = visible (F.scaled_dot_product_attention)"),
        "additive": _("0 and −∞, added to the scores (here; both calls take it too)"),
    }[notation]


def listed(names: Sequence[str]) -> str:
    """Names of tokens in a sentence of Markdown."""
    return ", ".join(plain(name) for name in names[:SHOWN]) + (" …" if len(names) > SHOWN else "")


def live_row(masked: Masked, unused: Sequence[int] = ()) -> str:
    """The softmax of one row with its numbers: what is blocked is missing from the denominator.

    `unused` are queries whose rows nobody reads, those of padding: none of them is worked out.
    """
    if (telling := masked.telling_row(unused)) is None:
        return ""
    i, seen = telling
    j = seen[0]
    shown = [f"e^{{{masked.scores[i, key]:.2f}}}" for key in seen[:TERMS]]
    dots = [r"\cdots"] if len(seen) > TERMS else []
    below = " + ".join([*shown, *dots])
    return (
        rf"A_{{{i},{j}}} = \frac{{e^{{{masked.scores[i, j]:.2f}}}}}{{{below}}} = {latex.number(masked.weights[i, j])}"
    )


def table(
    caption: str, columns: Sequence[str], rows: Sequence[str], cells: Sequence[Sequence[str]], blocked: object = None
) -> str:
    """A small HTML table of texts, in the look of the matrices; `blocked` cells (a boolean matrix) are hatched."""
    hatched = np.zeros((len(rows), len(columns)), dtype=bool) if blocked is None else np.asarray(blocked, dtype=bool)
    corner = "<th></th>" if any(rows) else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + (f'<th style="max-width: 14em">{escape(name)}</th>' if corner else "")
        + "".join(
            f'<td class="vf-blocked" {_CENTRED}>{escape(cell)}</td>'
            if hatched[r, c]
            else f"<td {_CENTRED}>{escape(cell)}</td>"
            for c, cell in enumerate(cells[r])
        )
        + "</tr>"
        for r, name in enumerate(rows)
    )
    return (
        f'<div class="vf-matrix"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{corner}{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
