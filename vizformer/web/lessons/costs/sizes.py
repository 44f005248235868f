"""What several laboratories share: what a model costs, the slider for a number of tokens, large numbers, bounded inputs."""

import streamlit as st

from vizformer.analysis.costs import parameter_count
from vizformer.components.table import Number
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.widgets.lab import Laboratory

LENGTHS = (16, 64, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 131_072)
_POWERS = ((1e15, "10¹⁵"), (1e12, "10¹²"), (1e9, "10⁹"), (1e6, "10⁶"))


model_cost = cached(parameter_count.model_cost)


def length(lab: Laboratory, name: str, own: int, usual: int | None = None) -> int:
    """A slider for a number of tokens; it begins at `usual`, or at that of the sentence, `own`."""
    begin = own if usual is None else usual
    options = sorted({own, begin, *LENGTHS})
    found: int = st.select_slider(
        lab.text("tokens_n"),
        options,
        format_func=lambda n: lab.text("your_text", n=n) if n == own else f"{n:,}",
        **lab.setting(name, begin, options),
    )
    return found


def large(value: float) -> str:
    """A number with four digits that count, from a million on with a power of a thousand: 124.4 · 10⁶."""
    for power, written in _POWERS:
        if abs(value) >= power:
            return f"{value / power:.4g} · {written}"
    return f"{value:,.4g}" if value != int(value) else f"{int(value):,}"


def cell(value: float) -> Number:
    return Number(value, large(value))


def scientific(value: float, digits: int = 3) -> str:
    """Formats a number as 3.143 · 10²³."""
    mantissa, __, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa} · 10{str(int(exponent)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def tex(value: float) -> str:
    """A number as LaTeX, large ones with a power of ten."""
    if abs(value) < 1e6:
        return f"{value:,.6g}".replace(",", "{,}")
    mantissa, __, exponent = f"{value:.3e}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def compared(a: int, b: int) -> str:
    """The relation sign (<, =, >) between two numbers."""
    return "<" if a < b else ">" if a > b else "="
