"""What several laboratories of lesson 11 share: the box for the number of tokens, numbers in words, bounded inputs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import streamlit as st

from vizformer.web.widgets import lesson
from vizformer.web.words.i18n import _

LENGTHS = (16, 64, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 131_072)
_POWERS = ((1e15, "10¹⁵"), (1e12, "10¹²"), (1e9, "10⁹"), (1e6, "10⁶"))


@dataclass(frozen=True)
class Between:
    """The whole numbers from `low` to `high`, as options of `lesson.setting`, without a list of them."""

    low: int
    high: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.low <= value <= self.high

    def __iter__(self) -> Iterator[int]:
        """The ends: they tell one box from another."""
        yield self.low
        yield self.high

    def __len__(self) -> int:
        return self.high - self.low + 1


def length(name: str, own: int, usual: int | None = None) -> int:
    """A slider for a number of tokens; it begins at `usual`, or at that of the sentence, `own`."""
    begin = own if usual is None else usual
    options = sorted({own, begin, *LENGTHS})
    found: int = st.select_slider(
        _("Tokens n"),
        options,
        format_func=lambda n: _("{n} (your text)", n=n) if n == own else f"{n:,}",
        **lesson.setting(name, begin, options),
    )
    return found


def large(value: float) -> str:
    """A number with four digits that count, from a million on with a power of a thousand: 124.4 · 10⁶."""
    for power, written in _POWERS:
        if abs(value) >= power:
            return f"{value / power:.4g} · {written}"
    return f"{value:,.4g}" if value != int(value) else f"{int(value):,}"


def scientific(value: float, digits: int = 3) -> str:
    """A number as 3.143 · 10²³."""
    mantissa, __, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa} · 10{str(int(exponent)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def tex(value: float, digits: int = 3) -> str:
    """A number as LaTeX, large ones with a power of ten."""
    if abs(value) < 1e6:
        return f"{value:,.6g}".replace(",", "{,}")
    mantissa, __, exponent = f"{value:.{digits}e}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def group(name: str) -> str:
    """A group of rows of Table 3."""
    names = {
        "base": _("base"),
        "A": _("A: heads"),
        "B": _("B: width of keys"),
        "C": _("C: size"),
        "D": _("D: dropout, smoothing"),
        "E": _("E: positions"),
        "big": _("big"),
    }
    return names[name]


def changed(options: Iterable[tuple[str, float | str]]) -> str:
    """What differs from the base model, in the paper's letters or as options of a model; "" where nothing does."""
    words = {
        "P_drop": _("dropout"),
        "dropout": _("dropout"),
        "eps": "ε",
        "positions": _("positions"),
        "steps": _("steps"),
        "N": _("layers"),
        "n_encoder_layers": _("layers"),
        "n_heads": "h",
    }
    values = {"learned": _("learned vectors")}
    return ", ".join(
        f"{words.get(name, name)} {value:,g}" if not isinstance(value, str) else f"{words[name]}: {values[value]}"
        for name, value in options
        if name != "n_decoder_layers"  # as many as the encoder has
    )


def against(difference: float) -> str:
    """A difference with its sign."""
    return f"{difference:+.1f}".replace("-", "−") if round(difference, 1) else "0.0"
