"""A text whose tokens are tinted by numbers: blue where they are above 0, orange below.

Plain HTML, no script: it can stand in a page, a notebook or a file.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from vizformer.components.matrix import NEGATIVE, POSITIVE

_STYLE = (
    ".vf-tinted{font-size:1rem;line-height:2.1;overflow-wrap:anywhere}"
    ".vf-tinted span{border-bottom:2px solid transparent;border-radius:3px;padding:0.15em 0.1em;white-space:pre-wrap}"
    ".vf-tinted span.vf-marked{border-bottom-color:currentColor}"
)


def to_html(tokens: Sequence[str], values: NDArray[np.floating], *, label: str = "", marked: int | None = None) -> str:
    """The tokens one after the other, each with its number on hover.

    `values`: a number for each; the largest (above or below 0) has the full colour.
    """
    if np.shape(values) != (len(tokens),):
        raise ValueError(f"values of shape {np.shape(values)} do not fit {len(tokens)} tokens")
    finite = np.abs(values[np.isfinite(values)])
    top = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    spans = []
    for index, (token, value) in enumerate(zip(tokens, values.tolist(), strict=True)):
        colour = POSITIVE if value >= 0 else NEGATIVE
        strength = round(0.75 * abs(value) / top, 3) if np.isfinite(value) else 0.0
        kind = ' class="vf-marked"' if index == marked else ""
        number = f"{value:+.4f}".replace("-", "−")
        tint = f"background:rgba({colour},{strength})"
        spans.append(f'<span{kind} style="{tint}" title="{index}: {number}">{escape(token)}</span>')
    head = f'<div class="vf-tinted" role="img" aria-label="{escape(label)}">'
    return f"<style>{_STYLE}</style>{head}{''.join(spans)}</div>"
