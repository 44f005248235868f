"""What a text costs: the bytes of the KV cache, and multiplications with it and without it."""

import streamlit as st

from vizformer import figures
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.generation import computations
from vizformer.web.widgets import chart, rolling_cache_note
from vizformer.web.words.i18n import _, show_text


def draw_costs(subject: Subject, text: computations.Text, step: int) -> None:
    st.subheader(_("What it costs"), anchor=False)
    cached, uncached, share = text.costs.up_to(step)
    show_text(
        "Up to token {step}: {cached} multiplications with the KV cache, {uncached} without it, {times} times as "
        "many. Of those with the cache, {share} belong to attention itself; the rest are the projections, the "
        "feed-forward layers and the unembedding. The cache holds {bytes} bytes.",
        step=step,
        cached=f"{cached:,}",
        uncached=f"{uncached:,}",
        times=f"{uncached / cached:.1f}",
        share=f"{share:.1%}",
        bytes=f"{text.costs.cache_bytes[step]:,}",
    )
    config, length = subject.config, text.start + step
    if said := rolling_cache_note.saved(config, length, text.costs.cache_bytes[step], text.costs.rolling_bytes[step]):
        st.caption(said)
    growth, products = st.columns([2, 3])
    chart.show(
        figures.cache_growth(
            text.costs.cache_bytes,
            text.costs.memory_bytes,
            of_source=config.n_encoder_layers > 0,
            at=step,
            title=_("The KV cache grows with every token"),
        ),
        key="generation.cache",
        on=growth,
    )
    chart.show(
        figures.multiplications(
            text.costs.cached, text.costs.uncached, at=step, title=_("Multiplications of each step")
        ),
        key="generation.multiplications",
        on=products,
    )
