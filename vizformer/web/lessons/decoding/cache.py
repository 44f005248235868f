"""The laboratory KV cache: what is computed again without it, and what of that grows how."""

import streamlit as st
from numpy import ndarray

from vizformer import figures
from vizformer.analysis.costs.generation_cost import text_costs
from vizformer.analysis.decoding.ways import growth
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.decoding import computations
from vizformer.web.lessons.decoding.other_model import writes
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)


@laboratory
def cache(subject: Subject) -> None:
    """Multiplications with the cache and without, part by part, for n and 2n new tokens."""
    if not writes(subject):
        return
    st.html(table.style())
    lesson.ask(cube_question())
    config = subject.config
    memory = len(subject.trace.tokens["encoder"]) if config.n_encoder_layers else 0
    n = st.select_slider(_("New tokens, n"), LENGTHS, **lesson.setting("decoding.n", 64, LENGTHS))
    costs = text_costs(config, 1, min(n, 64), memory)
    chart.show(
        figures.multiplications(
            costs.cached,
            costs.uncached,
            title=_("Multiplications of each of the first {n} steps", n=min(n, 64)),
            words=words(figures.ENGLISH),
        ),
        key="decoding.multiplications",
    )
    without, kept = growth(config, n, memory)
    names = (_("attention: q·k and weights·v"), _("projections"), _("feed-forward"), _("unembedding"))
    rows = [Row((name, *_pair(without[:, part]), *_pair(kept[:, part]))) for part, name in enumerate(names)]
    rows.append(Row((_("together"), *_pair(without.sum(1)), *_pair(kept.sum(1))), "sum"))
    columns = (
        _("part"),
        _("without, n = {n}", n=n),
        _("× at 2n"),
        _("with, n = {n}", n=n),
        _("× at 2n"),
    )
    st.html(table.to_html(columns, rows))
    st.caption(
        _(
            "× 8 at twice the length is n³, × 4 is n², × 2 is n. “The cache turns n³ into n²” is said of the attention "
            "alone; projections and feed-forward go from n² to n, and in short texts they are nearly everything."
        )
    )
    difference, steps = computations.cache_difference(subject)
    st.success(
        _(
            "Checked on this text, {steps} steps: the probabilities with the cache and without differ by {error} at most.",
            steps=steps,
            error=f"{difference:.1e}",
        )
    )
    lesson.formula(
        r"\underbrace{\sum_{t=1}^{n} t^2}_{\text{without}} \approx \tfrac{n^3}{3} \qquad "
        r"\underbrace{\sum_{t=1}^{n} t}_{\text{with}} \approx \tfrac{n^2}{2}",
        live=rf"{sum(t * t for t in range(1, n + 1)):,} \qquad {sum(range(1, n + 1)):,}".replace(",", "{,}"),
        code=f"n = {n}\nt = torch.arange(1, n + 1)\nwithout, kept = (t**2).sum(), t.sum()  # dot products per head",
    )
    st.page_link(sitemap.GENERATION.file, label=_("See it on a whole text, step by step: the page Generation"))


def _pair(values: ndarray) -> tuple[Number, Number]:
    """The number at n, and how many times as large it is at 2n."""
    at_n, at_2n = (int(value) for value in values)
    return Number(at_n, f"{at_n:,}"), Number(at_2n / at_n, f"{at_2n / at_n:.1f}")


def cube_question() -> lesson.Choice:
    return lesson.Choice(
        "decoding",
        "cube",
        _("Without a cache, a text twice as long: how many times as many multiplications in the attention?"),
        ["2", "4", "8"],
        2,
        _("Nearly 8: twice as many steps, and each compares twice as many queries with twice as many keys."),
    )
