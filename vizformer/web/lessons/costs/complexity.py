"""The laboratory Complexity: Table 1 of the paper for the typed sentence."""

import streamlit as st

from vizformer.analysis.costs.layer_complexity import RowKind
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import computations, wording
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts
from vizformer.web.words.i18n import _

KERNELS, WINDOWS = range(2, 10), range(1, 65)
PER_LAYER: dict[RowKind, str] = {
    "attention": "n²·d",
    "recurrent": "n·d²",
    "convolution": "k·n·d²",
    "restricted": "min(r, n)·n·d",
    "contiguous": "k·n·d²",
    "separable": "k·n·d + n·d²",
}
PATHS: dict[RowKind, str] = {
    "attention": "1",
    "recurrent": "n",
    "convolution": "max(1, logₖ n)",
    "restricted": "max(1, n/r)",
    "contiguous": "max(1, n/k)",
    "separable": "max(1, logₖ n)",
}


@laboratory
def complexity(subject: Subject) -> None:
    """All three columns with numbers in them, and where self-attention is the cheaper layer."""
    st.html(table.style())
    own, d = len(subject.tokens), subject.config.d_model
    lesson.ask(times_question(subject))
    lesson.ask(path_question(), folded=True)
    n = wording.length("costs.n", own)
    k = st.slider(_("Kernel width k"), min(KERNELS), max(KERNELS), **lesson.setting("costs.k", 3, KERNELS))
    r = st.slider(_("Window r"), min(WINDOWS), max(WINDOWS), **lesson.setting("costs.r", 8, WINDOWS))
    names = {
        "attention": _("self-attention"),
        "recurrent": _("recurrent"),
        "convolution": _("convolution, dilated"),
        "restricted": _("self-attention, restricted to r"),
        "contiguous": _("convolution, side by side"),
        "separable": _("convolution, separable"),
    }
    found = computations.table_one(n, d, k, r)
    least = min(one.per_layer for one in found)
    rows = [
        Row(
            (
                names[one.kind],
                f"{PER_LAYER[one.kind]} = {one.per_layer:,}",
                Number(one.sequential, f"n = {n:,}" if one.sequential > 1 else "1"),
                PATHS[one.kind] if one.kind == "attention" else f"{PATHS[one.kind]} = {one.path:,.3g}",
            ),
            "marked" if one.per_layer == least else "",
        )
        for one in found
    ]
    columns = (_("layer"), _("complexity per layer"), _("sequential operations"), _("maximum path length"))
    caption = _("n = {n}, d = {d} (your model's width), k = {k}, r = {r}", n=f"{n:,}", d=d, k=k, r=r)
    st.html(table.to_html(columns, rows, caption=caption))
    st.caption(
        _(
            "The first four rows are Table 1, the last two the text of section 4. The cheapest layers are marked. "
            "Orders of growth leave constants out: counted product by product (lesson 1), attention is never cheaper than "
            "a plain RNN, and cheaper than a GRU where n < d."
        )
    )
    st.text(_verdict(n, d))
    sign = "<" if n < d else ">" if n > d else "="
    lesson.formula(
        r"n^2 d < n d^2 \iff n < d",
        live=rf"{n * n * d:,} {sign} {n * d * d:,}".replace(",", "{,}"),
        code="attention, recurrent = n * n * d, n * d * d\n"
        "convolution, restricted = k * n * d * d, min(r, n) * n * d\n"
        "path = max(1, math.log(n) / math.log(k))  # of the dilated convolution",
        given={"n": n, "d": d, "k": k, "r": r},
    )


def path_question() -> lesson.Choice:
    return lesson.Choice(
        "costs",
        "path",
        _("Which of these layers connects any two tokens in a number of steps that does not grow with n?"),
        [_("recurrent"), _("convolution, dilated"), _("self-attention"), _("self-attention, restricted to r")],
        2,
        _(
            "Self-attention: every query multiplies with every key, so one layer is enough. A dilated convolution "
            "needs logₖ n layers, a window n/r; both grow with n, the logarithm only slowly."
        ),
    )


def _verdict(n: int, d: int) -> str:
    if n < d:
        return _(
            "n = {n} is less than d = {d}: by the table a recurrent layer needs {times} times as many multiplications as "
            "self-attention.",
            n=f"{n:,}",
            d=f"{d:,}",
            times=f"{d / n:.3g}",
        )
    if n > d:
        return _(
            "n = {n} is more than d = {d}: by the table self-attention needs {times} times as many multiplications as a "
            "recurrent layer. It still does them all at once.",
            n=f"{n:,}",
            d=f"{d:,}",
            times=f"{n / d:.3g}",
        )
    return _("n = d = {n}: by the table both need the same.", n=f"{n:,}")


def times_question(subject: Subject) -> lesson.Number:
    """How many times as much does a recurrent layer cost?"""
    n, d = len(subject.tokens), subject.config.d_model
    return lesson.Number(
        "costs",
        "times",
        _(
            "Your text has {tokens}, your model the width d = {d}. By the paper's table, how many times as many "
            "multiplications does a recurrent layer need as self-attention?",
            tokens=counts.tokens(n),
            d=d,
        ),
        d / n,
        _(
            "n·d² divided by n²·d is d/n = {d}/{n} = {times}. Sentences are short and models wide, which is why the "
            "paper calls self-attention the faster layer. The table leaves constants out: lesson 1 counts them.",
            n=n,
            d=d,
            times=f"{d / n:.2f}",
        ),
        tolerance=lesson.near(d / n, 0.02, least=0.05),
        written="{:.2f}".format,
        about=f"{subject.model} {subject.text}",
    )
